"""A new user with two hosts, who knows README and installation page: their commands are run as they stand.

Only names are replaced: those of the stores, and the place of the environment. What the pages take for granted is made
before: a Python environment on each host in which PySpark is installed, Spark's and Java's programs on the path, and
some input.
"""

import io
import os
import re
import shutil
import site
import subprocess
import sys
import uuid
import venv
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyarrow.parquet
import pytest

from ha.sandbox import Sandbox
from store.files import Files
from tests.limits import HANGS_S
from tests.system.deploying.hosts import STORES, Host, Unavailable, end, hosts
from tests.system.spark.helpers import eventually, files_of, rows_below

pytestmark = [
    pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900),
]  # fmt: skip

ROOT = Path(__file__).parents[3]
PARTS = ("ha", "leader", "pyspark_ha", "store", "examples", "pyproject.toml", "README.md", "LICENSE")
NAMES = ("host-a", "host-b")
INSTALL_S, ASK_S, DRIVER_S = 200, 100, 300  # a busy machine needs all of it


def block(language: str, holding: str, page: str = "README.md") -> str:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [text for kind, text in blocks if kind == language and holding in text]
    return str(found)


@dataclass(frozen=True)
class Steps:
    build: str
    install: str
    settings: str
    doctor: str
    run: str
    look: str
    program: str

    @classmethod
    def read(cls, files: str, zookeeper: str) -> "Steps":
        """Read them; a command that is added to the README needs a place here."""
        commands = block("", "ha run orders").replace("hdfs://nameservice1", files)
        commands, found = re.subn(r"zk1:2181\S*", zookeeper, commands)
        assert found == 1
        program = block("python", "ha.spark.lead(").replace("hdfs://nameservice1", files)
        settings, doctor, run, look = (line.partition("  #")[0].rstrip() for line in commands.splitlines())
        build, place, install = block("", "pip wheel", "docs/installation.md").splitlines()
        install = install.replace(f"{place.rpartition(' ')[2]}/bin/", "")
        return cls(build, install, settings, doctor, run, look, program)


def test_the_readme_has_the_commands_that_are_run_here() -> None:
    steps = Steps.read("hdfs://elsewhere:1/x", "elsewhere:2")
    assert "pip wheel" in steps.build
    assert "pip install" in steps.install
    assert steps.settings == "export HA_FILES=hdfs://elsewhere:1/x/ha HA_ZOOKEEPER=elsewhere:2"
    assert steps.doctor == "ha host doctor"
    assert steps.run.startswith("ha run orders ")
    assert steps.look == "ha job leader orders"
    compile(steps.program, "orders.py", "exec")


def prepare(host: Host) -> None:
    """Give a host a clone, and an environment of its own that sees our packages, but not this project."""
    clone = host.folder / "hybrid-ha"
    clone.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, clone / part)
    venv.create(host.folder / "venv", symlinks=True)
    pip = host.folder / "venv" / "bin" / "pip"
    pip.write_text('#!/bin/sh\nexec python -m pip "$@"\n')  # the one among our packages: to install one takes a minute
    pip.chmod(0o755)
    ours, seen = Path(site.getsitepackages()[0]), host.folder / "packages"
    seen.mkdir()
    for each in ours.iterdir():
        if "hybrid_ha" not in each.name and each.suffix != ".pth":
            (seen / each.name).symlink_to(each)
    (theirs,) = (host.folder / "venv" / "lib").glob("python*/site-packages")
    (theirs / "others.pth").write_text(f"{seen}\n")


