"""A call ends at its deadline, whatever the driver does; time is real here, because threads are."""

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from store.bounded import BoundedFiles
from store.clock import now
from store.errors import DeadlineExceeded, NotFound, NotSent, PermissionDenied, Unknown
from store.files import Files
from store.outcome import Outcome
from store.pool import MAX_QUEUED
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

LONG = 30.0
SHORT = 1.0
"""Long enough for a thread to begin a call on a busy machine."""


class Driver:
    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


class Opener:
    def __init__(self) -> None:
        self.opened: list[Driver] = []

    def __call__(self) -> Files:
        self.opened.append(Driver(len(self.opened)))
        return cast("Files", self.opened[-1])


class Gate:
    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        self.passed = threading.Semaphore(0)

    def __call__(self, _: Files) -> str:
        self.entered.release()
        assert self.open.wait(LONG)
        self.passed.release()
        return "late"


@pytest.fixture
def opener() -> Opener:
    return Opener()


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


def number(driver: Files) -> int:
    return cast("Driver", driver).number


def test_a_result_and_its_times(opener: Opener) -> None:
    with BoundedFiles(opener) as files:
        before = now()
        inside: list[float] = []
        outcome = files.outcome("probe", lambda _: inside.append(now()), LONG)
        assert outcome.done
        assert before <= outcome.started <= inside[0] <= outcome.ended <= now()


def test_errors_pass_and_strangers_become_unknown(opener: Opener) -> None:
    def fail(error: BaseException) -> Callable[[Files], None]:
        def operation(_: Files) -> None:
            raise error

        return operation

    with BoundedFiles(opener) as files:
        with pytest.raises(NotFound, match="gone"):
            files.call("a", fail(NotFound("gone")), LONG)
        for stranger in (ValueError("x"), KeyError("y"), SystemExit(3), KeyboardInterrupt()):
            with pytest.raises(Unknown, match=type(stranger).__name__):
                files.call("b", fail(stranger), LONG)
        assert files.call("c", number, LONG) == 0  # neither cost a thread or the driver
        assert files.stuck == 0


def test_nothing_is_opened_before_the_first_call_and_one_driver_serves_all(opener: Opener) -> None:
    with BoundedFiles(opener) as files:
        assert opener.opened == []
        assert [files.call("a", number, LONG) for _ in range(20)] == [0] * 20
    assert opener.opened[0].closed.wait(LONG)


def test_a_stuck_call_is_unknown_and_its_driver_replaced(opener: Opener, gate: Gate) -> None:
    with BoundedFiles(opener) as files:
        outcome = files.outcome("rename", gate, SHORT)
        assert isinstance(outcome.error, DeadlineExceeded)
        assert outcome.unknown
        assert outcome.ended - outcome.started >= SHORT * 0.9
        assert (files.stuck, files.late) == (1, 0)
        assert files.call("next", number, LONG) == 1
        assert not opener.opened[0].closed.is_set()  # a call is still inside it
        gate.open.set()
        assert opener.opened[0].closed.wait(LONG)
        wait_until(lambda: (files.stuck, files.late) == (0, 1))
        assert not opener.opened[1].closed.is_set()


def test_a_call_no_thread_took_in_time_is_not_sent_and_never_will_be(opener: Opener, gate: Gate) -> None:
    ran: list[str] = []
    with BoundedFiles(opener, workers=1) as files:
        ended: list[Outcome[Any]] = []
        files.submit("first", gate, LONG, ended.append)
        assert gate.entered.acquire(timeout=LONG)
        outcome = files.outcome("second", lambda _: ran.append("second"), SHORT)
        assert isinstance(outcome.error, NotSent)
        assert outcome.refused
        gate.open.set()
        files.call("third", lambda _: ran.append("third"), LONG)
        assert ran == ["third"]
        assert [each.value for each in ended] == ["late"]


