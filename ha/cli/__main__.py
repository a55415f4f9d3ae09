"""``python -m ha.cli`` is ``ha``."""

from ha.cli import main

main()
