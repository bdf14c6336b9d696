"""The ``tidegate`` command: ``app`` composes it, each topic has a module of its own."""