def test_what_waits_behind_a_stuck_call_gets_its_place(opener: Opener, gate: Gate) -> None:
    with BoundedFiles(opener, workers=1) as files:
        ended: list[Outcome[Any]] = []
        files.submit("stuck", gate, SHORT, ended.append)
        assert gate.entered.acquire(timeout=LONG)
        assert files.call("waiting", number, LONG) == 1
        assert isinstance(ended[0].error, DeadlineExceeded)


def test_too_many_stuck_calls_refuse_all_others_at_once(opener: Opener, gate: Gate) -> None:
    with BoundedFiles(opener, workers=1, max_stuck=2) as files:
        for _ in range(2):
            assert isinstance(files.outcome("stuck", gate, SHORT).error, DeadlineExceeded)
        outcome = files.outcome("refused", number, LONG)
        assert isinstance(outcome.error, NotSent)
        assert "2 earlier calls are stuck" in str(outcome.error)
        gate.open.set()
        wait_until(lambda: files.stuck == 0)
        assert files.call("again", number, LONG) == 2


def test_the_queue_is_bounded(opener: Opener, gate: Gate) -> None:
    with BoundedFiles(opener, workers=1) as files:
        ended: list[Outcome[Any]] = []
        files.submit("first", gate, LONG, ended.append)
        assert gate.entered.acquire(timeout=LONG)
        for _ in range(MAX_QUEUED):
            files.submit("queued", number, LONG, ended.append)
        outcome = files.outcome("too many", number, LONG)
        assert isinstance(outcome.error, NotSent)
        gate.open.set()
        wait_until(lambda: len(ended) == MAX_QUEUED + 1)
        assert all(each.done for each in ended)


@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_no_time_at_all(opener: Opener, timeout: float) -> None:
    ran: list[int] = []
    with BoundedFiles(opener) as files:
        assert isinstance(files.outcome("a", lambda _: ran.append(1), timeout).error, NotSent)
        files.call("b", lambda _: None, LONG)
        assert ran == []


def test_a_driver_that_cannot_be_opened(opener: Opener) -> None:
    errors: list[BaseException] = [PermissionDenied("no ticket"), Unknown("odd"), ImportError("no module")]

    def open_driver() -> Files:
        if errors:
            raise errors.pop(0)
        return opener()

    with BoundedFiles(open_driver) as files:
        assert isinstance(files.outcome("a", number, LONG).error, PermissionDenied)
        assert isinstance(files.outcome("b", number, LONG).error, NotSent)  # nothing was sent, so it is not unknown
        assert isinstance(files.outcome("c", number, LONG).error, NotSent)
        assert files.call("d", number, LONG) == 0


def test_a_driver_that_hangs_in_opening_sends_nothing_afterwards(opener: Opener, gate: Gate) -> None:
    ran: list[int] = []

    def open_driver() -> Files:
        made = opener()
        if len(opener.opened) == 1:
            gate(made)
        return made

    with BoundedFiles(open_driver) as files:
        outcome = files.outcome("a", lambda _: ran.append(1), SHORT)
        assert isinstance(outcome.error, NotSent)
        assert files.stuck == 1
        assert files.call("b", number, LONG) == 1
        gate.open.set()
        wait_until(lambda: files.stuck == 0)
        assert opener.opened[0].closed.wait(LONG)  # there was another one by then
        assert ran == []


def test_submit_tells_once_from_another_thread(opener: Opener, gate: Gate) -> None:
    told: list[tuple[Outcome[str], str]] = []
    once = threading.Semaphore(0)

    def done(outcome: Outcome[str]) -> None:
        told.append((outcome, threading.current_thread().name))
        once.release()

    with BoundedFiles(opener, max_stuck=1) as files:
        files.submit("quick", lambda _: "quick", LONG, done)
        assert once.acquire(timeout=LONG)
        files.submit("stuck", gate, SHORT, done)
        assert once.acquire(timeout=LONG)
        files.submit("refused", lambda _: "never", LONG, done)
        assert once.acquire(timeout=LONG)
        gate.open.set()
        wait_until(lambda: files.late == 1)
    assert [type(outcome.error) for outcome, _ in told] == [type(None), DeadlineExceeded, NotSent]
    assert {name for _, name in told} == {"store-call", "store-alarm"}


