"""Worlds: what the loop observes and acts on. A cluster, a simulation and a recording look the same from the loop."""
