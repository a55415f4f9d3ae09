"""The recorder writes whole lines into a file of its own process, and never hurts the leader."""

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

from ha.config.stores import open_history
from ha.history.events import (
    Believed,
    CheckpointsRead,
    Completed,
    Counted,
    Event,
    Granted,
    History,
    LookedUp,
    Ran,
    Suspected,
    decode,
    load,
)
from ha.history.recorder import Recorder
from leader.contender.participant import Belief
from leader.election.events import Grant, HandOverRequested, Log, Publish, Revoke, Suspect, Tick
from leader.errors import Fenced, InvalidName, NoLeader, Unreachable
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout.checkpoint import Checkpoint, Metadata
from leader.layout.information import LeaderInformation
from leader.layout.names import LeaderDirectory
from leader.lookup.answers import Answer, Look, Source
from leader.lookup.checkpoint_reader import CheckpointReader
from leader.lookup.observed import observed
from leader.lookup.reader import Reader
from leader.observer import fan_out
from leader.timing import Timing
from store.clock import now
from store.open import open_files
from tests.limits import HANGS_S, joined
from tests.patience import PATIENCE_S
from tests.unit.ha.led import Led
from tests.unit.ha.waiting import wait_until

ROOT = Path(__file__).parents[4]
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
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said.decode()
    return said.decode()


def epochs(events: list[Event]) -> list[int]:
    return [event.epoch for event in events if isinstance(event, Ran)]


def test_a_kill_loses_no_line_that_was_written(tmp_path: Path) -> None:
    source = "for number in count(): recorder.ran('orders', number, running=True)"
    process = program(tmp_path, source)
    wait_until(lambda: any(path.stat().st_size > 100_000 for path in tmp_path.iterdir()), what="it writes")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith(f"a-{process.pid}-")
    with file.open("rb") as lines:
        found = list(decode(lines))
    assert epochs(found) == list(range(len(found)))
    assert len(found) > 100
    assert all(before.at <= after.at for before, after in pairwise(found))


def test_a_forked_child_begins_a_file_of_its_own(tmp_path: Path) -> None:
    source = """
from leader.layout.checkpoint_state import CheckpointState
from leader.lookup.observed import CheckpointsRead
reader = recorder.reader()
recorder.ran("orders", 1, running=True)
reader("orders", CheckpointsRead(0.0, CheckpointState("orders", 1, "x")))
child = os.fork()
recorder.ran("orders", 2 if child else 3, running=True)
reader("orders", CheckpointsRead(0.0, CheckpointState("orders", 1, "x")))
if child: os.waitpid(child, 0)
"""
    said_by(program(tmp_path, source))
    files = [list(decode(path.read_bytes().splitlines(keepends=True))) for path in tmp_path.iterdir()]
    assert sorted(map(epochs, files)) == [[1, 2], [3]]
    readers = [{event.reader for event in file if isinstance(event, CheckpointsRead)} for file in files]
    assert all(len(each) == 1 for each in readers), "one name in each process"
    assert len(set.union(*readers)) == 2, "what the child's reader knows is its own affair from then on"


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    recorder, start = Recorder(tmp_path, "a"), threading.Barrier(8, timeout=HANGS_S)

    def write(number: int) -> None:
        start.wait()
        for _ in range(200):
            recorder.ran("orders", number, running=True)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    joined(*threads)
    recorder.close()
    assert len(list(tmp_path.iterdir())) == 1
    assert sorted(epochs(load(tmp_path))) == sorted(number for number in range(8) for _ in range(200))


def test_a_full_disk_is_reported_once_and_hurts_nobody(tmp_path: Path) -> None:
    """A full disk, here a file that may not grow: the event that was cut off is dropped when the file is read."""
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
    recorder = Recorder(tmp_path, "a")
    with caplog.at_level(logging.WARNING, "ha"):
        for reason in ("fine", "\ud800", "fine"):
            recorder.observer("orders", Revoke(SESSION, reason, None))
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


def test_by_default_nobody_is_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    history, answers = open_history("", "a"), Answers()
    assert type(history) is History
    assert history.observer is None
    assert history.reader() is None
    assert fan_out(history.observer, history.reader()) is None
    assert observed(answers, history.reader()) is answers
    history.ran("orders", 1, running=True)
    history.write(Ran(1.0, "orders", "a", 1, running=True))
    history.close()
    assert list(tmp_path.iterdir()) == []


