"""Qualification: the stages that are no gate, one after the other. ``python -m tests.gate.qualify`` (``make qualify``).

A stage that has passed on this commit is not run again, unless it is asked for by name. What was found is kept in
``docs/evidence/qualify.json``: of each stage the newest run.
"""

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tests.gate import again, machine, processes
from tests.gate.__main__ import collect, new_folder
from tests.gate.lane import ROOT
from tests.gate.report import Clock
from tests.gate.run import Run, environment_of_run
from tests.stages import STAGES

RECORD = ROOT / "docs" / "evidence" / "qualify.json"
PAGE = ROOT / "docs" / "evidence" / "qualify.md"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(STAGES)))
@click.option("--again", "anew", is_flag=True, help="Run also what has passed on this commit.")
def main(names: Sequence[str], anew: bool) -> None:
    """Run the stages NAMES, or all that have not passed on this commit."""
    run_id = processes.own_run()
    environment_of_run(run_id)
    processes.end_left(Path(tempfile.gettempdir()))
    commit = again.git("rev-parse", "HEAD")[0]
    known = read()
    chosen = [name for name in names or STAGES if names or anew or not passed_on(known.get(name), commit)]
    codes = []
    for name in chosen:
        try:
            known[name] = stage(name, commit)
        finally:
            processes.end(processes.of_run(run_id))
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(page(known))
        codes.append(known[name]["passed"])
    sys.exit(0 if all(codes) else 1)


def stage(name: str, commit: str) -> dict[str, Any]:
    """Run a stage alone; returns what is kept of it."""
    clock, folder = Clock(), new_folder()
    temporary = Path(tempfile.gettempdir(), f"{processes.FOLDERS}{os.environ[processes.RUN]}")
    temporary.mkdir(exist_ok=True)
    clock.say(f"Stage {name}: {STAGES[name].proves}")
    slow = machine.slowness()
    run = Run(folder, temporary, clock.begun + STAGES[name].minutes * 60, machine.Watch(), slow, say=clock.say)
    ids = [each["id"] for each in collect(folder, (), name)] if STAGES[name].tests else []
    try:
        run.why = prepared(STAGES[name].first, folder, run.end_at)
        run.lanes({name: ids} if ids else {})
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    count = Counter(each.outcome for each in run.results.values())
    for each in run.results.values():
        if each.outcome == "failed":
            clock.say(f"==== FAILED {each.id}\n{each.text or each.error}")
    lost = len(ids) - len(run.results)
    passed = not (count["failed"] or run.why or lost) and bool(count["passed"] or not ids)
    clock.say(f"{name}: {'passed' if passed else 'RED'}: {dict(count)}, {lost} not run. {run.why}")
    return {
        "commit": commit,
        "at": datetime.now(UTC).strftime("%F %R"),
        "passed": passed,
        "tests": dict(count) | {"not run": lost},
        "failed": sorted(each.id for each in run.results.values() if each.outcome == "failed"),
        "why": run.why.partition("\n")[0],
        "minutes": round(clock.seconds / 60, 1),
        "core_minutes": round((machine.core_seconds() - clock.core_seconds) / 60, 1),
        "slowness": round(slow, 2),
        "longest_stall_s": round(run.watch.stall(), 2),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": os.cpu_count(),
    }


def prepared(commands: Sequence[str], folder: Path, end_at: float) -> str:
    """Run the commands of a stage; returns which of them failed, and how."""
    for command in commands:
        log = folder / "commands.log"
        with log.open("a") as out:
            try:
                left = end_at - time.monotonic()
                code = subprocess.run(
                    shlex.split(command), cwd=ROOT, stdout=out, stderr=out, timeout=left, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                return f"{command} is over its time."
        if code:
            return f"{command} ended with {code}: {' '.join(log.read_text(errors='replace').splitlines()[-3:])}"
    return ""


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


def passed_on(entry: Mapping[str, Any] | None, commit: str) -> bool:
    return entry is not None and entry["passed"] and entry["commit"] == commit


def page(known: Mapping[str, Any]) -> str:
    """Return the table for people."""
    lines = [
        "# Qualification",
        "",
        "What is long, about speed, or needs the machine alone is no gate: `make qualify` runs it, stage by stage.",
        "`make qualify STAGES='faults page'` runs these alone. The record is `qualify.json` beside this page.",
        "A row is the newest run of a stage; a stage that never ran here is *not proven*.",
        "",
        "| stage | what it proves | result | tests | minutes | core-minutes | when | commit |",
        "|---|---|---|---|---:|---:|---|---|",
    ]
    for name, each in STAGES.items():
        entry = known.get(name)
        if entry is None:
            lines.append(f"| {name} | {each.proves} | *not proven* | | | | | |")
            continue
        tests = ", ".join(f"{count} {what}" for what, count in entry["tests"].items() if count)
        result = "passed" if entry["passed"] else f"**red**: {', '.join(entry['failed']) or entry['why']}"
        lines.append(
            f"| {name} | {each.proves} | {result} | {tests} | {entry['minutes']} | {entry['core_minutes']}"
            f" | {entry['at']} | {entry['commit'][:10]} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
