"""The working directory of a process, which may have been removed since it was entered."""

from pathlib import Path

from leader.errors import InvalidSettings


def working_directory() -> Path:
    """Return it; InvalidSettings if it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InvalidSettings("The working directory is gone: `cd` into one that is there, and start again.") from None