def variables(host: Host) -> dict[str, str]:
    path = f"{host.folder / 'venv' / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    # Nothing is downloaded: no host here has a way to a package index.
    return {"PATH": path, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def done(host: Host, *lines: str, seconds: float, folder: str = ".") -> str:
    """Run lines of a shell to their end; returns what they print."""
    command = host.command("\n".join([f"cd {folder}", *lines]))
    ended = subprocess.run(
        command, env=host.environment(variables(host)), capture_output=True, text=True, timeout=seconds, check=False
    )
    assert ended.returncode == 0, f"{host.name}: {lines}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
    return ended.stdout


@pytest.fixture
def place(sandbox: Sandbox) -> str:
    """URI of a new directory of the stores, as this process reaches it."""
    return f"{sandbox.environment()['HA_FILES'].rpartition('/')[0]}/two-hosts-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def pair(sandbox: Sandbox, tmp_path: Path) -> Iterator[list[Host]]:
    kinds = ("zookeeper", "namenode", "datanode")
    ports = [each.port for each in sandbox.status() if each.kind in kinds]
    with ExitStack() as stack:
        try:
            made = stack.enter_context(hosts(tmp_path, NAMES, ports))
        except Unavailable as reason:
            pytest.skip(str(reason))
        yield made


def put(place: str, name: str, line: str) -> None:
    def write(files: Files) -> None:
        files.make_root()
        for folder in ("in", "in/orders"):
            files.make_directory(folder)
        files.write(f"in/orders/{name}", f"{line}\n".encode())

    with files_of(place) as do:
        do(write)


def counted(place: str) -> Counter[str]:
    def read(data: bytes) -> list[str]:
        values: list[str] = pyarrow.parquet.read_table(io.BytesIO(data)).column("value").to_pylist()
        return values

    return rows_below(place, "out/orders", ".parquet", read)


def test_a_job_under_ha_on_two_hosts_by_the_readme_alone(pair: list[Host], place: str, sandbox: Sandbox) -> None:
    seen = f"hdfs://{STORES}:{place.split('/')[2].rpartition(':')[2]}/{place.rpartition('/')[2]}"
    chroot = place.rpartition("/")[2]
    steps = Steps.read(seen, f"{STORES}:{sandbox.environment()['HA_ZOOKEEPER'].rpartition(':')[2]}/{chroot}")
    put(place, "1.txt", "before")
    for host in pair:
        prepare(host)
        (host.folder / "orders.py").write_text(steps.program)
        done(host, steps.build, steps.install, seconds=INSTALL_S, folder="hybrid-ha")
        assert "failed " not in done(host, steps.settings, steps.doctor, seconds=ASK_S)
    with ExitStack() as stack:
        sidecars = {host.name: stack.enter_context(Sidecar(host, steps)) for host in pair}
        eventually(lambda: counted(place)["before"], DRIVER_S)
        first = leader(pair[0], steps)
        assert leader(pair[1], steps) == first, "both hosts see the same"
        standby = next(host for host in pair if host.name != first)
        assert "contending" in sidecars[standby.name].log()
        sidecars[first].lose()
        eventually(lambda: leader(standby, steps) == standby.name, ASK_S)
        put(place, "2.txt", "after")
        eventually(lambda: counted(place)["after"], DRIVER_S)
        assert counted(place) == {"before": 1, "after": 1}, "each line once"
        assert "process-gone" in done(standby, steps.settings, "ha job history orders", seconds=ASK_S)


def leader(host: Host, steps: Steps) -> str:
    said = done(host, steps.settings, f"{steps.look} --json || true", seconds=ASK_S)
    found = re.search(r'"jobmaster": "([a-z-]+):6123"', said)
    return found[1] if found else ""


class Sidecar:
    """A sidecar on a host: the README's settings, then its command."""

    def __init__(self, host: Host, steps: Steps) -> None:
        self._host = host
        self._log = host.folder / "sidecar.log"
        self._command = host.command(f"{steps.settings}\nexec {steps.run}")

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, env=self._host.environment(variables(self._host)), stdout=log, stderr=log
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.lose()

    def lose(self) -> None:
        end(self._host)
        self._process.kill()
        self._process.wait(HANGS_S)

    def log(self) -> str:
        return self._log.read_text(errors="replace")
