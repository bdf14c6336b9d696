"""The pure core: every decision tidegate makes comes from here, from values alone.

Standard library only. No clock, no randomness, no I/O, no logging: ``now`` is handed in, same input gives the same
bytes. Everything else in the project feeds this package or carries out what it returns.
"""
