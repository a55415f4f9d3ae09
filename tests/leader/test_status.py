"""The job's state: one name, changed by a rename, and so fenced."""

import pytest

from leader import job, status
from leader.job import NOBODY
from leader.names import LeaderDirectory
from leader.status import Status
from store.errors import ConnectionLost, NotFound, NotWritable
from tests.leader.faulty import LATE, LOST, REFUSED, Place
from tests.leader.samples import A

FIRST, SECOND = LeaderDirectory(0, NOBODY), LeaderDirectory(1, A)


@pytest.fixture
def created(place: Place) -> Place:
    job.create(place.direct, "orders")
    return place


def statuses(place: Place, directory: LeaderDirectory = FIRST) -> list[str]:
    return [name for name in place.names(f"orders/{directory.name}") if name.startswith("status=")]


def test_a_new_job_is_created(created: Place) -> None:
    assert status.read(created.direct, "orders", FIRST) is Status.CREATED


@pytest.mark.parametrize("state", Status)
def test_a_change_is_one_rename(created: Place, state: Status) -> None:
    status.change(created.direct, "orders", FIRST, state)
    assert status.read(created.direct, "orders", FIRST) is state
    expected = f"status={state.value}" if state is not Status.CREATED else "status=CREATED~2"
    assert statuses(created) == [expected]


def test_a_state_that_is_only_seen_is_written_once_more(created: Place) -> None:
    """A NameNode lists what its journal may never have; a rename that needs it is acknowledged only if it is there."""
    for name in ("RUNNING", "RUNNING~2", "RUNNING~3"):
        status.change(created.direct, "orders", FIRST, Status.RUNNING)
        assert statuses(created) == [f"status={name}"]
        assert status.read(created.direct, "orders", FIRST) is Status.RUNNING
    created.direct.rename(f"orders/{FIRST.name}/status=RUNNING~3", f"orders/{FIRST.name}/status=RUNNING~9999")
    status.change(created.direct, "orders", FIRST, Status.RUNNING)
    assert statuses(created) == ["status=RUNNING"]


def test_it_moves_on_with_the_job(created: Place) -> None:
    status.change(created.direct, "orders", FIRST, Status.FINISHED)
    created.direct.rename(f"orders/{FIRST.name}", f"orders/{SECOND.name}")
    assert status.read(created.direct, "orders", SECOND) is Status.FINISHED


def test_an_old_leader_neither_reads_nor_changes_it(created: Place) -> None:
    created.direct.rename(f"orders/{FIRST.name}", f"orders/{SECOND.name}")
    with pytest.raises(NotFound, match="Epoch 0 of job 'orders' is over"):
        status.read(created.direct, "orders", FIRST)
    with pytest.raises(NotFound):
        status.change(created.direct, "orders", FIRST, Status.FINISHED)
    assert statuses(created, SECOND) == ["status=CREATED"]


def test_who_asks_with_a_deadline_hears_that_it_was_fenced_too(created: Place) -> None:
    """What is no answer of a store comes out of such a call as unknown: a fenced leader tried until its lease ended."""
    created.direct.rename(f"orders/{FIRST.name}", f"orders/{SECOND.name}")
    with pytest.raises(NotFound):
        created.files.call("status", lambda files: status.change(files, "orders", FIRST, Status.FINISHED), 30)


def test_a_leader_that_is_fenced_between_looking_and_changing_is_fenced(created: Place) -> None:
    created.faulty.before_change = lambda: created.direct.rename(f"orders/{FIRST.name}", f"orders/{SECOND.name}")
    with pytest.raises(NotFound):
        status.change(created.faulty, "orders", FIRST, Status.FINISHED)
    assert statuses(created, SECOND) == ["status=CREATED"]


def test_somebody_else_brought_it_there_meanwhile(created: Place) -> None:
    created.faulty.before_change = lambda: status.change(created.direct, "orders", FIRST, Status.RUNNING)
    status.change(created.faulty, "orders", FIRST, Status.RUNNING)
    assert statuses(created) == ["status=RUNNING~2"]


def test_an_unknown_outcome_is_told_and_saying_it_again_settles_it(created: Place) -> None:
    created.faulty.fates.append(LOST)
    with pytest.raises(ConnectionLost):
        status.change(created.faulty, "orders", FIRST, Status.RUNNING)
    status.change(created.faulty, "orders", FIRST, Status.RUNNING)
    assert statuses(created) == ["status=RUNNING~2"]


def test_a_late_change_is_refused_once_the_state_has_moved_on(created: Place) -> None:
    created.faulty.fates.append(LATE)
    with pytest.raises(Exception, match="in time"):
        status.change(created.faulty, "orders", FIRST, Status.RUNNING)
    status.change(created.faulty, "orders", FIRST, Status.FINISHED)
    created.faulty.catch_up()
    assert statuses(created) == ["status=FINISHED"]


def test_a_refusal_is_told(created: Place) -> None:
    created.faulty.fates.append(REFUSED)
    with pytest.raises(NotWritable):
        status.change(created.faulty, "orders", FIRST, Status.RUNNING)


def test_a_job_whose_state_was_deleted_counts_as_created_and_can_go_on(created: Place) -> None:
    created.direct.delete(f"orders/{FIRST.name}/status=CREATED")
    created.direct.make_directory(f"orders/{FIRST.name}/status=DANCING")
    assert status.read(created.direct, "orders", FIRST) is Status.CREATED
    status.change(created.direct, "orders", FIRST, Status.RUNNING)
    assert status.read(created.direct, "orders", FIRST) is Status.RUNNING
