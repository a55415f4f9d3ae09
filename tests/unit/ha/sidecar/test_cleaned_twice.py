"""A standby waits while its temporary directory is cleaned twice, of all that is in it: it leads all the same.

In its usual time: ``tests/system/spark/test_cleaned.py``.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.ha.noting import STAYS, Notes, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.sidecar.test_things_removed import RUNS, place, start
from tests.unit.ha.sidecar.test_warm_standby import warm
from tests.unit.ha.waiting import wait_until


def clean(folder: Path) -> list[str]:
    """Clean as tmpreaper does after a long time, which knows no locks; returns what it has removed, in order."""
    gone = []
    for home, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            each = Path(home, name)
            with suppress(OSError):  # something is written there at this very moment: it stays, as there
                each.rmdir() if each.is_dir() and not each.is_symlink() else each.unlink()
                gone.append(name)
    return gone


def clean_twice(folder: Path) -> None:
    """Clean it, and once more when the sidecar has made its files again."""
    for _ in range(2):
        wait_until(lambda: list(folder.glob(f"{RUNS}/deadline")), what="its sidecar has made it again")
        assert "deadline" in clean(folder)


def ready(workplace: Workplace, name: str, *, is_warm: bool) -> Program:
    """Start a standby; it waits when this returns."""
    source, options = (warm(), ["--standby", "warm"]) if is_warm else (STAYS, [])
    program = start(workplace, name, source, *options)
    program.until_said(f"contending as {name}")
    if is_warm:
        wait_until(lambda: list(place(workplace, name).glob(f"{RUNS}/grant-1.awaited")), what="it waits")
    return program


def leads(notes: Notes, name: str) -> bool:
    return any(each == name and what != "warm" for each, what, *_ in notes.all())


@pytest.mark.parametrize("kind", ["cold", "warm"])
def test_a_standby_leads(workplace: Workplace, notes: Notes, kind: str) -> None:
    leader = start(workplace, "a", STAYS)
    notes.until(1, leader)
    standby = ready(workplace, "b", is_warm=kind == "warm")
    clean_twice(place(workplace, "b"))
    leader.send(signal.SIGKILL)
    wait_until(lambda: leads(notes, "b"), what=f"b leads; it said: {standby.said}")
    assert state(workplace)[0].epoch == 2, f"at once: {standby.said}"
    assert len({pid for name, _, pid, _ in notes.all() if name == "b"}) == 1, "one command"
