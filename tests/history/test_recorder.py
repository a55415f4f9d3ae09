"""What processes write down of themselves: whole lines, in files of their own, and never at the leader's cost."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from ha.history.events import (
    Believed,
    CheckpointsRead,
    Completed,
    Counted,
    Event,
    Granted,
    LookedUp,
    Ran,
    Suspected,
    decode,
    load,
)
from ha.history.opening import NoHistory, open_history
from ha.history.recorder import Recorder
from leader.answers import Answer
from leader.checkpoint import NOTHING, Checkpoint, Metadata
from leader.checkpoint_state import CheckpointState
from leader.errors import Fenced, InvalidName, NoLeader, Unreachable
from leader.events import Grant, Revoke
from leader.information import LeaderInformation
from leader.retrieval import Source
from store.clock import now
from tests.ha.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
SESSION = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"

PROGRAM = """
import os, sys
from itertools import count
from ha.history.recorder import Recorder
recorder = Recorder(sys.argv[1], "a")
"""


def program(folder: Path, source: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", PROGRAM + source, str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)


def said_by(process: "subprocess.Popen[bytes]") -> str:
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said.decode()
    return said.decode()


def epochs(events: list[Event]) -> list[int]:
    return [event.epoch for event in events if isinstance(event, Ran)]


def test_a_kill_loses_no_line_that_was_written(tmp_path: Path) -> None:
    source = "for number in count(): recorder.ran('orders', number, running=True)"
    process = program(tmp_path, source)
    wait_until(lambda: any(path.stat().st_size > 100_000 for path in tmp_path.iterdir()), what="it writes")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith(f"a-{process.pid}-")
    with file.open("rb") as lines:
        found = list(decode(lines))
    assert epochs(found) == list(range(len(found)))
    assert len(found) > 100
    assert all(before.at <= after.at for before, after in pairwise(found))


def test_a_forked_child_begins_a_file_of_its_own(tmp_path: Path) -> None:
    source = """
from ha.history.opening import CheckpointLookups
from leader.checkpoint import NOTHING, Checkpoint, Metadata
from leader.checkpoint_state import CheckpointState
class Reads:
    def checkpoint(self, job, timeout=2.0): return CheckpointState(job, 1, "x")
reads = recorder.checkpoint_lookups(Reads())
recorder.ran("orders", 1, running=True)
reads.checkpoint("orders")
child = os.fork()
recorder.ran("orders", 2 if child else 3, running=True)
reads.checkpoint("orders")
if child: os.waitpid(child, 0)
"""
    said_by(program(tmp_path, source))
    files = [list(decode(path.read_bytes().splitlines(keepends=True))) for path in tmp_path.iterdir()]
    assert sorted(map(epochs, files)) == [[1, 2], [3]]
    readers = [{event.reader for event in file if isinstance(event, CheckpointsRead)} for file in files]
    assert all(len(each) == 1 for each in readers), "one name in each process"
    assert len(set.union(*readers)) == 2, "what the child's reader knows is its own affair from then on"


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    recorder, start = Recorder(tmp_path, "a"), threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        for _ in range(200):
            recorder.ran("orders", number, running=True)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    assert len(list(tmp_path.iterdir())) == 1
    assert sorted(epochs(load(tmp_path))) == sorted(number for number in range(8) for _ in range(200))


def test_what_cannot_be_written_is_said_once_and_hurts_nobody(tmp_path: Path) -> None:
    """A full disk, here a file that may not grow: the event that was cut off is dropped by whoever reads it."""
    source = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (250, 250))
for number in range(20): recorder.ran("orders", number, running=True)
"""
    said = said_by(program(tmp_path, source))
    assert said.count("The history in") == 1
    assert epochs(load(tmp_path)) == [0, 1]


def test_a_directory_that_cannot_be_made_hurts_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    recorder = Recorder(tmp_path / "file" / "history", "a")
    with caplog.at_level(logging.WARNING, "ha"):
        for epoch in range(3):
            recorder.ran("orders", epoch, running=True)
    assert [record.message for record in caplog.records] == [
        f"The history in {tmp_path / 'file' / 'history'} ends here (Not a directory); nothing else is hurt."
    ]


