"""The driver notes itself before it has its JVM; whoever it starts does not take its place."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ha.hook import driver_note
from tests.patience import PATIENCE_S


def launched(file: Path) -> list[str]:
    """Launch a gateway; return what was noted by then."""
    seen: list[str] = []

    def launch(*given: object, **named: object) -> object:
        seen.append(file.read_text())
        return given, named

    module = SimpleNamespace(launch_gateway=launch)
    driver_note.changes(str(file))[driver_note.MODULE](module)
    assert module.launch_gateway("conf", popen_kwargs=1) == (("conf",), {"popen_kwargs": 1})
    return seen


def gone() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(PATIENCE_S)
    return process.pid


@pytest.mark.parametrize("before", [None, "", gone])
def test_it_is_noted_before_it_has_a_jvm(tmp_path: Path, before: object) -> None:
    file = tmp_path / "driver"
    if before is not None:
        file.write_text(f"{before()}\n" if callable(before) else "")
    assert launched(file) == [f"{os.getpid()}\n"]


def test_one_that_lives_counts_before_those_that_it_starts(tmp_path: Path) -> None:
    file = tmp_path / "driver"
    file.write_text(f"{os.getppid()}\n")
    assert launched(file) == [f"{os.getppid()}\n"]


def test_a_disk_that_is_full_keeps_no_driver_from_its_jvm(tmp_path: Path) -> None:
    module = SimpleNamespace(launch_gateway=lambda: "a JVM")
    driver_note.changes(str(tmp_path / "none" / "driver"))[driver_note.MODULE](module)
    assert module.launch_gateway() == "a JVM"
