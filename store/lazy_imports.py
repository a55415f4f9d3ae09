"""Lazy imports that do no harm to a process which forks meanwhile."""

import importlib
import logging  # noqa: F401  # before the hook below: see there
import os

_wanted: set[str] = set()


def will_import(*modules: str) -> None:
    """Announce that some thread may import these modules from now on: a fork first imports them itself."""
    # Otherwise the child could inherit the lock of a half-imported module for ever.
    _wanted.update(modules)


def _before_fork() -> None:
    for module in sorted(_wanted):
        importlib.import_module(module)


# The hook that was registered last runs first. The one of logging takes logging's lock, which many imports need: so it
# has to run after this one, and logging registers it when it is imported.
os.register_at_fork(before=_before_fork)
