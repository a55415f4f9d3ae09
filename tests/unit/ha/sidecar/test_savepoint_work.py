"""SavepointWork: one end for each piece of work, whatever happens in it; in time, and only while the sidecar leads."""

import queue
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from ha.hosts.crew import Crew
from ha.sidecar import savepoint_work
from ha.sidecar.machine.sidecar_events import SavepointEnded
from ha.sidecar.savepoint_work import TELL_S, Restore, SavepointWork, _Over, _Work
from leader.job.request_folder import Request
from tests.patience import PATIENCE_S
from tests.unit.ha.spark.checkpoint_tools.conftest import local
from tests.unit.ha.spark.checkpoint_tools.place import Place
from tests.unit.ha.spark.savepoints.test_taking import Job, led, with_queries

__all__ = ["local"]


@dataclass
class Sidecar:
    job: Job
    leads: bool = True
    ends: "queue.Queue[SavepointEnded]" = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        self.work = SavepointWork(self.job.stores, "orders", lambda: self.leads, self.ends.put, Crew("test", 1))

    def take(self, number: int, stopped: bool = False, **arguments: str) -> SavepointEnded:
        request = Request(f"r{number}", "savepoint", 1, "me", arguments)
        self.work.take(number, self.job.leadership.own, request, bool, stopped=stopped)
        return self.ends.get(timeout=PATIENCE_S)

    def stage(self, number: int, restore: Restore) -> SavepointEnded:
        self.work.stage(number, self.job.leadership.own, restore, bool)
        return self.ends.get(timeout=PATIENCE_S)


@pytest.fixture
def sidecar(local: Place) -> Iterator[Sidecar]:
    for made in led(local):
        yield Sidecar(with_queries(made))


def test_a_savepoint_is_taken_and_started_from_once(sidecar: Sidecar) -> None:
    own, outside = sidecar.take(1), sidecar.take(2, to=sidecar.job.outside("a"))
    assert own.said.startswith("Savepoint r1: clean after batch 3, sums after batch 1: ")
    assert (own.work, own.error, own.result["savepoint"], own.result["by"]) == (1, "", "r1", "me")
    assert (outside.work, outside.result["savepoint"]) == (2, sidecar.job.outside("a"))
    again = sidecar.take(3, to=sidecar.job.outside("a"))
    assert (again.work, again.result) == (3, {})
    assert "exists already" in again.error
    where = Restore(sidecar.job.outside("a"), once=True)
    staged = sidecar.stage(4, where)
    assert (staged.said[:33], staged.known) == ("It goes on from savepoint r2: cle", False)
    sidecar.job.put_back(where.where)
    assert sidecar.stage(5, where) == SavepointEnded(5, known=True)
    assert not sidecar.stage(6, Restore(where.where)).known, "somebody asks for it once more"
    sidecar.work.stage_for(7, sidecar.job.leadership.own, Request("r", "restart", 1, "me", {"from": "none"}), bool)
    assert "There is no savepoint at" in sidecar.ends.get(timeout=PATIENCE_S).error


def test_it_says_which_input_lies_elsewhere_unless_it_stays_in_the_job(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ha.spark.savepoints.places.Manifest.bound", lambda _, uri: [f"Bound to {uri}"])
    assert "Bound to" not in sidecar.take(1).said
    assert sidecar.take(2, to=sidecar.job.outside("b")).said.endswith(f"Bound to {sidecar.job.outside('b')}.")


def test_what_ends_the_work_leaves_nothing_and_the_next_one_begins_anew(sidecar: Sidecar) -> None:
    sidecar.leads = False
    assert sidecar.take(1).error == "The leadership has ended meanwhile."
    sidecar.leads = True
    assert sidecar.take(2, timeout="0").error.startswith("It was not complete within 0 s.")
    sidecar.work.abandon()
    sidecar.work.abandon()
    assert sidecar.job.names("savepoints") == set()
    assert sidecar.take(3).error == ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(savepoint_work, "take", lambda *_: 1 / 0)
        assert sidecar.take(4).error == "ZeroDivisionError: division by zero"
        patch.setattr(savepoint_work, "find_spec", lambda _: None)
        assert "pip install 'hybrid-ha[spark]'" in sidecar.take(5).error


def test_progress_is_told_from_time_to_time_and_the_last_of_it_with_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told, leads = [100.0], list[str](), [True]
    monkeypatch.setattr(savepoint_work, "now", lambda: clock[0])
    work = _Work(10.0, lambda: leads[0], told.append)
    for tenth in range(int(TELL_S * 25)):
        clock[0] = 100.0 + tenth / 10
        work.told(f"{tenth}")
    assert told == [f"{each}" for each in (20, 40)]
    clock[0] = 109.9
    work.go_on()
    clock[0] = 110.0
    with pytest.raises(_Over, match=r"^It was not complete within 10 s\. 49$"):
        work.go_on()
    clock[0] = 100.0
    work.go_on()
    work.over.set()
    with pytest.raises(_Over, match="leadership has ended"):
        work.go_on()
    clock[0] = 200.0
    work.told("late")
    assert len(told) == 2, "nobody waits for it any more"
