"""Commands for a sidecar that write notes, and a look into the job's directory."""

import json
import sys
from typing import Any

from leader.layout.information import Record
from leader.layout.names import LeaderDirectory, newest
from store.local import LocalFiles
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import wait_until

NOTES = """
import json, os, signal, sys
def note(what):
    with open("notes", "a") as file:
        print(json.dumps([os.environ.get("NAME", ""), what, os.getpid(), int(os.environ["HA_EPOCH"])]), file=file)
def stay():
    while True: signal.pause()
"""
ENDS = NOTES + "note('runs'); sys.exit(int(os.environ.get('CODE', '0')))"
STAYS = NOTES + "signal.signal(signal.SIGTERM, lambda *_: (note('asked'), sys.exit(0)))\nnote('runs'); stay()"
STUBBORN = NOTES + "signal.signal(signal.SIGTERM, lambda *_: note('asked'))\nnote('runs'); stay()"


class Notes:
    def __init__(self, workplace: Workplace) -> None:
        self.file = workplace.work / "notes"

    def all(self) -> list[tuple[str, Any, int, int]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [tuple(json.loads(line)) for line in lines]

    def until(self, count: int, program: Program) -> tuple[str, Any, int, int]:
        """Wait for this many notes; returns the last of them."""
        wait_until(lambda: len(self.all()) >= count, what=f"{count} notes; it said: {program.said}")
        return self.all()[count - 1]


def run(workplace: Workplace, name: str, source: str, *options: str, **environment: str) -> Program:
    command = (sys.executable, "-c", source)
    return workplace.ha("run", "orders", "--contender", name, *options, "--", *command, NAME=name, **environment)


def state(workplace: Workplace) -> tuple[LeaderDirectory, Record, list[str]]:
    files = LocalFiles(workplace.jobs)
    directory = newest([entry.name for entry in files.list("orders")])
    assert directory is not None
    home = f"orders/{directory.name}"
    found = Record.parse(entry.name for entry in files.list(f"{home}/record"))
    status = [entry.name.partition("~")[0] for entry in files.list(home) if entry.name.startswith("status=")]
    return directory, found, status


def shown(workplace: Workplace, *command: str) -> Any:
    """Run a command for the job, which goes well; returns what it prints as JSON."""
    program = workplace.ha(*command, "orders", "--json")
    assert program.wait() == 0, program.said
    return json.loads(program.output.read_text())


UNHURRIED = {"HA_HAND_OVER": "20"}
"""Timings for a busy machine, on which the next leader of a job may be slow."""