def test_a_text_that_cannot_be_written_hurts_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder, told = Recorder(tmp_path, "a"), Told()
    leads = recorder.leads(told)
    with caplog.at_level(logging.WARNING, "ha"):
        for reason in ("fine", "\ud800", "fine"):
            leads.revoked("orders", Revoke(SESSION, reason, None))
    assert len(told.calls) == 3
    assert len(load(tmp_path)) == len(caplog.records) == 1


def test_a_directory_that_is_removed_hurts_nobody(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history", "a")
    recorder.ran("orders", 1, running=True)
    (file,) = (tmp_path / "history").iterdir()
    file.unlink()
    (tmp_path / "history").rmdir()
    recorder.ran("orders", 2, running=True)
    recorder.close()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_opened_before_there_is_something_to_write_and_nothing_written_once_closed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history", "a")
    assert list(tmp_path.iterdir()) == []
    recorder.close()
    recorder.ran("orders", 1, running=True)
    assert list(tmp_path.iterdir()) == []


def test_a_relative_directory_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = Recorder("history", "a")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    recorder.ran("orders", 1, running=True)
    recorder.close()
    assert epochs(load(tmp_path / "history")) == [1]


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # this opens one itself, each time

    before = descriptors()
    for _ in range(5):
        recorder = Recorder(tmp_path, "a")
        recorder.ran("orders", 1, running=True)
        recorder.close()
    assert descriptors() == before


# --- what stands between those who work


class Told:
    """Is told about leadership."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def granted(self, *arguments: object) -> None:
        self.calls.append(("granted", *arguments))

    def revoked(self, *arguments: object) -> None:
        self.calls.append(("revoked", *arguments))

    def asked(self, *arguments: object) -> None:
        self.calls.append(("asked", *arguments))

    def believed(self, *arguments: object) -> None:
        self.calls.append(("believed", *arguments))

    def published(self, *arguments: object) -> None:
        self.calls.append(("published", *arguments))

    def suspected(self, *arguments: object) -> None:
        self.calls.append(("suspected", *arguments))

    def said(self, *arguments: object) -> None:
        self.calls.append(("said", *arguments))


def test_by_default_nothing_stands_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    history, told, answers, counted = open_history("", "a"), Told(), Answers(), Counting()
    assert type(history) is NoHistory
    assert history.leads(told) is told
    assert history.lookups(answers) is answers
    assert history.checkpoint_lookups(answers) is answers
    assert history.checkpoints("orders", 1, counted) is counted
    history.ran("orders", 1, running=True)
    history.write(Ran(1.0, "orders", "a", 1, running=True))
    history.close()
    assert list(tmp_path.iterdir()) == []


def test_leadership_is_recorded_and_passed_on(tmp_path: Path) -> None:
    recorder, told = Recorder(tmp_path, "a"), Told()
    leads = recorder.leads(told)
    never = float("-inf")
    calls: list[tuple[object, ...]] = [
        ("suspected", "orders", "b"),
        ("believed", "orders", never, 7.0),
        ("believed", "orders", 5.0, 7.0),
        ("granted", "orders", Grant(3, SESSION, "expired")),
        ("said", "orders", "something"),
        ("published", "orders", LeaderInformation("orders", 3, SESSION, {"rest": "a:1"})),
        ("asked", "orders", "b"),
        ("revoked", "orders", Revoke(SESSION, "It was resigned.", None)),
        ("believed", "orders", never, never),
    ]
    for name, *arguments in calls:
        getattr(leads, str(name))(*arguments)
    recorder.close()
    assert told.calls == calls
    found = load(tmp_path)
    assert [type(event).__name__ for event in found] == [
        *("Suspected", "Believed", "Believed", "Granted", "Published", "Revoked", "Believed"),
    ]
    beliefs = [(event.leads_until, event.holds_until) for event in found if isinstance(event, Believed)]
    assert beliefs == [(None, 7.0), (5.0, 7.0), (None, None)]
    (suspected,) = [event for event in found if isinstance(event, Suspected)]
    assert (suspected.contender, suspected.by) == ("b", "a")
    (granted,) = [event for event in found if isinstance(event, Granted)]
    assert (granted.contender, granted.epoch, granted.session_id, granted.reason) == ("a", 3, SESSION, "expired")
    assert granted.at <= now()


class Counting:
    """A leader's hand on its checkpoints."""

    def __init__(self) -> None:
        self.fails = False

    def state(self) -> CheckpointState:
        return CheckpointState("orders", 3, SESSION)

    def next(self) -> int:
        if self.fails:
            raise Fenced("It is over.")
        return 7

    def latest(self, query: str) -> Checkpoint | None:
        return self.retained(query)[-1]

    def retained(self, query: str) -> list[Checkpoint]:
        return [Checkpoint(query, 3, 1), Checkpoint(query, 4, 2)]

    def set(self, number: int) -> int:
        return number + 1

    def completed(self, query: str, batch: int, metadata: Metadata = NOTHING) -> CheckpointState:
        if self.fails:
            raise Fenced("It is over.")
        return CheckpointState("orders", 3, SESSION, 1, {query: Checkpoint(query, batch, 1, metadata)})


def test_checkpoints_are_recorded_when_they_are_done_and_only_then(tmp_path: Path) -> None:
    recorder, counting = Recorder(tmp_path, "a"), Counting()
    checkpoints = recorder.checkpoints("orders", 3, counting)
    began = now()
    assert checkpoints.next() == 7
    assert checkpoints.completed("daily", 4, Metadata(rows=7)).latest["daily"].metadata.rows == 7
    assert (checkpoints.set(8), len(checkpoints.retained("daily"))) == (9, 2)
    assert checkpoints.latest("daily") == Checkpoint("daily", 4, 2)
    assert checkpoints.state() == counting.state()
    counting.fails = True
    with pytest.raises(Fenced):
        checkpoints.next()
    with pytest.raises(Fenced):
        checkpoints.completed("daily", 5)
    recorder.close()
    counted, completed = load(tmp_path)
    assert isinstance(counted, Counted)
    assert (counted.job, counted.contender, counted.epoch, counted.id) == ("orders", "a", 3, 7)
    assert began <= counted.at <= counted.ended
    assert isinstance(completed, Completed)
    assert (completed.query, completed.batch) == ("daily", 4)


class Answers:
    """A reader; what it raises or answers next is up to the test."""

    answer: Answer | Exception = Answer("orders", 3, SESSION, {"rest": "a:1"}, Source.HDFS, 0.0, verified=True)

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        del job, timeout, stale
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        del session_id
        return self.leader(job, timeout)

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        del stop
        yield self.leader(job, timeout)
        yield None

    def checkpoint(self, job: str, timeout: float = 2.0) -> CheckpointState:
        self.leader(job, timeout)
        return CheckpointState(job, 3, SESSION, 8, {"daily": Checkpoint("daily", 4, 7)})

    def retained(self, job: str, timeout: float = 2.0) -> dict[str, list[Checkpoint]]:
        return {"daily": list(self.checkpoint(job, timeout).latest.values())}


def test_answers_are_recorded_with_the_time_they_took(tmp_path: Path) -> None:
    recorder, answers = Recorder(tmp_path, "a"), Answers()
    reader, other = recorder.lookups(answers), recorder.lookups(answers)
    began = now()
    assert reader.leader("orders", 1.5) == answers.answer
    assert reader.report("orders", SESSION) == answers.answer
    assert list(reader.watch("orders", threading.Event())) == [answers.answer, None]
    assert other.leader("orders", float("inf"), stale=True) == answers.answer
    for error in (NoLeader("nobody"), Unreachable("no store"), InvalidName("no name")):
        answers.answer = error
        with pytest.raises(type(error)):
            reader.leader("orders")
    recorder.close()
    found = [event for event in load(tmp_path) if isinstance(event, LookedUp)]
    assert [event.outcome for event in found] == ["leader", "leader", "leader", "none", "leader", "none", "unreachable"]
    first = found[0]
    assert (first.epoch, first.session_id, first.endpoints, first.source) == (3, SESSION, {"rest": "a:1"}, "hdfs")
    assert (first.timeout, first.verified, first.stale) == (1.5, True, False)
    assert began <= first.at <= first.ended
    assert len({event.reader for event in found}) == 2
    assert {event.reader for event in found[:4]} != {found[4].reader}


def test_what_a_reader_is_told_of_checkpoints_is_recorded(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "a")
    lookups = recorder.checkpoint_lookups(Answers())
    assert lookups.checkpoint("orders").next_id == 8
    assert lookups.retained("orders") == {"daily": [Checkpoint("daily", 4, 7)]}
    recorder.close()
    (found,) = load(tmp_path)
    assert isinstance(found, CheckpointsRead)
    assert (found.epoch, found.next_id, found.queries) == (3, 8, {"daily": 4})
