"""The gate: whether this commit may land. ``python -m tests.gate`` (``make test``).

Exit codes: 0 passed; 1 red; 3 the machine cannot do it (ENVIRONMENT), which says nothing about the commit.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ha.sandbox import Sandbox
from tests.gate import again, machine, processes
from tests.gate.lane import ROOT, Result
from tests.gate.plan import LANES, planned
from tests.gate.report import RED, Clock, conclude
from tests.gate.run import Run, environment_of_run
from tests.gate.smoke import Unfit, smoke
from tests.stages import GATE

UNFIT = 3
COLLECT_S = 180.0
AGAIN_S = 300.0
KEPT = 5
"""Folders of earlier runs that stay."""


@click.command()
@click.option("--minutes", default=20.0, show_default=True, help="Longest time of a run.")
@click.option("--check", default="make lint", show_default=True, help="A command that runs beside the tests.")
@click.option("--lane", "lanes", multiple=True, type=click.Choice(list(LANES)), help="Run these lanes alone.")
@click.argument("paths", nargs=-1)
def main(minutes: float, check: str, lanes: tuple[str, ...], paths: tuple[str, ...]) -> None:
    """Run the tests of the gate: all, or those below PATHS."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(RED))
    run_id = processes.own_run()
    environment_of_run(run_id)
    temporary = Path(tempfile.gettempdir(), f"{processes.FOLDERS}{run_id}")
    left = processes.end_left(temporary.parent)
    temporary.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    try:
        code = gate(Clock(), temporary, minutes, check, lanes or tuple(LANES), paths, left)
    finally:
        processes.end(processes.of_run(run_id))
        shutil.rmtree(temporary, ignore_errors=True)
    sys.exit(code)


def gate(
    clock: Clock,
    temporary: Path,
    minutes: float,
    check: str,
    lanes: Sequence[str],
    paths: Sequence[str],
    left: Sequence[str],
) -> int:
    """Run what is asked for, and say what came of it; returns the exit code."""
    folder = new_folder()
    for line in left:
        clock.say(f"An earlier run left something: {line}")
    run = Run(folder, temporary, clock.begun + minutes * 60, machine.Watch(), say=clock.say)
    run.slowness = machine.slowness()
    clock.say(
        f"Starts of programs take {run.slowness:.1f} times as long as usual; {folder.relative_to(ROOT)} has all logs."
    )
    run.sandbox = Sandbox(temporary / "sandbox")
    with (folder / "check.log").open("w+") as said, ThreadPoolExecutor(2) as pool:
        run.check = subprocess.Popen(
            shlex.split(check), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said, text=True
        )
        collecting, smoking = pool.submit(collect, folder, paths), pool.submit(smoke, run.sandbox)
        try:
            plan = {name: ids for name, ids in planned(collecting.result()).items() if name in lanes}
            smoking.result()
        except Unfit as error:
            clock.say(f"ENVIRONMENT: this machine cannot do what the tests need. {error}")
            return UNFIT
        except Uncollected as error:
            clock.say(f"The tests cannot be collected:\n{error}")
            return RED
        sizes = ", ".join(f"{name} {len(ids)}" for name, ids in plan.items())
        clock.say(f"{sum(map(len, plan.values()))} tests in {len(plan)} lanes: {sizes}")
        run.lanes(plan)
        if run.check.poll():
            said.seek(0)
            clock.say(said.read()[-4000:])
    flaky = second_try(run, clock) if not run.why else []
    return conclude(run, clock, plan, flaky)


class Uncollected(Exception):
    """Tests cannot be collected; the text is what pytest said."""


def collect(folder: Path, paths: Sequence[str], stage: str = GATE) -> list[dict[str, Any]]:
    """Return all tests of the gate, or of a stage."""
    plan = folder / "plan.json"
    command = [
        sys.executable,
        "-m",
        "pytest",
        f"--plan={plan}",
        f"--stage={stage}",
        "--collect-only",
        "-qq",
    ]
    ended = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True, timeout=COLLECT_S, check=False)
    if ended.returncode or not plan.exists():
        raise Uncollected((ended.stdout + ended.stderr)[-4000:])
    found: list[dict[str, Any]] = json.loads(plan.read_text())
    return found


def new_folder() -> Path:
    folders = ROOT / "build" / "gate"
    folders.mkdir(parents=True, exist_ok=True)
    for old in sorted(each for each in folders.iterdir() if each.is_dir())[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    folder = folders / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir()
    return folder


def second_try(run: Run, clock: Clock) -> list[Result]:
    """Try the failures again that may be luck, each alone; returns those that passed."""
    failed = [each for each in run.results.values() if each.outcome == "failed"]
    chosen = again.retried(failed, again.touched_lately()) if failed else []
    flaky = []
    for number, result in enumerate(chosen):
        clock.say(f"Again, alone: {result.id}")
        name = f"again-{number}"
        del run.results[result.id]
        run.end_at = max(run.end_at, time.monotonic() + AGAIN_S)
        run.lanes({name: [result.id]})
        if result.id not in run.results:
            run.results[result.id] = result
        elif run.results[result.id].outcome == "passed":
            flaky.append(result)
    return flaky


if __name__ == "__main__":
    main()
