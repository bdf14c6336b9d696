"""Capacity from the clouds: one port, one module a provider."""
