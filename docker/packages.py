#!/usr/bin/env python3
"""Python packages for the sidecar's image: the locked runtime dependencies, for the image's Python 3.11."""

import hashlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import base
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

STAMP = ".stamp"
PROJECT = "hybrid-ha"
EXTRA = "spark"
PYTHON = "3.11"
"""Debian bookworm's."""

_RECIPE = "1"
"""Raise it when the layout of the same packages changes."""

_GLIBC = ("2_36", "2_34", "2_28", "2_24", "2_17", "2_12", "2_5")
"""Wheels for these and older versions of the C library run in the image."""

_LEFT_OUT = (
    "bin",
    "pyspark/examples",
    "pyspark/data",
    "pyspark/licenses",
    "pandas/tests",
    "pyarrow/tests",
    "pyarrow/include",
    "pyarrow/src",
    "numpy/tests",
    "numpy/**/tests",
    "numpy/_core/include",
    "**/*.pyx",
    "**/*.pxd",
    "**/__pycache__",
)


def ensure(lock: Path, folder: Path, say: Callable[[str], None]) -> None:
    """Provide the folder of packages; build it again if the lock has changed since.

    Args:
        lock: the project's, with hashes.
        folder: for the packages.
        say: reports slow steps.

    Raises:
        base.BuildError: pip failed.
    """
    environment = {**default_environment(), "python_version": PYTHON, "python_full_version": f"{PYTHON}.2"}
    blocks = _locked(lock, environment)
    wanted = {name: blocks[name] for name in sorted(_needed(environment))}
    mark = hashlib.sha256("\n".join([_RECIPE, *wanted.values()]).encode()).hexdigest()
    stamp = folder.with_name(folder.name + STAMP)
    if stamp.exists() and stamp.read_text(encoding="ascii") == mark:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"Gathering {len(wanted)} Python packages ...")
    # Pure-Python packages are copied from this environment: building PySpark again would take a minute.
    pure = {name for name, block in wanted.items() if _copy(name, block, folder)}
    _install([block for name, block in wanted.items() if name not in pure], folder)
    there = {canonicalize_name(path.name.split("-")[0]) for path in folder.glob("*.dist-info")}
    if missing := wanted.keys() - there:
        raise base.BuildError(f"The sidecar's image lacks {', '.join(sorted(missing))}: no wheel for Python {PYTHON}.")
    for pattern in _LEFT_OUT:
        for path in list(folder.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    stamp.write_text(mark, encoding="ascii")


def _locked(lock: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the lock's line of each package without conditions; packages whose conditions do not hold are left out.

    The conditions are evaluated here, because pip evaluates them for the Python that it runs on.
    """
    found = {}
    for block in re.split(r"^(?=[A-Za-z0-9])", lock.read_text(encoding="utf-8"), flags=re.MULTILINE):
        line, _, rest = block.partition("\n")
        if line.startswith("#"):
            continue
        requirement = Requirement(line.removesuffix("\\").strip())
        if requirement.marker is None or requirement.marker.evaluate(environment):
            hashes = [word for word in rest.split() if word.startswith("--hash=")]
            pinned = f"{requirement.name}{requirement.specifier}"
            found[canonicalize_name(requirement.name)] = f"{pinned} {' '.join(hashes)}\n"
    return found


def _needed(environment: dict[str, str]) -> set[str]:
    """Return the names of all runtime packages, found by following their requirements."""
    needed: set[str] = set()
    open_ = [(PROJECT, frozenset([EXTRA]))]
    seen = set(open_)
    while open_:
        name, extras = open_.pop()
        try:
            lines = distribution(name).requires or []
        except (
            PackageNotFoundError
        ):  # one that only an older Python than this one needs: such have no needs of their own
            lines = []
        for requirement in map(Requirement, lines):
            marker = requirement.marker
            if marker and not any(marker.evaluate({**environment, "extra": extra}) for extra in {"", *extras}):
                continue
            found = canonicalize_name(requirement.name), frozenset(requirement.extras)
            needed.add(found[0])
            if found not in seen:
                seen.add(found)
                open_.append(found)
    return needed


def _copy(name: str, block: str, folder: Path) -> bool:
    """Copy a package from this environment, if it is the locked version and pure Python."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return False
    if not re.match(rf"[^=]+=={re.escape(found.version)}\s", block) or not _is_pure(found):
        return False
    for file in found.files or []:
        source = Path(str(found.locate_file(file)))
        if ".." not in file.parts and source.exists():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / file)
    return True


def _is_pure(found: Distribution) -> bool:
    wheel = found.read_text("WHEEL") or ""
    return "Root-Is-Purelib: true" in wheel and "-none-any" in wheel


def _install(blocks: list[str], folder: Path) -> None:
    requirements = folder.with_name("binary.txt")
    requirements.write_text("".join(blocks), encoding="utf-8")
    machine = platform.machine()
    platforms = [f"--platform=manylinux_{glibc}_{machine}" for glibc in _GLIBC]
    platforms += [f"--platform={legacy}_{machine}" for legacy in ("manylinux2014", "manylinux2010", "manylinux1")]
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
        *("--target", str(folder), "--implementation=cp", f"--python-version={PYTHON}", "--only-binary=:all:"),
        *platforms,
        *("--no-deps", "--require-hashes", "-r", str(requirements)),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    requirements.unlink()
    if ended.returncode != 0:
        raise base.BuildError(f"{ended.stderr.strip()}\nThe packages for the sidecar's image could not be fetched.")
