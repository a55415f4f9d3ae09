"""A job's tree: created once and complete, and found after every rename, whatever else is there."""

import re

import pytest

from leader.contender.runtime import execute
from leader.election.events import CreateJob, Delete, FilesCommand, ListJob, ListRecord, MakeDirectory, Rename
from leader.layout import tree as job
from leader.layout.lease import Lease, Mode, first_lease
from leader.layout.names import LeaderDirectory, check_job
from leader.layout.tree import NOBODY
from store.errors import AlreadyExists, ConnectionLost, NotFound, StoreError, Unknown
from tests.unit.leader.faulty import DROPPED, LATE, LOST, REFUSED, FaultyFiles, Place, in_threads
from tests.unit.leader.samples import A, B

FIRST = LeaderDirectory(0, NOBODY)
LEASE = Lease(1, Mode.HDFS, 6000, A, "", "a")


def test_a_new_job_is_complete(place: Place) -> None:
    job.create(place.direct, "orders")
    assert place.names("") == ["orders"]
    assert place.names("orders") == [FIRST.name]
    assert place.names(f"orders/{FIRST.name}") == ["checkpoints", "history", "record", "spark", "status=CREATED"]
    assert place.names(f"orders/{FIRST.name}/record") == [first_lease(NOBODY).name]
    assert place.names(f"orders/{FIRST.name}/checkpoints") == ["next=1"]


def test_one_of_racing_creators_wins_and_nothing_is_left_over(place: Place) -> None:
    results = in_threads(8, lambda _: job.create(place.direct, "orders"))
    assert results.count(None) == 1
    assert all(isinstance(result, AlreadyExists) for result in results if result is not None)
    assert place.names("") == ["orders"]


def test_creating_leaves_an_existing_job_unchanged(place: Place) -> None:
    job.create(place.direct, "orders")
    led = LeaderDirectory(5, A)
    place.direct.rename(f"orders/{FIRST.name}", f"orders/{led.name}")
    with pytest.raises(AlreadyExists):
        job.create(place.direct, "orders")
    assert place.names("orders") == [led.name]


def test_creation_touches_nothing_that_exists(place: Place) -> None:
    place.direct.make_root()
    place.direct.write("orders", b"a file")
    with pytest.raises(AlreadyExists):
        job.create(place.direct, "orders")
    assert place.direct.read("orders", 100) == b"a file"


STEPS = 10


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize("fate", [LOST, DROPPED, LATE, REFUSED])
def test_a_job_exists_complete_or_not_at_all(place: Place, step: int, fate: str) -> None:
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


def test_the_remains_of_a_failed_creation_are_no_job(place: Place) -> None:
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
    place.direct.rename(f"orders/{FIRST.name}", f"orders/{led.name}")
    assert job.find(place.direct, "orders") == led


@pytest.mark.parametrize("epoch", [9_999_999_999, 1_000_000_000, 999_999_999, 4, 3, 1])
@pytest.mark.parametrize("inside", [[], ["record"], ["record", "record/endpoint~0000000004~1~0~="]])
def test_a_leader_directory_that_was_made_by_hand_is_not_believed(place: Place, epoch: int, inside: list[str]) -> None:
    job.create(place.direct, "orders")
    led = LeaderDirectory(3, A)
    place.direct.rename(f"orders/{FIRST.name}", f"orders/{led.name}")
    forged = LeaderDirectory(epoch, B)
    for each in ("", *inside):
        place.direct.make_directory(f"orders/{forged.name}/{each}".rstrip("/"))
    assert job.find(place.direct, "orders") == led
    assert job.read(place.direct, "orders")[0] == led
    assert job.read(place.direct, "orders", led)[0] == led


def test_of_two_leader_directories_with_a_lease_the_higher_epoch_counts(place: Place) -> None:
    job.create(place.direct, "orders")
    copied = LeaderDirectory(3, A)
    for each in ("", "/record", f"/record/{LEASE.name}"):
        place.direct.make_directory(f"orders/{copied.name}{each}")
    assert job.find(place.direct, "orders") == copied


def test_strays_in_the_record_are_ignored(place: Place) -> None:
    job.create(place.direct, "orders")
    home = f"orders/{FIRST.name}/record"
    for stray in ("lease", "lease~1~hdfs", "endpoint~~~", "tmp", f"{LEASE.name}.bak"):
        place.direct.make_directory(f"{home}/{stray}")
    place.direct.write(f"{home}/_SUCCESS", b"")
    directory, record = job.read(place.direct, "orders")
    assert (directory, record.lease, record.entries) == (FIRST, first_lease(NOBODY), frozenset())


def test_a_missing_job_is_reported_in_a_sentence(place: Place) -> None:
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


def test_a_known_directory_is_read_with_one_list(place: Place) -> None:
    job.create(place.direct, "orders")
    files = Counting(place, moves=0)
    known = LeaderDirectory(0, A)
    assert job.read(files, "orders", known)[0] == known  # type: ignore[arg-type]  # likewise
    assert files.lists == 1
    assert job.read(files, "orders", LeaderDirectory(0, B))[0] == known  # type: ignore[arg-type]  # likewise


def test_the_commands_of_an_election(place: Place) -> None:
    def run(command: FilesCommand) -> list[str] | None:
        return execute(place.direct, "orders", command)

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


def test_the_check_of_permissions_leaves_nothing_behind(place: Place) -> None:
    job.check_writable(place.direct, "orders")
    job.create(place.direct, "orders")
    before = [place.names(path) for path in ("", "orders", f"orders/{FIRST.name}/record")]
    job.check_writable(place.direct, "orders")
    assert [place.names(path) for path in ("", "orders", f"orders/{FIRST.name}/record")] == before
