"""``python -m ha.cli`` is ``ha``."""

from ha.cli.commands import main

main()
