"""Qualification: the stages that are no gate, one after the other. ``python -m tests.gate.qualify`` (``make qualify``).

A stage that has passed on this commit is not run again, unless it is asked for by name. What was found is kept in
``docs/evidence/qualify.md``: of each stage the newest run, as a table, and as JSON in a comment.
"""

import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tests.gate import again, machine, processes
from tests.gate.__main__ import NotBegunError, collect, new_folder
from tests.gate.lane import ROOT
from tests.gate.report import Clock, red
from tests.gate.run import Run
from tests.stages import STAGES

PAGE = ROOT / "docs" / "evidence" / "qualify.md"
BEGIN, END = "<!-- The record:\n", "\n-->\n"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(STAGES)))
@click.option("--again", "anew", is_flag=True, help="Run also what has passed on this commit.")
def main(names: Sequence[str], anew: bool) -> None:
    """Run the stages NAMES, or all that have not passed on this commit."""
    commit = again.git("rev-parse", "HEAD")[0]
    if [path for path in again.changed() if not path.startswith("docs/evidence/")]:
        commit += "+"  # what is run is not what is committed
    known = read()
    codes = []
    with processes.run_of_its_own() as (temporary, _):
        for name in names or [each for each in STAGES if anew or not passed_on(known.get(each), commit)]:
            known[name] = stage(name, commit, temporary)
            processes.end(lambda: processes.of_run(os.environ[processes.RUN]))
            PAGE.write_text(page(known))
            codes.append(known[name]["passed"])
    sys.exit(0 if all(codes) else 1)


def stage(name: str, commit: str, temporary: Path) -> dict[str, Any]:
    """Run a stage alone; returns what is kept of it."""
    clock, folder = Clock(), new_folder()
    clock.say(f"Stage {name}: {STAGES[name].proves}")
    slow = machine.slowness()
    run = Run(folder, temporary, clock.begun + STAGES[name].minutes * 60, machine.Watch(), slow, say=clock.say)
    plan: dict[str, list[str]] = {}
    try:
        run.why = prepared(STAGES[name].first, folder, run.end_at)
        if not run.why and (STAGES[name].tests or not STAGES[name].first):  # else its commands are all
            plan[name] = [each["id"] for each in collect(folder, (), name)]
            run.why = "" if plan[name] else "No test is in this stage."
            run.lanes(plan)
    except NotBegunError as error:
        run.why = f"Its tests cannot be collected: {error}"
    count = Counter(each.outcome for each in run.results.values())
    for each in run.results.values():
        if each.outcome == "failed":
            clock.say(f"==== FAILED {each.id}\n{each.text or each.error}")
    why = red(run, plan, []) if plan or run.why else ""
    if not why and count["skipped"]:
        reasons = {each.skipped for each in run.results.values() if each.outcome == "skipped"}
        why = f"SKIPPED {count['skipped']}: {'; '.join(sorted(reasons))}"
    clock.say(f"{name}: {why or 'passed'}; {dict(count)}")
    return {
        "commit": commit,
        "at": datetime.now(UTC).strftime("%F %R"),
        "passed": not why,
        "tests": dict(count),
        "why": why.partition("\n")[0][:90],
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
    found: dict[str, Any] = json.loads(PAGE.read_text().rpartition(BEGIN)[2].removesuffix(END))
    return found


def passed_on(entry: Mapping[str, Any] | None, commit: str) -> bool:
    return entry is not None and entry["passed"] and entry["commit"] == commit and not commit.endswith("+")


def page(known: Mapping[str, Any]) -> str:
    """Return the table for people."""
    lines = [
        "# Qualification",
        "",
        "What is long, about speed, or needs the machine alone is no gate: `make qualify` runs it, stage by stage.",
        "`make qualify STAGES='faults page'` runs these alone. The whole record is in the source of this page.",
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
        result = "passed" if entry["passed"] else f"**not passed**: {entry['why']}"
        lines.append(
            f"| {name} | {each.proves} | {result} | {tests} | {entry['minutes']} | {entry['core_minutes']}"
            f" | {entry['at']} | {entry['commit'][:10]}{'+' * entry['commit'].endswith('+')} |"
        )
    return "\n".join(lines) + f"\n\n{BEGIN}{json.dumps(known, indent=1, separators=(',', ':'), sort_keys=True)}{END}"


if __name__ == "__main__":
    main()