def test_deadlines_ring_in_order(opener: Opener, gate: Gate) -> None:
    told: list[str] = []
    with BoundedFiles(opener, max_stuck=3) as files:
        for name, timeout in (("third", 5 * SHORT), ("first", SHORT), ("second", 3 * SHORT)):
            files.submit(name, gate, timeout, lambda _, name=name: told.append(name))  # type: ignore[misc]
        wait_until(lambda: len(told) == 3)
    assert told == ["first", "second", "third"]


def test_a_receiver_or_hook_that_fails_harms_nobody(opener: Opener, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR), BoundedFiles(opener, workers=1, on_call=broken) as files:
        files.submit("a", number, LONG, broken)
        assert files.call("b", number, LONG) == 0
    assert len(caplog.records) == 3


def test_the_hook_hears_every_call_once(opener: Opener, gate: Gate) -> None:
    heard: list[tuple[str, type | None]] = []
    with BoundedFiles(
        opener, max_stuck=1, on_call=lambda name, outcome: heard.append((name, type(outcome.error)))
    ) as files:
        files.call("list", number, LONG)
        files.outcome("rename", gate, SHORT)
        files.outcome("delete", number, LONG)
        gate.open.set()
        wait_until(lambda: files.late == 1)
    assert heard == [("list", type(None)), ("rename", DeadlineExceeded), ("delete", NotSent)]


def test_closed_files_keep_no_thread(opener: Opener) -> None:
    before = set(threading.enumerate())
    files = BoundedFiles(opener)
    files.call("number", number, LONG)
    threads = set(threading.enumerate()) - before
    assert threads
    files.close()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_closed_files_refuse(opener: Opener, gate: Gate) -> None:
    files = BoundedFiles(opener, workers=1)
    ended: list[Outcome[Any]] = []
    files.submit("running", gate, LONG, ended.append)
    assert gate.entered.acquire(timeout=LONG)
    files.submit("waiting", number, LONG, ended.append)
    files.close()
    assert isinstance(files.outcome("after", number, LONG).error, NotSent)
    assert [type(each.error) for each in ended] == [NotSent]
    gate.open.set()
    wait_until(lambda: len(ended) == 2)
    assert ended[1].value == "late"  # what was running is not disturbed
    assert opener.opened[0].closed.wait(LONG)
    files.close()


