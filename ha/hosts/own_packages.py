"""Our packages `leader` and `store`, where a user has a module of that name: it is found first, beside the program.

Processes of ours put their own first. In a program of a user's, nobody can say which of the two is meant: it is told.

This module uses the standard library alone: the guard imports it, and stays small.
"""

import os
import sys
from importlib.util import find_spec

NAMES = ("leader", "store")
HOME = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120  # it may be in an archive


def put_first() -> None:
    """Have this process find our packages, whatever PYTHONPATH has."""
    if any(_other(name) for name in NAMES):
        sys.path.insert(0, HOME)


def check() -> None:
    """Refuse a module of that name that is not ours.

    Raises:
        ImportError: the message has both places, and what to do.
    """
    for name in NAMES:
        if other := _other(name):
            raise ImportError(
                f"{other} is found in place of the package {name!r} of hybrid-ha, which is {os.path.join(HOME, name)}: "  # noqa: PTH118
                "give your module another name.",
                name=name,
                path=other,
            )


def _other(name: str) -> str:
    """Return where a package is found that is not ours; empty if ours is, or none."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None) if module is not None else find_spec(name)
    origin: str = getattr(spec, "origin", None) or ""
    ours = os.path.join(HOME, name, "__init__.py")  # noqa: PTH118
    return "" if os.path.splitext(origin)[0] in ("", os.path.splitext(ours)[0]) else origin  # noqa: PTH122
