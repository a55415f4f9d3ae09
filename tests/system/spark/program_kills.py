"""Kill the program and the sidecar in turn, again and again, under a stateful query and one with ``foreachBatch``.

python -m tests.system.spark.program_kills --kills 100

It runs ``drivers/engine.py`` under ``ha run --engine`` on this host's files, or on the stores of the environment with
``--stores``. Exit code 1 if a query that should go on was interrupted, a line is missing or doubled, or another led.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from ha.drill.kill import descendants
from store.clock import now
from store.errors import NotFound
from store.open import open_files
from tests.limits import HANGS_S

T = TypeVar("T")

HA = (sys.executable, "-P", "-m", "ha.cli")
DRIVER = str(Path(__file__).parent / "drivers" / "engine.py")
STEADY = {"words", "spelt"}
ADOPTED = re.compile(r"words runs, and is reattached ([0-9.]+) s")
ATTACHED = re.compile(r"is used by this program, ([0-9.]+) s")
PATIENCE_S = 300.0
SETTINGS = {
    # So long that a busy machine has the time to start a process.
    **{f"HA_{name}": "60" for name in ("SHORT_TTL", "SESSION_TIMEOUT", "ADOPT_WITHIN")},
    "HA_LONG_TTL": "300",
    "HA_CONTENDER": "a",
    "HA_RESTART_STRATEGY": "fixed-delay",
    "HA_RESTART_ATTEMPTS": "1000000",
    "HA_RESTART_DELAY": "0",
}


class Marathon:
    def __init__(self, folder: Path, stores: dict[str, str]) -> None:
        self.folder = folder
        self.source = folder / "in"
        self.source.mkdir()
        root = stores.get("HA_FILES") or (folder / "jobs").as_uri()
        self.output = f"{root.rpartition('/')[0]}/program-kills-{os.getpid()}"
        known = {"HA_FILES": root, "HA_ZOOKEEPER": stores.get("HA_ZOOKEEPER", ""), "HA_SNAPSHOTS": "off"}
        self.environment = {**os.environ, **known, **SETTINGS, "PYSPARK_PYTHON": sys.executable}
        self.job = f"program-kills-{os.getpid()}"
        self.fed = 0
        self.log = folder / "log"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        command = [*HA, "run", self.job, "--engine", "--", sys.executable, DRIVER, self.job]
        with self.log.open("ab") as log:
            command += [self.source.as_uri(), self.output]
            self.started.append(
                subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=log, stderr=log)
            )

    def kill_sidecar(self) -> float:
        """Kill the sidecar, start another, and return the seconds until that has taken the leadership up."""
        before = self.said("(adopted)")
        self.started[-1].kill()
        self.started[-1].wait(HANGS_S)
        began = now()
        self.start()
        wait_for(lambda: self.said("(adopted)") > before)
        return now() - began

    def kill_program(self) -> tuple[float, float]:
        """Kill the program; returns the seconds from the next one's start until it uses Spark, and has reattached."""
        before = self.said("words runs, and is reattached")
        os.kill(self.program, 9)
        wait_for(lambda: self.said("words runs, and is reattached") > before)
        return float(ATTACHED.findall(self.text)[-1]), float(ADOPTED.findall(self.text)[-1])

    @property
    def program(self) -> int:
        """The process of the program; init has what a dead sidecar has left."""
        for pid in descendants(1):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words[1:3] == [DRIVER, self.job]:
                return pid
        raise SystemExit("There is no program.")

    def feed(self) -> None:
        """Add a file with one line, complete at once, and wait until it is published."""
        self.fed += 1
        staged = self.folder / f"{self.fed}"
        staged.write_text(f"line {self.fed}\n")
        staged.rename(self.source / f"{self.fed}.txt")
        wait_for(lambda: len(self.lines()) >= self.fed)

    def lines(self) -> list[str]:
        with open_files(self.output) as files, suppress(NotFound):  # before the first batch
            return files.call("read", _lines, 30.0)
        return []

    def queries(self) -> dict[str, str]:
        told = subprocess.run(
            [*HA, "job", "queries", self.job, "--json"],
            env=self.environment,
            capture_output=True,
            check=False,
            timeout=HANGS_S,
        )
        found: list[dict[str, Any]] = json.loads(told.stdout)["queries"] if told.returncode == 0 else []
        runs = found and all(each["state"] == "RUNNING" for each in found)
        return {each["query"]: each["run_id"] for each in found} if runs else {}

    @property
    def text(self) -> str:
        return self.log.read_bytes().decode(errors="replace")

    def said(self, what: str) -> int:
        return self.text.count(what)


def _lines(files: Any) -> list[str]:
    batches = [each.name for each in files.list("") if each.name.startswith("batch=")]
    parts = [f"{batch}/{part.name}" for batch in batches for part in files.list(batch) if part.name[0] not in "._"]
    return [line for part in parts for line in files.read(part, 10_000).decode().splitlines()]


def wait_for(found: Callable[[], T]) -> T:
    end, pause = now() + PATIENCE_S, threading.Event()
    while not (value := found()):
        if now() >= end:
            raise SystemExit(f"Not within {PATIENCE_S:g} s.")
        pause.wait(0.05)
    return value


@click.command()
@click.option("--kills", default=100, show_default=True, help="How many, half of them of the program.")
@click.option("--stores", is_flag=True, help="Use HA_FILES and HA_ZOOKEEPER, not files of this host.")
def main(kills: int, stores: bool) -> None:
    """Count what is interrupted; exit code 1 if anything is wrong."""
    chosen = {name: os.environ.get(name, "") for name in ("HA_FILES", "HA_ZOOKEEPER")} if stores else {}
    attached, adopted, taken_up = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="program-kills-") as folder:
        marathon = Marathon(Path(folder), chosen)
        marathon.start()
        try:
            marathon.feed()
            first = wait_for(marathon.queries)
            for number in range(kills):
                if number % 2:
                    taken_up.append(marathon.kill_sidecar())
                else:
                    seconds = marathon.kill_program()
                    attached.append(seconds[0])
                    adopted.append(seconds[1])
                marathon.feed()
                click.echo(f"\r{number + 1} of {kills}", nl=False, err=True)
            last, lines = wait_for(marathon.queries), marathon.lines()
            same = {name for name in last if last[name] == first[name]}
            exact = sorted(lines) == sorted(f"line {number + 1}" for number in range(marathon.fed))
            whole = subprocess.run(
                [*HA, "output", "verify", marathon.job], env=marathon.environment, check=False, timeout=HANGS_S
            )
            starts, grants = marathon.said(": the command runs, guarded"), marathon.said("granted at epoch 1,")
        finally:
            marathon.started[-1].terminate()
            marathon.started[-1].wait(60)
    for what, seconds_of in (
        ("from the program's start until it uses Spark", attached),
        ("from there until it has reattached", [b - a for a, b in zip(attached, adopted, strict=True)]),
        ("from the sidecar's start until it has taken up", taken_up),
    ):
        if seconds_of:
            said = f"{min(seconds_of):.2f} to {max(seconds_of):.2f} s, median {statistics.median(seconds_of):.2f} s"
            click.echo(f"{what}: {said}")
    right = same == STEADY and exact and whole.returncode == 0 and starts == 1 and grants == 1 + len(taken_up)
    click.echo(
        f"{len(adopted)} kills of the program, {len(taken_up)} of the sidecar; same runs: {', '.join(sorted(same))}; "
        f"{len(lines)} lines of {marathon.fed}, {'exact' if exact else 'NOT EXACT'}; {starts} start of Spark"
    )
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
