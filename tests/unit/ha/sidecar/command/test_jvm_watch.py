"""The JVM of a driver: an end is told as long as the driver lives, whichever comes first, one after the other."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ha.sidecar.command import jvm_watch
from ha.sidecar.command.jvm_watch import ASTRAY, DRIVER, LOOK_S, SPARK, UNHOOKED, JvmWatch
from tests.lacks import no_descriptor_free
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

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


def spark(program: str = "java", word: str = SPARK.decode()) -> Process:
    """Start what looks like a JVM of Spark, unless another program or word is said."""
    return subprocess.Popen([program, "-c", "import signal; signal.pause()", word], executable=sys.executable)


@pytest.mark.parametrize(
    ("program", "word", "noted", "astray"),
    [
        ("java", SPARK.decode(), False, True),
        ("/usr/lib/jvm/bin/java", SPARK.decode(), False, True),
        ("java", SPARK.decode(), True, False),
        ("bash", SPARK.decode(), False, False),  # spark-class, before it has read spark-env.sh
        ("java", "org.apache.spark.deploy.worker.Worker", False, False),
    ],
)
def test_a_jvm_of_spark_that_is_not_noted_is_astray(
    jvm: Path, monkeypatch: pytest.MonkeyPatch, program: str, word: str, *, noted: bool, astray: bool
) -> None:
    clock = [0.0]
    monkeypatch.setattr(jvm_watch, "now", lambda: clock[0])
    watch, one = JvmWatch(str(jvm)), spark(program, word)
    try:
        wait_until(lambda: word.encode() in Path(f"/proc/{one.pid}/cmdline").read_bytes())
        if noted:
            note(jvm, one)
        assert not watch.astray(), "it is looked for once a second"
        clock[0] += LOOK_S
        assert watch.astray() == (ASTRAY if astray else None)
    finally:
        end(one)


def test_what_a_driver_starts_beside_its_own_jvm_is_its_matter(jvm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_watch, "LOOK_S", 0.0)
    watch, one, other = JvmWatch(str(jvm)), spark(), spark()
    try:
        note(jvm, one)
        assert watch.ending()
        end(one)
        assert not watch.orphaned()
        jvm.unlink()
        assert not watch.astray()
    finally:
        end(one)
        end(other)


def test_without_a_free_descriptor_nothing_is_known_and_it_is_asked_again(
    jvm: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[], Process]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(jvm_watch, "now", lambda: clock[0])
    watch, one, other = JvmWatch(str(jvm)), spark(), start()
    try:
        wait_until(lambda: SPARK in Path(f"/proc/{one.pid}/cmdline").read_bytes())
        clock[0] += LOOK_S
        note(jvm, one)
        with no_descriptor_free():
            assert not watch.astray()
            assert watch.ending() == []
        assert watch.ending(), "it is noted, and found now"
        end(one)
        assert has_ended(watch)
        note(driver(jvm), other)
        with no_descriptor_free():
            assert not watch.orphaned(), "nobody knows"
            assert watch.ending() == [], "its end does not keep the guard busy"
        clock[0] += LOOK_S
        assert has_ended(watch)
        assert watch.orphaned()
    finally:
        end(one)


JOINS = (
    "import os, signal, socket; "
    "there = socket.create_connection(('127.0.0.1', int(os.environ['PYSPARK_GATEWAY_PORT']))); there.recv(1); "
    "{}; signal.pause()"
)


@pytest.mark.parametrize(
    ("does", "noted", "told"), [("there", False, UNHOOKED), ("there", True, None), ("there.close()", False, None)]
)
def test_a_python_that_joins_its_jvm_and_is_not_noted_has_no_hook(
    jvm: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[], Process], does: str, told: object, *, noted: bool
) -> None:
    clock = [0.0]
    monkeypatch.setattr(jvm_watch, "now", lambda: clock[0])
    watch = JvmWatch(str(jvm))
    note(jvm, start())
    assert watch.ending()
    with socket.create_server(("127.0.0.1", 0)) as gateway:
        gateway.settimeout(PATIENCE_S)
        environment = {**os.environ, "PYSPARK_GATEWAY_PORT": f"{gateway.getsockname()[1]}"}
        python = subprocess.Popen([sys.executable, "-c", JOINS.format(does)], env=environment)
        try:
            connection = gateway.accept()[0]
            if noted:
                note(driver(jvm), python)
            connection.sendall(b"x")
            if does != "there":
                assert connection.recv(1) == b"", "it has left"
            clock[0] += LOOK_S
            assert watch.astray() == told
            connection.close()
        finally:
            end(python)
