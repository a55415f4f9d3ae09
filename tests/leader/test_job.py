"""A job's tree: created once and whole, found wherever it was renamed to, whatever else lies about."""

import re

import pytest

from leader import execution, job
from leader.events import CreateJob, Delete, FilesCommand, ListJob, ListRecord, MakeDirectory, Rename
from leader.job import NOBODY
from leader.lease import Lease, Mode, first_lease
from leader.names import LeaderDirectory, check_job
from store.errors import AlreadyExists, ConnectionLost, NotFound, StoreError, Unknown
from tests.leader.faulty import DROPPED, LATE, LOST, REFUSED, FaultyFiles, Place, in_threads
from tests.leader.samples import A, B

FIRST = LeaderDirectory(0, NOBODY)
LEASE = Lease(1, Mode.HDFS, 6000, A, "", "a")


def test_a_new_job_is_complete(place: Place) -> None:
    job.create(place.direct, "orders")
    assert place.names("") == ["orders"]
    assert place.names("orders") == [FIRST.name]
    assert place.names(f"orders/{FIRST.name}") == ["checkpoints", "history", "record", "spark", "status=CREATED"]
    assert place.names(f"orders/{FIRST.name}/record") == [first_lease(NOBODY).name]
    assert place.names(f"orders/{FIRST.name}/checkpoints") == ["next=1"]


def test_of_racing_creators_exactly_one_wins_and_nothing_is_left_over(place: Place) -> None:
    results = in_threads(8, lambda _: job.create(place.direct, "orders"))
    assert results.count(None) == 1
    assert all(isinstance(result, AlreadyExists) for result in results if result is not None)
    assert place.names("") == ["orders"]


def test_creating_leaves_a_job_that_is_there_as_it_is(place: Place) -> None:
    job.create(place.direct, "orders")
    led = LeaderDirectory(5, A)
    place.direct.rename(f"orders/{FIRST.name}", f"orders/{led.name}")
    with pytest.raises(AlreadyExists):
        job.create(place.direct, "orders")
    assert place.names("orders") == [led.name]


def test_what_is_in_the_way_is_not_touched(place: Place) -> None:
    place.direct.make_root()
    place.direct.write("orders", b"a file")
    with pytest.raises(AlreadyExists):
        job.create(place.direct, "orders")
    assert place.direct.read("orders", 100) == b"a file"


STEPS = 10


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize("fate", [LOST, DROPPED, LATE, REFUSED])
def test_a_job_is_there_whole_or_not_at_all(place: Place, step: int, fate: str) -> None:
    place.faulty.fates.extend(["ok"] * step + [fate])
    with pytest.raises(StoreError):
        job.create(place.faulty, "orders")
    assert not place.faulty.fates, "there are as many steps as the test thinks"
    place.faulty.catch_up()
    if "orders" in place.names(""):
        assert fate == LOST
        assert step == STEPS - 1
        assert place.names(f"orders/{FIRST.name}/record") == [first_lease(NOBODY).name]
    else:
        job.create(place.faulty, "orders")


def test_what_a_failed_creation_leaves_behind_is_no_job(place: Place) -> None:
    place.faulty.fates.extend(["ok", "ok", DROPPED])
    with pytest.raises(Unknown):
        job.create(place.faulty, "orders")
    assert place.names("") == [], "it cleans up while it can"
    with pytest.raises(Unknown):
        job.create(Uncleaned(place), "orders")
    (left,) = place.names("")
    assert left.startswith(".creating-")
    with pytest.raises(ValueError, match="is not a job name"):
        check_job(left)


