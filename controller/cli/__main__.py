"""``python -m controller.cli`` is ``tidegate``: child processes are started this way, with the same interpreter."""

from controller.cli.app import main

main()
