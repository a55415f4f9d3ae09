"""A job at a glance: its state as people see it, when its checkpoints changed, and what a look costs the NameNode."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ha.api.events import look
from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.sidecar.running_note import RunningNote
from ha.views.ages import at_time
from ha.views.jobs import HOUR_S, LastHour, summaries, summary
from ha.views.leases import Leases
from leader.errors import Fenced, InvalidName, NoLeader
from leader.job.admin import JobAdmin
from leader.job.checkpoints import Checkpoints
from leader.job.exceptions import Exceptions
from leader.job.fenced_directory import LOOKS
from leader.job.status import JobStatus, Status
from leader.layout.checkpoint import Metadata
from leader.layout.names import CHECKPOINTS, EXCEPTIONS, GRAPH, HISTORY
from leader.layout.running import Running
from store.local import LocalFiles
from tests.unit.ha.led import Led, session


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    (tmp_path / "jobs").mkdir()
    with closing(Stores(Settings.of(files=(tmp_path / "jobs").as_uri()))) as found:
        yield found


@pytest.fixture
def admin(stores: Stores) -> JobAdmin:
    return JobAdmin(stores.files, None, 5)


@pytest.fixture
def leases(stores: Stores) -> Leases:
    return Leases(stores)


@pytest.fixture
def led(tmp_path: Path, admin: JobAdmin) -> Led:
    del admin
    made = Led(tmp_path / "jobs")
    made.claim("orders", "a:1")
    return made


@pytest.mark.parametrize(
    ("stored", "seen"), [(Status.CREATED, "CREATED"), (Status.RUNNING, "SUSPENDED"), (Status.FINISHED, "FINISHED")]
)
def test_what_runs_is_suspended_while_nobody_leads(
    admin: JobAdmin, leases: Leases, led: Led, stored: Status, seen: str
) -> None:
    status = JobStatus(admin.directory("orders"))
    for each in (Status.RUNNING, stored) if stored is not Status.CREATED else ():
        status.change(status.read(), each)
    found = summary(admin, "orders", leases)
    assert (found.state, found.holder, found.lease) == (stored.value, "a", "hdfs")
    led.release("orders")
    found = summary(admin, "orders", leases)
    assert (found.state, found.holder, found.lease) == (seen, None, "released")


def test_the_checkpoints_have_a_time_as_soon_as_there_is_one(
    admin: JobAdmin, leases: Leases, led: Led, tmp_path: Path
) -> None:
    del led
    assert summary(admin, "orders", leases).checkpoint_at is None, "the counter alone is none"
    directory = admin.directory("orders")
    Checkpoints(directory).completed("daily", 1)
    os.utime(tmp_path / "jobs" / directory.at("checkpoints"), (1_000_000_000,) * 2)
    assert summary(admin, "orders", leases).checkpoint_at == "2001-09-09T01:46:40Z"


def test_the_rate_is_that_of_each_querys_newest_batch(admin: JobAdmin, leases: Leases, led: Led) -> None:
    del led
    published = Checkpoints(admin.directory("orders"))
    published.completed("silent", 1)
    assert summary(admin, "orders", leases).rows_per_second is None, "nobody says it"
    for batch, rows in ((9, 5_000), (10, 100), (11, 400)):  # 9 sorts after 10 as text
        published.completed("clean", batch, Metadata(duration_ms=2_000, rows=rows))
    published.completed("sums", 3, Metadata(duration_ms=500, rows=7))
    published.completed("at-once", 3, Metadata(duration_ms=0, rows=7))
    assert summary(admin, "orders", leases).rows_per_second == 200 + 14


def test_a_claim_between_two_calls_is_looked_at_again(
    admin: JobAdmin, leases: Leases, led: Led, monkeypatch: pytest.MonkeyPatch
) -> None:
    del led
    real, failures = JobAdmin.directory, [Fenced("Epoch 1 was fenced.")] * (LOOKS - 1)

    def directory(self: JobAdmin, *given: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(self, *given)

    monkeypatch.setattr(JobAdmin, "directory", directory)
    assert summary(admin, "orders", leases).epoch == 1
    failures.extend([Fenced("Epoch 1 was fenced.")] * LOOKS)
    with pytest.raises(Fenced):
        summary(admin, "orders", leases)


def test_a_job_that_is_damaged_is_in_the_list_and_not_at_a_glance(
    admin: JobAdmin, leases: Leases, led: Led, tmp_path: Path
) -> None:
    del led
    (tmp_path / "jobs" / "odd").mkdir()
    assert [(each.job, each.lease) for each in summaries(admin, leases)] == [("odd", "damaged"), ("orders", "hdfs")]
    with pytest.raises(NoLeader):
        summary(admin, "odd", leases)
    with pytest.raises(InvalidName):
        summary(admin, "../odd", leases)


@pytest.mark.parametrize(("at_ms", "text"), [(0, "1970-01-01T00:00:00Z"), (10**18, "unknown")])
def test_any_time_of_a_file_can_be_shown(at_ms: int, text: str) -> None:
    assert at_time(at_ms) == text


@pytest.fixture
def two_jobs(led: Led, tmp_path: Path) -> None:
    led.claim("sums", "a:1")
    for job in ("orders", "sums"):
        (leader,) = (tmp_path / "jobs" / job).iterdir()
        for folder in (CHECKPOINTS, EXCEPTIONS, GRAPH, HISTORY):
            (leader / folder).mkdir(exist_ok=True)
            os.utime(leader / folder, (1_000_000_000,) * 2)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made, real = list[str](), LocalFiles.list

    def counted(files: LocalFiles, path: str) -> object:
        made.append(path)
        return real(files, path)

    monkeypatch.setattr(LocalFiles, "list", counted)
    return made


@pytest.mark.usefixtures("two_jobs")
def test_a_job_at_a_glance_costs_four_lists(admin: JobAdmin, leases: Leases, listed: list[str]) -> None:
    assert summary(admin, "orders", leases).epoch == 1
    assert len(listed) == 4


def test_the_last_hour_is_counted_where_something_has_changed(
    admin: JobAdmin, leases: Leases, led: Led, tmp_path: Path, listed: list[str]
) -> None:
    assert summary(admin, "orders", leases).last_hour is None
    led.claim("orders", "a:1")
    directory = admin.directory("orders")
    for epoch, reason, ago in ((1, "new", 60), (2, "expired", 60), (2, "adopted", 10)):
        line = tmp_path / "jobs" / directory.at(f"{HISTORY}/{epoch:010d}-{session(epoch)}~{reason}~a")
        line.mkdir(parents=True)
        os.utime(line, (time.time() - ago,) * 2)
    assert summary(admin, "orders", leases).last_hour == LastHour(0, 1), "the first start is no takeover"
    kept = Exceptions(directory)
    kept.add("exit-3", "It is of a while ago.")
    (old,) = (tmp_path / "jobs" / directory.at(EXCEPTIONS)).iterdir()
    os.utime(old, (time.time() - HOUR_S - 60,) * 2)
    kept.add("exit-3", "It is new.")
    listed.clear()
    assert summary(admin, "orders", leases).last_hour == LastHour(1, 1)
    assert len(listed) == 6
    for folder in (EXCEPTIONS, HISTORY):
        os.utime(tmp_path / "jobs" / directory.at(folder), (time.time() - HOUR_S - 60,) * 2)
    listed.clear()
    assert (summary(admin, "orders", leases).last_hour, len(listed)) == (None, 4)


def test_what_runs_is_what_the_leader_has_said(admin: JobAdmin, leases: Leases, led: Led) -> None:
    del led
    assert summary(admin, "orders", leases).program is None
    note = RunningNote("orders", "a", Running.of(["spark-submit", "/srv/orders.py"], ""))
    note.lead(admin.directory("orders"))
    assert summary(admin, "orders", leases).program == "orders.py"
    stored = RunningNote("orders", "a", Running.of([], ""))
    for version in (3, 4):
        stored.lead(admin.directory("orders"), version)
        assert summary(admin, "orders", leases).program == f"version {version}"


@pytest.mark.usefixtures("two_jobs")
def test_all_jobs_cost_four_lists_each_and_one_more(admin: JobAdmin, leases: Leases, listed: list[str]) -> None:
    assert [each.job for each in summaries(admin, leases)] == ["orders", "sums"]
    assert len(listed) == 9


@pytest.mark.usefixtures("two_jobs")
def test_the_marks_of_a_job_cost_five_lists_more(admin: JobAdmin, leases: Leases, listed: list[str]) -> None:
    found, marks = look(admin, "orders", leases)
    assert (found.job, sorted(marks)) == ("orders", ["checkpoints", "exceptions", "history", "queries"])
    assert len(listed) == 9