class Uncleaned(FaultyFiles):
    """Loses the answer to the first change, and cannot delete."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.root)
        self.fates.append(LOST)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        raise ConnectionLost(f"{path} {recursive}")


def test_finding_the_leader_directory_among_strays(place: Place) -> None:
    job.create(place.direct, "orders")
    for stray in (f"{LeaderDirectory(9, A).name}.bak", "_temporary", "status=RUNNING", "9999999999", "lost+found"):
        place.direct.make_directory(f"orders/{stray}")
    place.direct.write("orders/README", b"by hand")
    assert job.find(place.direct, "orders") == FIRST
    led = LeaderDirectory(3, A)
    place.direct.make_directory(f"orders/{led.name}")
    assert job.find(place.direct, "orders") == led


def test_strays_in_the_record_are_ignored(place: Place) -> None:
    job.create(place.direct, "orders")
    home = f"orders/{FIRST.name}/record"
    for stray in ("lease", "lease~1~hdfs", "endpoint~~~", "tmp", f"{LEASE.name}.bak"):
        place.direct.make_directory(f"{home}/{stray}")
    place.direct.write(f"{home}/_SUCCESS", b"")
    directory, record = job.read(place.direct, "orders")
    assert (directory, record.lease, record.entries) == (FIRST, first_lease(NOBODY), frozenset())


def test_what_is_not_there_is_a_sentence(place: Place) -> None:
    with pytest.raises(NotFound, match=re.escape(f"There is no job 'orders' under file://{place.root}")):
        job.find(place.direct, "orders")
    place.direct.make_root()
    place.direct.make_directory("orders")
    with pytest.raises(NotFound, match="holds no leader directory"):
        job.find(place.direct, "orders")
    place.direct.make_directory(f"orders/{FIRST.name}")
    with pytest.raises(NotFound, match="holds no record"):
        job.read(place.direct, "orders")


class Counting:
    """Renames the leader directory after each of the first lists, like leaders that follow each other fast."""

    def __init__(self, place: Place, moves: int) -> None:
        self.place = place
        self.moves = moves
        self.lists = 0
        self.epoch = 0
        self.uri = place.direct.uri
        self.place.direct.rename(f"orders/{FIRST.name}", f"orders/{LeaderDirectory(0, A).name}")

    def list(self, path: str) -> object:
        self.lists += 1
        found = self.place.direct.list(path)
        if path == "orders" and self.moves:
            self.moves -= 1
            old, self.epoch = LeaderDirectory(self.epoch, A), self.epoch + 1
            self.place.direct.rename(f"orders/{old.name}", f"orders/{LeaderDirectory(self.epoch, A).name}")
        return found


def test_reading_follows_a_renamed_directory(place: Place) -> None:
    job.create(place.direct, "orders")
    files = Counting(place, moves=3)
    directory, record = job.read(files, "orders")  # type: ignore[arg-type]  # it lists, and that is all that is asked
    assert directory == LeaderDirectory(3, A)
    assert record.lease == first_lease(NOBODY)


def test_reading_does_not_follow_for_ever(place: Place) -> None:
    job.create(place.direct, "orders")
    files = Counting(place, moves=1000)
    with pytest.raises(NotFound, match="holds no record"):
        job.read(files, "orders")  # type: ignore[arg-type]  # likewise
    assert files.lists <= 2 * job.READ_ATTEMPTS


def test_one_list_is_enough_for_a_directory_that_is_known(place: Place) -> None:
    job.create(place.direct, "orders")
    files = Counting(place, moves=0)
    known = LeaderDirectory(0, A)
    assert job.read(files, "orders", known)[0] == known  # type: ignore[arg-type]  # likewise
    assert files.lists == 1
    assert job.read(files, "orders", LeaderDirectory(0, B))[0] == known  # type: ignore[arg-type]  # likewise


def test_the_commands_of_an_election(place: Place) -> None:
    def run(command: FilesCommand) -> list[str] | None:
        return execution.execute(place.direct, "orders", command)

    with pytest.raises(NotFound):
        run(ListJob())
    run(CreateJob())
    assert run(ListJob()) == [FIRST.name]
    led = LeaderDirectory(1, A)
    run(Rename(FIRST.name, led.name))
    assert run(ListRecord(led)) == [first_lease(NOBODY).name]
    run(MakeDirectory(f"{led.name}/record/{LEASE.name}"))
    assert sorted(run(ListRecord(led)) or []) == sorted([first_lease(NOBODY).name, LEASE.name])
    run(Delete(f"{led.name}/record/{LEASE.name}"))
    with pytest.raises(NotFound):
        run(ListRecord(FIRST))
    with pytest.raises(NotFound):
        run(Rename(FIRST.name, LeaderDirectory(2, B).name))
