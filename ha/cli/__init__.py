"""The command line: ``ha``."""

from ha.cli.commands import app, exit_code, main

__all__ = ["app", "exit_code", "main"]