def test_leadership_is_recorded(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "a")
    never = float("-inf")
    for happened in (
        Suspect("b"),
        Tick(),
        Belief(never, 7.0),
        Belief(5.0, 7.0),
        Grant(3, SESSION, "expired"),
        Log("something"),
        Publish(LeaderInformation("orders", 3, SESSION, {"rest": "a:1"})),
        HandOverRequested("b"),
        Revoke(SESSION, "It was resigned.", None),
        Belief(never, never),
    ):
        recorder.observer("orders", happened)
    recorder.close()
    found = load(tmp_path)
    assert [type(event).__name__ for event in found] == [
        *("Suspected", "Believed", "Believed", "Granted", "Published", "Revoked", "Believed")
    ]
    beliefs = [(event.leads_until, event.holds_until) for event in found if isinstance(event, Believed)]
    assert beliefs == [(None, 7.0), (5.0, 7.0), (None, None)]
    (suspected,) = [event for event in found if isinstance(event, Suspected)]
    assert (suspected.contender, suspected.by) == ("b", "a")
    (granted,) = [event for event in found if isinstance(event, Granted)]
    assert (granted.contender, granted.epoch, granted.session_id, granted.reason) == ("a", 3, SESSION, "expired")
    assert granted.at <= now()


def test_checkpoints_are_recorded_when_they_are_done_and_only_then(tmp_path: Path) -> None:
    recorder, led = Recorder(tmp_path / "history", "a"), Led(tmp_path / "jobs")
    directory = LeaderDirectory(led.claim("orders", "a:1", by=SESSION), SESSION)
    with open_files((tmp_path / "jobs").as_uri()) as files:
        checkpoints = Checkpoints(FencedDirectory(files, "orders", directory, PATIENCE_S), observer=recorder.observer)
        assert checkpoints.set(7) == 7
        began = now()
        assert checkpoints.next() == 7
        assert checkpoints.completed("daily", 4, Metadata(rows=7)).latest["daily"].metadata.rows == 7
        assert (checkpoints.set(9), len(checkpoints.retained("daily"))) == (9, 1)
        assert checkpoints.latest("daily") == Checkpoint("daily", 4, 8, Metadata(rows=7))
        assert checkpoints.state().next_id == 9
        led.claim("orders", "b:1")
        with pytest.raises(Fenced):
            checkpoints.next()
        with pytest.raises(Fenced):
            checkpoints.completed("daily", 5)
    recorder.close()
    counted, completed = load(tmp_path / "history")
    assert isinstance(counted, Counted)
    assert (counted.job, counted.contender, counted.epoch, counted.id) == ("orders", "a", 1, 7)
    assert began <= counted.at <= counted.ended
    assert isinstance(completed, Completed)
    assert (completed.query, completed.batch) == ("daily", 4)


class Answers:
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

    def looks(
        self, job: str, stop: threading.Event, timeout: float = 2.0, *, every: float = float("inf")
    ) -> Iterator[Look]:
        del stop, every
        yield Look(now(), self.leader(job, timeout), reached=True, known=None)


def test_answers_are_recorded_with_the_time_they_took(tmp_path: Path) -> None:
    recorder, answers = Recorder(tmp_path, "a"), Answers()
    reader, other = observed(answers, recorder.reader()), observed(answers, recorder.reader())
    began = now()
    assert reader.leader("orders", 1.5) == answers.answer
    assert reader.report("orders", SESSION) == answers.answer
    assert list(reader.watch("orders", threading.Event())) == [answers.answer, None]
    assert [look.answer for look in reader.looks("orders", threading.Event())] == [answers.answer], "not recorded"
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


def test_answers_about_checkpoints_are_recorded(tmp_path: Path) -> None:
    recorder, led = Recorder(tmp_path / "history", "a"), Led(tmp_path / "jobs")
    directory = LeaderDirectory(led.claim("orders", "a:1", by=SESSION), SESSION)
    with open_files((tmp_path / "jobs").as_uri()) as files:
        leading = Checkpoints(FencedDirectory(files, "orders", directory, PATIENCE_S))
        leading.set(7)
        leading.completed("daily", 4)
        began = now()
        checkpoints = CheckpointReader(files, None, Reader(files, None, Timing()), observer=recorder.reader())
        assert checkpoints.checkpoint("orders").next_id == 8
        assert checkpoints.retained("orders") == {"daily": [Checkpoint("daily", 4, 7)]}
        with pytest.raises(NoLeader):
            checkpoints.checkpoint("nothing")
    recorder.close()
    (found,) = load(tmp_path / "history")
    assert isinstance(found, CheckpointsRead)
    assert (found.epoch, found.next_id, found.queries) == (1, 8, {"daily": 4})
    assert began <= found.at <= found.ended
