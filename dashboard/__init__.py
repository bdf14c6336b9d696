"""The dashboard: what is happening, who waits, what was done and why."""
