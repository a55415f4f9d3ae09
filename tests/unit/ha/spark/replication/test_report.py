"""Marks of a promotion: which line of a job they mean, and what of them is found where."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ha
from ha.spark.replication import report
from ha.spark.replication.report import REPORT, ReplicaReport, encoded, replica_of
from leader.errors import Fenced
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from store.bounded import BoundedFiles
from store.errors import StoreError
from store.open import open_files

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def there(tmp_path: Path) -> Iterator[BoundedFiles]:
    with open_files((tmp_path / "there").as_uri()) as files:
        yield files


@pytest.fixture
def job() -> Iterator[FencedDirectory]:
    with ha.lead("orders") as leadership:
        yield leadership.own


@pytest.fixture
def replica(there: BoundedFiles) -> Iterator[FencedDirectory]:
    with ha.lead(replica_of("orders"), files=there.uri, zookeeper="") as leadership:
        yield leadership.own


def of_line(replica: FencedDirectory, line: str) -> None:
    replica.delete(REPORT)
    replica.put(encoded(ReplicaReport("file:///jobs/orders", 0.0, [], line)), REPORT)


def test_a_job_without_a_replica_there_was_not_promoted(there: BoundedFiles, job: FencedDirectory) -> None:
    assert not report.promoted_away(there, job, 5.0)


def test_a_replica_alone_is_no_promotion(there: BoundedFiles, job: FencedDirectory, replica: FencedDirectory) -> None:
    assert not report.promoted_away(there, job, 5.0)
    report.mark(replica)
    assert report.promoted_away(there, job, 5.0), "no round of it has ended, so it is of the first line"
    report.unmark(replica)
    assert not report.promoted_away(there, job, 5.0)


def test_only_the_line_that_was_replicated_is_the_one_that_was_left(
    there: BoundedFiles, job: FencedDirectory, replica: FencedDirectory
) -> None:
    of_line(replica, report.line_of(job))
    report.mark(replica)
    assert report.promoted_away(there, job, 5.0)
    report.begin_line(job)
    second = report.line_of(job)
    assert not report.promoted_away(there, job, 5.0), "the job was promoted back"
    report.unmark(replica)
    of_line(replica, second)
    report.mark(replica)
    assert report.promoted_away(there, job, 5.0), "and away once more"
    report.begin_line(job)
    assert report.line_of(job) not in {second, report.FIRST}
    assert not report.promoted_away(there, job, 5.0)


def test_a_second_mark_changes_nothing(replica: FencedDirectory) -> None:
    of_line(replica, "one")
    report.mark(replica)
    of_line(replica, "two")
    report.mark(replica)
    assert [each.name for each in replica.list() if each.name.startswith(report.PROMOTED)] == ["promoted=one"]


@pytest.mark.parametrize("times", [report.LOOKS - 1, report.LOOKS])
def test_a_replica_whose_leader_changes_is_looked_for_again(
    there: BoundedFiles, job: FencedDirectory, replica: FencedDirectory, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    report.mark(replica)
    real, left = JobAdmin.directory, iter(range(times))

    def directory(admin: JobAdmin, name: str) -> FencedDirectory:
        if next(left, None) is not None:
            raise Fenced("Another one has taken over.")
        return real(admin, name)

    monkeypatch.setattr(JobAdmin, "directory", directory)
    if times < report.LOOKS:
        assert report.promoted_away(there, job, 5.0)
    else:
        with pytest.raises(Fenced):
            report.promoted_away(there, job, 5.0)


def test_a_store_that_does_not_answer_is_asked_once(
    there: BoundedFiles, job: FencedDirectory, replica: FencedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def directory(_: JobAdmin, name: str) -> FencedDirectory:
        asked.append(name)
        raise StoreError("It does not answer.")

    report.mark(replica)
    monkeypatch.setattr(JobAdmin, "directory", directory)
    with pytest.raises(StoreError):
        report.promoted_away(there, job, 5.0)
    assert asked == ["orders.replica"]
