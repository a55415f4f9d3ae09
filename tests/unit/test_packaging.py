"""Packaging: two builds of the same source are the same bytes, and work in an empty environment."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("ha", "leader", "pyspark_ha", "store", "examples", "pyproject.toml", "README.md", "LICENSE")
TOOLS = ROOT / "build" / "tools" / "bin" / "python"
DAY = "1767225600"

pytestmark = pytest.mark.programs


def build(folder: Path) -> dict[str, str]:
    """Copy the source, as another clone has it, and build it; returns the checksum of each file."""
    source = folder / "source"
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        source.mkdir(parents=True, exist_ok=True)
        copy(ROOT / part, source / part)
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")]
    subprocess.run(
        command, cwd=source, env={**known, "SOURCE_DATE_EPOCH": DAY}, check=True, capture_output=True, timeout=100
    )
    return checksums(folder / "dist")


def checksums(folder: Path) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build(folder)
    return folder / "dist"


def test_two_clones_build_the_same_wheel_and_the_same_source_archive(dist: Path, tmp_path: Path) -> None:
    first, second = checksums(dist), build(tmp_path)
    assert sorted(each.rpartition(".")[2] for each in first) == ["gz", "whl"]
    assert first == second
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"ha/py.typed", "ha/cli/__main__.py", "ha/drill/word_count.py", "leader/timing.py"} <= set(names)
    packages = {"ha", "leader", "pyspark_ha", "store"}
    assert {name.partition("/")[0] for name in names} == {*packages, "hybrid_ha-0.1.0.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith("DESIGN.md")]
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert {"hybrid_ha-0.1.0/pyproject.toml", "hybrid_ha-0.1.0/leader/DESIGN.md"} <= set(archive.getnames())


@pytest.mark.skipif(not TOOLS.exists(), reason="there is no build/tools: run make sbom")
def test_the_bill_of_materials_has_what_is_locked_with_its_hashes(tmp_path: Path) -> None:
    (command,) = re.findall(r"python (-W ignore -m cyclonedx_py .*) -o \S+ (\S+)", (ROOT / "Makefile").read_text())
    made = [tmp_path / "first.json", tmp_path / "second.json"]
    for path in made:
        words = [str(TOOLS), *command[0].split(), "-o", str(path), command[1]]
        subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=100)
    assert made[0].read_bytes() == made[1].read_bytes()
    bill = json.loads(made[0].read_text())
    assert bill["metadata"]["component"]["name"] == "hybrid-ha"
    locked = re.findall(r"^([a-z0-9-]+)==([^ ]+)", (ROOT / "runtime.lock").read_text(), re.MULTILINE)
    assert sorted((each["name"], each["version"]) for each in bill["components"]) == sorted(locked)
    assert all(reference["hashes"] for each in bill["components"] for reference in each["externalReferences"])


EXTRAS = {"pyspark", "pandas", "pyarrow", "protobuf", "docker", "jinja2", "kerberos", "pure-sasl"}
VERBS = """from ha.cli import exit_code
from ha.cli.commands import VERBS
print(*[verb for verb in VERBS if exit_code([*verb.split(), '--help'])])"""
INSTALLED = "from importlib.metadata import distributions; print(*[each.name.lower() for each in distributions()])"


@pytest.fixture(scope="module")
def programs(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, and with nothing but what it depends on in the locked versions."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, symlinks=True, with_pip=False)
    pins = folder / "pins.txt"
    pins.write_text("\n".join(re.findall(r"^([a-z0-9].*) \\$", (ROOT / "runtime.lock").read_text(), re.MULTILINE)))
    (wheel,) = dist.glob("*.whl")
    python = str(folder / "bin" / "python")
    command = [
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--constraint", str(pins), str(wheel),
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    if "NewConnectionError" in ended.stderr or "NameResolutionError" in ended.stderr:
        pytest.skip("No package index can be reached from here.")
    assert ended.returncode == 0, ended.stderr
    return folder / "bin"


def said(programs: Path, program: str, *arguments: str, **variables: str) -> str:
    """Return what a program of the environment writes to both its outputs; nothing of this clone is in its way."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HA_"))}
    command = [str(programs / program), *arguments]
    ended = subprocess.run(
        command,
        cwd=programs,
        env={**kept, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.stdout


@pytest.mark.slow
def test_the_wheel_works_with_only_what_it_depends_on(programs: Path, tmp_path: Path) -> None:
    installed = set(said(programs, "python", "-c", INSTALLED).split())
    assert {"hybrid-ha", "click", "kazoo"} <= installed
    assert not installed & EXTRAS
    assert said(programs, "ha", "--version") == "ha, version 0.1.0\n"
    assert "Usage: ha [OPTIONS]" in said(programs, "ha", "--help")
    verbs = said(programs, "python", "-c", VERBS)
    assert verbs.endswith("\n\n"), "each verb has a help, and none of them fails"
    assert "There is no job 'orders'" in said(
        programs, "ha", "job", "leader", "orders", HA_FILES=tmp_path.as_uri(), HA_ZOOKEEPER=""
    )
    assert "pip install 'hybrid-ha[spark]'" in said(programs, "python", "-c", "import ha.spark; ha.spark.lead")
