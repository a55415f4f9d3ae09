"""Modules that are imported when they are first needed, without harm to a process that forks meanwhile."""

import importlib
import os

_wanted: set[str] = set()


def will_import(*modules: str) -> None:
    """Say that some thread may import these from now on.

    A fork first finishes what is being imported: the lock of a module that a thread was importing would be held for
    ever in the child.
    """
    _wanted.update(modules)


def _before_fork() -> None:
    for module in sorted(_wanted):
        importlib.import_module(module)


os.register_at_fork(before=_before_fork)