def test_sizes_are_checked(opener: Opener) -> None:
    for sizes in ({"workers": 0}, {"max_stuck": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            BoundedFiles(opener, **sizes)  # type: ignore[arg-type]


def test_under_pressure_every_call_ends_once_and_what_was_not_sent_never_ran(opener: Opener) -> None:
    """Deadlines about as long as a hand-off takes, from many threads: all the races at once."""
    ran: list[int] = []
    ended: list[tuple[int, Outcome[Any]]] = []
    count, threads = 300, 6
    with BoundedFiles(opener, workers=3, max_stuck=1000) as files:

        def press(first: int) -> None:
            for identity in range(first, first + count):
                # The first of eleven can never be sent in time, the last always; the others race.
                timeout = LONG if identity % 11 == 10 else (identity % 11) * 0.00002

                def operation(_: Files, identity: int = identity) -> None:
                    ran.append(identity)

                if identity % 2:
                    ended.append((identity, files.outcome("sync", operation, timeout)))
                else:
                    files.submit(
                        "async",
                        operation,
                        timeout,
                        lambda outcome, identity=identity: ended.append((identity, outcome)),  # type: ignore[misc]
                    )

        pressing = [threading.Thread(target=press, args=(index * count,)) for index in range(threads)]
        for thread in pressing:
            thread.start()
        for thread in pressing:
            thread.join(LONG)
        wait_until(lambda: len(ended) >= count * threads and files.stuck == 0)
        assert files.call("after", lambda _: "fine", LONG) == "fine"
    assert sorted(identity for identity, _ in ended) == list(range(count * threads))
    assert len(ran) == len(set(ran))
    not_sent = {identity for identity, outcome in ended if isinstance(outcome.error, NotSent)}
    done = {identity for identity, outcome in ended if outcome.done}
    assert not not_sent & set(ran)
    assert done <= set(ran)
    assert not_sent
    assert done


def _python(program: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_a_stuck_call_that_comes_back_while_the_interpreter_goes_down_does_not_change_the_exit_code() -> None:
    """Seen: a sidecar that had been cut off from HDFS ended its job well, and its process with 134."""
    program = """
import socket, sys, time
import hdfs_native
from store.bounded import BoundedFiles

def refusal(call):
    name = b"java.io.FileNotFoundException"
    header = bytes([8, call, 16, 1, 34, len(name)]) + name
    return (len(header) + 1).to_bytes(4, "big") + bytes([len(header)]) + header

class Ending:
    def __del__(self, time=time):
        namenode.sendall(answer)
        time.sleep(1.0)
        print("went down", flush=True)

server = socket.create_server(("127.0.0.1", 0))
files = BoundedFiles(lambda: hdfs_native.Client(f"hdfs://127.0.0.1:{server.getsockname()[1]}"))
print(type(files.outcome("list", lambda driver: list(driver.list_status("/", False)), 0.5).error).__name__)
namenode, _ = server.accept()
answer = b"".join(map(refusal, range(4)))
sys.modules["ending"] = Ending()  # the interpreter drops it when no other thread may run any more
"""
    assert _python(program) == "DeadlineExceeded\nwent down\n"


def test_a_forked_child_starts_afresh() -> None:
    program = """
import os, sys, threading
from store.bounded import BoundedFiles

class Driver:
    def __init__(self): self.process = os.getpid()
    def close(self): print("closed", self.process == os.getpid(), flush=True)

files = BoundedFiles(Driver, max_stuck=1)
assert files.call("a", lambda driver: driver.process, 5) == os.getpid()
stuck = threading.Event()
files.outcome("stuck", lambda _: stuck.wait(), 0.05)
child = os.fork()
if child == 0:
    assert files.stuck == 0
    assert files.call("b", lambda driver: driver.process, 5) == os.getpid()
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stuck.set()
"""
    assert _python(program).startswith("0\n")


@pytest.mark.hdfs
@pytest.mark.parametrize("again", [True, False], ids=["uses-it", "drops-it"])
def test_a_forked_child_of_a_user_of_hdfs_can_end(hdfs_uri: str, again: bool) -> None:
    """A copy of the parent's hdfs-native client, dropped in the child, would wait for threads that are not there."""
    program = f"""
import os, sys
from store.open import driver_of, open_files

files = open_files({hdfs_uri!r})
files.call("a", lambda driver: driver.make_root(), 20)
driver = driver_of({hdfs_uri!r})()
driver.list("")
child = os.fork()
if child == 0:
    if {again}:
        files.call("b", lambda driver: driver.list(""), 20)
    del files, driver
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert _python(program) == "0\n"


_PROGRAM = """
import sys, threading
from pathlib import Path
from store.bounded import BoundedFiles

def operation(files):
    started.set()
    threading.Event().wait(float(sys.argv[1]))
    Path(sys.argv[2]).write_text("came back")

# Any object will do for a driver that is never closed.
started = threading.Event()
BoundedFiles(Path).submit("slow", operation, 60.0, lambda outcome: None)
started.wait()
"""


@pytest.mark.parametrize(("seconds", "comes_back"), [(0.2, True), (300.0, False)])
def test_the_end_of_the_process_waits_for_no_stuck_calls(tmp_path: Path, seconds: float, *, comes_back: bool) -> None:
    marker = tmp_path / "marker"
    subprocess.run([sys.executable, "-c", _PROGRAM, str(seconds), str(marker)], check=True, timeout=PATIENCE_S)
    assert marker.exists() == comes_back
