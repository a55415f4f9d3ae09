"""The count of failures while the store is away: nothing is forgotten, and nobody starts too soon."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.config.sources import load
from ha.hosts.crew import Crew
from ha.sidecar.failure_count import FailureCount
from ha.sidecar.job_status import JobStatusUpdater
from leader.errors import Fenced, Unreadable
from leader.job.admin import JobAdmin
from leader.job.failed_attempts import Attempts, FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.job.request_folder import Requests, State
from leader.job.status import JobStatus, Status
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.errors import NotWritable
from store.local import LocalFiles
from tests.unit.ha.clocks import At
from tests.unit.ha.led import Led

LEASE_S = 20.0


class Place:
    def __init__(self, directory: FencedDirectory, files: BoundedFiles, **settings: Any) -> None:
        self.directory, self.leader, self.clock, self._settings = directory, directory.leader, At(100.0), settings
        self._process: Any = SimpleNamespace(
            stores=SimpleNamespace(files=files, timing=Timing()),
            settings=load({"files": "file:///nowhere"}, {}),
            holds_until=lambda _: 100.0 + LEASE_S,
        )

    def status(self, *, again: bool = False) -> JobStatusUpdater:
        return JobStatusUpdater(self._process, "orders", Crew("test", 1), again=again, clock=self.clock)

    def count(self, most: int = 9) -> FailureCount:
        return FailureCount(self.status(), "orders", most)

    @property
    def attempts(self) -> Attempts:
        return FailedAttempts(self.directory).load()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    Led(tmp_path).claim("orders", "a:1")
    with BoundedFiles(lambda: LocalFiles(tmp_path, durable=False)) as files:
        yield Place(JobAdmin(files, None, 5).directory("orders"), files)


def fails(monkeypatch: pytest.MonkeyPatch, method: str, errors: list[Exception]) -> None:
    """Have the next calls of the count end with these errors, if the list has any left."""
    call: Callable[..., Any] = getattr(FailedAttempts, method)

    def away(self: FailedAttempts, *arguments: object) -> object:
        if errors:
            raise errors.pop(0)
        return call(self, *arguments)

    monkeypatch.setattr(FailedAttempts, method, away)


def test_a_failure_is_counted_although_the_store_was_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, "add", [NotWritable("standby")] * 7)
    assert not place.count().add(place.leader, "exit-3", 1.0)
    assert place.attempts.failures == 1
    assert place.clock.now() == pytest.approx(100.0 + 7 * Timing().retry)


def test_it_is_tried_until_the_lease_ends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, "add", [NotWritable("standby")] * 999)
    assert not place.count(1).add(place.leader, "exit-3", 1.0), "what is not counted is not the last"
    assert 0 <= place.clock.now() - 100.0 - LEASE_S < 1.0


@pytest.mark.parametrize("error", [Fenced("another leads"), Unreadable("damaged")])
def test_what_time_does_not_mend_is_tried_once(place: Place, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    for method in ("add", "load"):
        fails(monkeypatch, method, [error])
    assert not place.count(1).add(place.leader, "exit-3", 1.0)
    place.count().pause(place.leader)
    assert place.clock.now() == 100.0


def test_a_new_leader_waits_although_the_store_was_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        place.count().add(place.leader, "exit-3", 1.0)
    fails(monkeypatch, "load", [NotWritable("standby")] * 3)
    assert place.count().pause(place.leader) == (4.0, True)


def test_what_is_not_known_at_the_end_of_the_lease_starts_nothing_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a pause the sidecar looks whether it still leads."""
    fails(monkeypatch, "load", [NotWritable("standby")] * 999)
    assert place.count().pause(place.leader)[0]


def test_a_damaged_count_keeps_no_job_from_running(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, "load", [Unreadable("damaged")])
    assert place.count().pause(place.leader) == (0.0, False)


def test_a_job_that_begins_again_begins_the_count_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leader may have died just after it had given the job up."""
    status = JobStatus(place.directory)
    status.change(Status.CREATED, Status.RUNNING)
    for most in (9, 2):
        place.count(most).add(place.leader, "exit-3", 1.0)
    assert (status.read(), place.attempts.failures) == (Status.FAILED, 2)
    requests = Requests(place.directory)
    requests.ask("1", "stop", kept=True)  # just before the lease was given back
    again = place.status(again=True)
    again.look()
    monkeypatch.setattr(JobStatusUpdater, "_restore", lambda *_: True)
    monkeypatch.setattr(JobStatusUpdater, "_relocate_checkpoints", lambda *_: None)
    assert again.begin(place.leader)
    assert (status.read(), place.attempts) == (Status.RUNNING, Attempts())
    stop = requests.load("1")
    assert stop is not None
    assert stop.state is State.REFUSED, "it was meant for the run that has failed"
    assert place.count(2).pause(place.leader) == (0.0, False)


@pytest.mark.parametrize("error", [NotWritable("standby"), Fenced("another leads")])
def test_failures_are_forgotten_in_one_try(place: Place, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    place.count().add(place.leader, "exit-3", 1.0)
    fails(monkeypatch, "forget", [error])
    assert not place.count().forget(place.leader)
    assert place.attempts.failures == 1
    assert place.count().forget(place.leader)
    assert place.attempts == Attempts()


@pytest.mark.parametrize(("most", "pause", "status"), [(3, 1.0, Status.RUNNING), (2, None, Status.FAILED)])
def test_a_job_whose_leader_was_lost_after_its_last_attempt_has_failed(
    place: Place, most: int, pause: float | None, status: Status
) -> None:
    JobStatus(place.directory).change(Status.CREATED, Status.RUNNING)
    for _ in range(2):
        place.count(9).add(place.leader, "exit-3", 1.0)
    assert place.count(most).pause(place.leader)[0] == pause
    assert JobStatus(place.directory).read() is status
