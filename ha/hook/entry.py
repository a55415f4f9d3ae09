"""Entry: a ``sitecustomize.py`` that changes modules of others in each Python process that imports them.

:func:`write` makes a folder for the front of ``PYTHONPATH``, with copies of this file, of its folder, and of modules
whose function ``changes`` says what is changed, and how.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Changes = Mapping[str, Callable[[Any], None]]  # by the name of a module, a function that changes it

NAME, COPY = "sitecustomize", "ha_hook"
PLANS = "plans.json"


def write(folder: Path, modules: Mapping[str, Any], path: str | None) -> str:
    """Write a hook into a new folder; return the ``PYTHONPATH`` with it."""
    # folder: to create.
    # modules: by the file of each module what its `changes` is told, as JSON has it.
    # path: the `PYTHONPATH` without it.
    # OSError: it cannot be written.
    import json  # noqa: PLC0415  # not in the programs, nor in workers
    import shutil  # noqa: PLC0415

    (folder / COPY).mkdir(parents=True)
    shutil.copyfile(__file__, folder / f"{NAME}.py")
    here = os.path.dirname(__file__)  # noqa: PTH120
    ours = [os.path.join(here, name) for name in os.listdir(here) if name.endswith(".py")]  # noqa: PTH118, PTH208
    for file in (*ours, *modules):
        shutil.copyfile(file, folder / COPY / os.path.basename(file))  # noqa: PTH119
    plans = {os.path.basename(file)[:-3]: told for file, told in modules.items()}  # noqa: PTH119
    (folder / PLANS).write_text(json.dumps(plans))
    return os.pathsep.join(filter(None, (str(folder), path)))


def install(changes: Changes) -> None:
    """Change modules of this process, now or when they are imported."""
    later = {name: change for name, change in changes.items() if name not in sys.modules}
    for name in changes.keys() - later.keys():
        changes[name](sys.modules[name])
    if later:
        sys.meta_path.insert(0, _Finder(later))


class _Finder:
    """Finds the modules that are changed."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find them alone."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in self._changes else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._changes[name])  # type: ignore[assignment]
        return spec


class _Loader:
    """Loads one module as the loader does that Python has found, which may be one for all modules of an archive."""

    def __init__(self, found: Any, change: Callable[[Any], None]) -> None:
        self._found, self._change = found, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)

    def create_module(self, spec: object) -> None:
        """Leave that to Python."""

    def exec_module(self, module: Any) -> None:
        """Execute the module, and change it."""
        exec(self._found.get_code(module.__name__), module.__dict__)  # noqa: S102  # archives know no other in 3.8
        self._change(module)


def _main(here: str) -> None:
    """Change what the modules beside this file say, after the ``sitecustomize`` that it hides, if there is one."""
    import json  # noqa: PLC0415

    _prefer_compiled(sys.path)
    others = [each for each in sys.path if os.path.realpath(each) != here]
    users = importlib.machinery.PathFinder.find_spec(NAME, others)
    if users is not None and users.loader is not None:
        users.loader.exec_module(importlib.util.module_from_spec(users))
    with open(os.path.join(here, PLANS), encoding="utf-8") as plans:  # noqa: PTH118, PTH123  # shorter than the import
        told = json.load(plans)
    changes: dict[str, list[Callable[[Any], None]]] = {}
    for name, plan in told.items():
        module = importlib.import_module(f"{COPY}.{name}")
        for target, change in module.changes(plan).items():  # several may change the same module
            changes.setdefault(target, []).append(change)
    install({target: partial(_each, found) for target, found in changes.items()})


def _prefer_compiled(path: list[str]) -> None:
    """Put the archives of an installed PySpark last, which Spark puts first: Python compiles them at each import."""
    for archive in list(path):
        installed, inside, _ = archive.partition("/pyspark/python/lib/")
        if inside and installed in path:
            path.remove(archive)
            path.append(archive)


def _each(changes: list[Callable[[Any], None]], module: Any) -> None:
    for change in changes:
        change(module)


if __name__ == NAME:
    _main(os.path.realpath(os.path.dirname(__file__)))  # noqa: PTH120
