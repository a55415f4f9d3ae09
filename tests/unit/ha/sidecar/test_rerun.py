"""Jobs that end by themselves and are run again: by the setting ``rerun`` and by ``--again``, once for each sidecar."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.config.settings import Settings
from ha.hosts.crew import Crew
from ha.sidecar.job_status import JobStatusUpdater
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import JobStatus, Status
from leader.layout.names import RECORD, LeaderDirectory
from store.clock import now
from store.errors import DeadlineExceeded
from store.open import open_files
from tests.patience import PATIENCE_S
from tests.unit.ha.noting import ENDS, Notes, run, state
from tests.unit.ha.programs import Workplace

FIRST = LeaderDirectory(1, "11111111-1111-4111-8111-111111111111")
END_OF_LEASE_S = 60.0


class Job:
    """A job in a directory of this host, as its sidecars see it."""

    def __init__(self, root: Path) -> None:
        self.files = open_files(root.as_uri())
        self.files.call("test", lambda files: files.make_root(), PATIENCE_S)
        self.files.call("test", lambda files: files.make_directory("orders"), PATIENCE_S)
        self.files.call("test", lambda files: files.make_directory(f"orders/{FIRST.name}"), PATIENCE_S)
        self.files.call("test", lambda files: files.make_directory(f"orders/{FIRST.name}/{RECORD}"), PATIENCE_S)
        self.status = JobStatus(FencedDirectory(self.files, "orders", FIRST, 5.0))
        self.end(Status.FINISHED)

    def end(self, status: Status) -> None:
        found = self.status.read()
        if found.globally_terminal:
            self.status.begin_again(found)
        for old, new in (
            (Status.CREATED, Status.RUNNING),
            *(((Status.RUNNING, Status.CANCELLING),) if status is Status.CANCELED else ()),
            (Status.CANCELLING if status is Status.CANCELED else Status.RUNNING, status),
        ):
            self.status.change(old, new)

    def sidecar(self, *, again: bool = False, **settings: Any) -> JobStatusUpdater:
        """Return the part of a sidecar that decides whether the job runs; it has not looked yet."""
        timing = SimpleNamespace(call_timeout=5.0, retry=0.01)
        stores = SimpleNamespace(
            files=self.files, timing=timing, directory_uri=lambda *_: "file:///nowhere", open=pytest.fail
        )
        process: Any = SimpleNamespace(
            stores=stores, settings=Settings.of(**settings), holds_until=lambda _: now() + END_OF_LEASE_S
        )
        return JobStatusUpdater(process, "orders", Crew("test", 1), again=again)


@pytest.fixture
def job(tmp_path: Path) -> Any:
    made = Job(tmp_path / "jobs")
    yield made
    made.files.close()


def test_a_finished_job_runs_again_once_in_each_sidecar(job: Job) -> None:
    for _ in range(3):
        today = job.sidecar(rerun=True)
        today.look()
        assert today.begin(FIRST)
        assert job.status.read() is Status.RUNNING
        assert today.finish(FIRST)
        assert not today.begin(FIRST), "its run is over"
    assert job.status.read() is Status.FINISHED


def test_without_the_setting_it_does_not(job: Job) -> None:
    today = job.sidecar()
    today.look()
    assert not today.begin(FIRST)


@pytest.mark.parametrize("options", [{"rerun": True}, {"again": True}])
def test_a_standby_does_not_repeat_the_run_that_has_finished_meanwhile(job: Job, options: dict[str, Any]) -> None:
    leader, standby = job.sidecar(**options), job.sidecar(**options)
    leader.look()
    standby.look()
    assert leader.begin(FIRST)
    assert leader.finish(FIRST)
    assert not standby.begin(FIRST)


def test_a_standby_goes_on_with_a_run_that_has_failed(job: Job) -> None:
    leader, standby = job.sidecar(rerun=True), job.sidecar(rerun=True)
    leader.look()
    standby.look()
    assert leader.begin(FIRST)
    assert standby.begin(FIRST)
    assert standby.finish(FIRST)
    assert not leader.begin(FIRST)


@pytest.mark.parametrize(("options", "runs"), [({"rerun": True}, False), ({"again": True}, True)])
def test_a_cancelled_job_runs_again_only_if_a_person_says_so(job: Job, options: dict[str, Any], runs: bool) -> None:
    job.end(Status.CANCELED)
    today = job.sidecar(**options)
    today.look()
    assert today.begin(FIRST) == runs


def test_an_end_that_could_not_be_read_is_taken_for_that_of_the_last_run(
    job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    today = job.sidecar(rerun=True)

    def unanswered(*_: object) -> None:
        raise DeadlineExceeded("The store does not answer.")

    with monkeypatch.context() as patch:
        patch.setattr(job.files, "call", unanswered)
        today.look()
    assert "the status of the job is not known: The store does not answer." in caplog.text
    assert today.begin(FIRST)


def test_a_job_that_has_never_run_begins(tmp_path: Path) -> None:
    job = Job(tmp_path / "jobs")
    job.files.call("test", lambda files: files.delete("orders", recursive=True), PATIENCE_S)
    today = job.sidecar(rerun=True)
    today.look()
    for path in ("orders", f"orders/{FIRST.name}"):
        job.files.call("test", lambda files, path=path: files.make_directory(path), PATIENCE_S)  # type: ignore[misc]
    assert today.begin(FIRST)
    assert today.finish(FIRST)
    assert not today.begin(FIRST)
    job.files.close()


def test_under_ha_run_it_needs_no_flag(workplace: Workplace) -> None:
    for _ in range(2):
        assert run(workplace, "a", ENDS, HA_RERUN="true").wait() == 0
    assert len(Notes(workplace).all()) == 2
    assert state(workplace)[2] == ["status=FINISHED"]
