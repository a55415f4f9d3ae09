"""The command line: ``ha``."""

from ha.hosts import own_packages

own_packages.put_first()

from ha.cli.commands import app, exit_code, main  # noqa: E402  # after that

__all__ = ["app", "exit_code", "main"]
