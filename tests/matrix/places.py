"""The cells of the matrix: versions of Python, Spark and packages, and a virtual environment for each."""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "matrix"

SPARKS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
WITH_TABLES = "4.1.4"
"""The newest of them for which there are both Delta and Iceberg."""

PYTHONS = ("3.11", "3.12", "3.13")

TOOLS = ("greenlet", "hypothesis", "packaging", "pytest", "pytest-timeout", "pytest-xdist")
"""The packages that the tests import."""

INSTALL_S = 1200.0


class Missing(Exception):
    """A cell cannot be run here; the text says why."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of versions.

    Attributes:
        python: as in ``3.12``.
        spark: of PySpark.
        oldest: whether all other packages are the oldest ones that ``pyproject.toml`` allows; else the newest.
    """

    python: str
    spark: str
    oldest: bool

    @property
    def name(self) -> str:
        return f"python{self.python}-spark{self.spark}-{'oldest' if self.oldest else 'newest'}"


def cell_of(python: str, spark: str) -> Cell:
    """Return a cell: with the oldest Spark on the oldest Python, the other packages are the oldest, too."""
    return Cell(python, spark, oldest=(python, spark) == (PYTHONS[0], SPARKS[0]))


def extras(cell: Cell) -> list[str]:
    """Return the extras of a cell: Kerberos's is built for the oldest packages, if its headers are here."""
    return ["spark", "drill", *(["kerberos"] if cell.oldest and shutil.which("krb5-config") else [])]


def requirements(cell: Cell) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chosen = extras(cell)
    given = [*project["dependencies"], *(line for extra in chosen for line in project["optional-dependencies"][extra])]
    exact = [oldest(line) for line in given if Requirement(line).name != "pyspark"] if cell.oldest else []
    # No extra can ask for it, because it does not see which PySpark is chosen: `ha.spark` warns instead.
    distutils = ["setuptools"] if Version(cell.spark).major < 4 and Version(cell.python) >= Version("3.12") else []
    return [f"{ROOT}[{','.join(chosen)}]", f"pyspark=={cell.spark}", *distutils, *exact, *TOOLS]


def oldest(line: str) -> str:
    """Return a requirement of the oldest version that a line of ``pyproject.toml`` allows.

    Raises:
        ValueError: it has no lower bound.
    """
    requirement = Requirement(line)
    bounds = [each.version for each in requirement.specifier if each.operator in {">=", "=="}]
    if not bounds:
        raise ValueError(f"{line!r} in pyproject.toml has no lower bound.")
    return f"{requirement.name}=={bounds[0]}"


def python_of(cell: Cell) -> Path:
    """Return the interpreter of a cell's environment; make that, or make it anew if the requirements have changed.

    Raises:
        Missing: there is no such Python here, or pip found no way to install it.
    """
    wanted = requirements(cell)
    mark = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    folder, stamp = FOLDER / cell.name, FOLDER / f"{cell.name}.stamp"
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == mark):
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        _ended([str(_interpreter(cell.python)), "-m", "venv", str(folder)])
        _ended([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", *wanted])
        stamp.write_text(mark)
    return python


def _interpreter(version: str) -> Path:
    """Return the Python of a version that runs on this host: this one, one on the path, or one of pyenv's."""
    here = Path(sys.executable)
    path = [Path(folder, f"python{version}") for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    pyenvs = [Path(each, "bin", f"python{version}") for each in sorted(pyenv.glob(f"{version}.*"), reverse=True)]
    own = [here] if f"{sys.version_info.major}.{sys.version_info.minor}" == version else []
    for python in [*own, *path, *pyenvs]:
        # A name on the path may be a shim for a version that is switched off, so each candidate has to run.
        asked = [str(python), "-c", "import venv"]
        if python.exists() and not subprocess.run(asked, capture_output=True, timeout=120, check=False).returncode:
            return python
    raise Missing(f"no Python {version} on this host")


def _ended(command: list[str]) -> None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise Missing(f"pip took more than {INSTALL_S:g} s") from error
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if "ERROR" in line] or ["pip failed"]
        raise Missing(lines[0].removeprefix("ERROR: "))
