"""The JVM of a driver: an end is told as long as the driver lives, whichever comes first, one after the other."""

import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ha.sidecar.command.jvm_watch import DRIVER, JvmWatch
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.programs

Process = subprocess.Popen[bytes]


@pytest.fixture
def start() -> Iterator[Callable[[], Process]]:
    started: list[Process] = []

    def one() -> Process:
        started.append(subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]))
        return started[-1]

    yield one
    for each in started:
        end(each)


def end(process: Process) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_S)


def note(file: Path, process: Process) -> None:
    file.write_text(f"{process.pid}\n")


def has_ended(watch: JvmWatch) -> bool:
    """Whether the watch is told of an end, which has happened."""
    return bool(select.select(watch.ending(), [], [], 0)[0])


@pytest.fixture
def jvm(tmp_path: Path) -> Path:
    return tmp_path / "conf.jvm"


def driver(jvm: Path) -> Path:
    return jvm.with_name(f"{jvm.name}{DRIVER}")


def test_as_long_as_none_is_noted_there_is_nothing_to_wait_for(jvm: Path, start: Callable[[], Process]) -> None:
    watch = JvmWatch(str(jvm))
    note(driver(jvm), start())
    assert watch.ending() == []
    note(jvm, start())
    assert len(watch.ending()) == 1
    assert not has_ended(watch)


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("lives", [True, False])
def test_a_driver_that_lives_has_lost_its_jvm(
    jvm: Path, start: Callable[[], Process], *, seen: bool, lives: bool
) -> None:
    watch, one, other = JvmWatch(str(jvm)), start(), start()
    note(jvm, one)
    note(driver(jvm), other)
    if seen:
        watch.ending()
    if not lives:
        end(other)
    end(one)
    assert has_ended(watch)
    assert watch.orphaned() is lives


def test_a_jvm_without_a_python_driver_is_its_own_driver(jvm: Path, start: Callable[[], Process]) -> None:
    watch, one = JvmWatch(str(jvm)), start()
    note(jvm, one)
    end(one)
    assert has_ended(watch)
    assert not watch.orphaned()


def test_a_program_may_follow_another_one(jvm: Path, start: Callable[[], Process]) -> None:
    watch = JvmWatch(str(jvm))
    for _ in range(2):
        one, other = start(), start()
        note(jvm, one)
        note(driver(jvm), other)
        assert not has_ended(watch)
        end(other)
        end(one)
        assert has_ended(watch)
        assert not watch.orphaned()
        assert watch.ending() == [], "it is forgotten, although it is noted still"
    last = start()
    note(jvm, last)
    note(driver(jvm), start())
    end(last)
    assert has_ended(watch)
    assert watch.orphaned()
