"""The gate: whether this commit may land. ``python -m tests.gate`` (``make test``).

Exit codes: 0 passed; 1 red; 3 the machine cannot do it (ENVIRONMENT), which says nothing about the commit.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ha.hosts.host_error import HostError
from ha.sandbox import Sandbox
from tests.gate import again, machine, processes
from tests.gate.lane import ROOT, Result
from tests.gate.plan import LANES, planned
from tests.gate.report import RED, Clock, conclude
from tests.gate.run import AGAIN, Run
from tests.gate.smoke import UNFIT, Unfit
from tests.stages import GATE

COLLECT_S, SMOKE_S = 300.0, 600.0
AGAIN_S = 240.0
KEPT = 30
"""Folders of earlier runs that stay."""


@click.command()
@click.option("--minutes", default=30.0, show_default=True, help="Longest time of a run.")
@click.option("--check", default="make lint", show_default=True, help="A command that runs beside the tests.")
@click.option("--lane", "lanes", multiple=True, type=click.Choice(list(LANES)), help="Run these lanes alone.")
@click.argument("paths", nargs=-1)
def main(minutes: float, check: str, lanes: tuple[str, ...], paths: tuple[str, ...]) -> None:
    """Run the tests of the gate: all, or those below PATHS."""
    with processes.run_of_its_own() as (temporary, left):
        code = gate(Clock(), temporary, minutes, check, lanes or tuple(LANES), paths, left)
    sys.stdout.flush()
    os._exit(code)  # a thread that looks at a server which has just been ended is not waited for


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
    try:
        run.slowness = machine.slowness()
    except (HostError, OSError, subprocess.SubprocessError) as error:
        clock.say(f"ENVIRONMENT: a Python or a Java does not start. {error}")
        return UNFIT
    clock.say(
        f"Starts of programs take {run.slowness:.1f} times as long as usual; {folder.relative_to(ROOT)} has all logs."
    )
    run.sandbox = Sandbox(temporary / "sandbox")
    pool = ThreadPoolExecutor(2)  # what it waits for has a limit, and ends with the run
    with (folder / "check.log").open("w+") as said:
        run.check = subprocess.Popen(
            shlex.split(check), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said, text=True
        )
        collecting, smoking = pool.submit(collect, folder, paths), pool.submit(smoked, run.sandbox.directory, folder)
        try:
            plan = {name: ids for name, ids in planned(collecting.result()).items() if name in lanes}
        except NotBegunError as error:
            clock.say(f"RED. The tests cannot begin:\n{error}")
            return RED
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        sizes = ", ".join(f"{name} {len(ids)}" for name, ids in plan.items())
        clock.say(f"{sum(map(len, plan.values()))} tests in {len(plan)} lanes: {sizes}")
        run.smoke = smoking
        run.lanes(plan)
        if smoking.done() and isinstance(smoking.exception(), Unfit):
            clock.say("ENVIRONMENT: this machine cannot do what the tests need; that is said above.")
            return UNFIT
        if run.check.poll():
            said.seek(0)
            clock.say(said.read()[-4000:])
    flaky = second_try(run, clock) if not run.why else []
    return conclude(run, clock, plan, flaky)


class NotBegunError(Exception):
    """Tests cannot be collected, or the smoke failed by a fault of this commit; the text is what was said."""


def ran(command: Sequence[str], log: Path, limit_s: float) -> int:
    """Run a Python program of this project; returns its exit code."""
    with log.open("w") as out:
        try:
            return subprocess.run(
                [sys.executable, *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                timeout=limit_s, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            out.write(f"\nIt hangs: nothing for {limit_s:g} s.\n")
            return UNFIT


def smoked(sandbox: Path, folder: Path) -> None:
    log = folder / "smoke.log"
    code = ran(["-m", "tests.gate.smoke", str(sandbox)], log, SMOKE_S)
    if code:
        raise (Unfit if code == UNFIT else NotBegunError)(log.read_text(errors="replace")[-4000:])


def collect(folder: Path, paths: Sequence[str], stage: str = GATE) -> list[dict[str, Any]]:
    """Return all tests of the gate, or of a stage.

    Raises:
        NotBegunError: they cannot be collected.
    """
    plan, log = folder / "plan.json", folder / "collect.log"
    command = ["-m", "pytest", f"--plan={plan}", f"--stage={stage}", "--collect-only", "-qq", *paths]
    if ran(command, log, COLLECT_S) or not plan.exists():
        raise NotBegunError(log.read_text(errors="replace")[-4000:])
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
    run.end_at = time.monotonic() + AGAIN_S
    for number, result in enumerate(chosen):
        clock.say(f"Again, alone: {result.id}")
        del run.results[result.id]
        run.lanes({f"{AGAIN}{result.lane}.{number}": [result.id]})
        if result.id in run.results and run.results[result.id].outcome == "passed":
            flaky.append(result)
        else:
            run.results[result.id] = result
    return flaky


if __name__ == "__main__":
    main()
