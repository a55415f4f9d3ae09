"""Draining a host, with contenders that do what real ones do when they are asked."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ha.drain.drain import HostDrain, SeenJob, least_loaded, plan
from ha.drain.undrain import Undrained, undrain
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from leader.job.barring import drained
from leader.layout import tree
from leader.layout.bar import Bar, bar_of, bars
from leader.layout.information import Record
from leader.layout.lease import ANYBODY, Lease, Mode
from leader.layout.names import CHECKPOINTS, RECORD, LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import ConnectionLost, PermissionDenied
from store.files import Files
from store.local import LocalFiles
from tests.unit.ha.clocks import At
from tests.unit.ha.led import session

ORDER = Bar("a", 2_000_000_000, "ada", "new disks")
WALL = 1_900_000_000.0

NONE: frozenset[str] = frozenset()


class Clock(At):
    def __init__(self) -> None:
        super().__init__(1000.0)
        self.meanwhile: list[Callable[[], object]] = []

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.meanwhile:
            self.meanwhile.pop(0)()


class Cluster(JobAdmin):
    """Jobs on a real directory; leaders hand over as soon as they are asked."""

    def __init__(self, root: Path) -> None:
        self.direct = LocalFiles(root, durable=False)
        self.opened = BoundedFiles(lambda: LocalFiles(root, durable=False), uri="file:///jobs")
        super().__init__(self.opened, None, 10.0)
        self.known: dict[str, list[str] | None] = {}
        self.moves: list[tuple[str, str]] = []
        self.heedless = False
        self.closed: set[str] = set()
        """Jobs of other users, which they alone may read."""
        self.takes: Clock | None = None
        """Where the time passes in which nobody hands over."""
        self.asked: Callable[[str], object] = bool
        """Called with each job whose leader is asked to go, before anything else happens."""
        self.moved: Callable[[str], object] = bool
        """Called with each job that has moved."""

    def add(self, job: str, holder: str, contenders: list[str] | None, batches: int = 0) -> None:
        tree.create(self.direct, job)
        self.known[job] = contenders
        self.lead(job, holder)
        for _ in range(batches):
            self.complete(job)

    def lead(self, job: str, contender: str) -> None:
        old = tree.find(self.direct, job)
        new = LeaderDirectory(old.epoch + 1, session(old.epoch + 1))
        record = f"{job}/{old.name}/{RECORD}"
        held = self.read(job).lease
        assert held is not None
        lease = Lease(held.sequence + 1, Mode.HDFS, 3_600_000, new.session_id, "", contender)
        self.direct.rename(f"{record}/{held.name}", f"{record}/{lease.name}")
        self.direct.rename(f"{job}/{old.name}", f"{job}/{new.name}")

    def complete(self, job: str) -> None:
        folder = f"{job}/{tree.find(self.direct, job).name}/{CHECKPOINTS}"
        names = [each.name for each in self.direct.list(folder) if not each.name.startswith("next=")]
        self.direct.make_directory(f"{folder}/daily={len(names)}~{len(names) + 1}~1~~~~~")

    def read(self, job: str) -> Record:
        entries = self.direct.list(f"{job}/{tree.find(self.direct, job).name}/{RECORD}")
        return Record.parse([each.name for each in entries])

    def holder(self, job: str) -> str:
        lease = self.read(job).lease
        assert lease is not None
        return lease.contender

    def contenders(self, job: str) -> list[str] | None:
        return self.known[job]

    def record(self, job: str) -> tuple[LeaderDirectory, Record]:
        if job in self.closed:
            raise PermissionDenied(f"user=ada, access=READ_EXECUTE, inode={job}")
        return super().record(job)

    def note(self, change: Callable[[Files], None]) -> None:
        self.call("drain", change)

    def ask_to_hand_over(self, job: str, successor: str = ANYBODY, operator: str = "") -> LeaderDirectory:
        assert operator == "ada"
        assert bar_of(bars(self.read(job)), self.holder(job)), "it is barred before it is asked to go"
        self.asked(job)
        self.moves.append((job, successor))
        return tree.find(self.direct, job)

    def handed_over(self, job: str, since: LeaderDirectory, timeout: float) -> tuple[LeaderDirectory, Lease] | None:
        assert timeout >= 0
        del since
        if self.heedless:
            if self.takes is not None:
                self.takes.sleep(timeout)
            return None
        successor = next(to for name, to in reversed(self.moves) if name == job)
        self.lead(job, "b" if successor == ANYBODY else successor)
        after = tree.find(self.direct, job), self.lease(job)[1]
        self.moved(job)
        return after


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.opened.close()


def drain(
    cluster: Cluster, clock: Clock | None = None, *, wall: float = WALL, tell: Callable[[str], None] = lambda _: None
) -> HostDrain:
    return HostDrain(cluster, cluster.note, ORDER, wall, tell, clock or Clock())


def test_what_the_host_leads_goes_to_those_that_lead_least(cluster: Cluster) -> None:
    for job in ("j1", "j2", "j3"):
        cluster.add(job, "a", ["a", "b", "c"])
    cluster.add("k", "b", ["a", "b"])
    cluster.add("other", "b", ["b", "c"])
    done = drain(cluster).run(60.0, 1)
    assert done.left == []
    assert [(each.job, each.to, each.epoch) for each in done.moved] == [("j1", "c", 2), ("j2", "c", 2), ("j3", "b", 2)]
    assert [each.checkpoint for each in done.moved] == [None, None, None]
    assert done.barred == 4
    assert [set(bars(cluster.read(job))) for job in ("j1", "k", "other")] == [{"a"}, {"a"}, set()]
    assert cluster.call("drained", drained) == {"a": ORDER}


def test_all_that_have_named_themselves_on_the_host_are_drained(cluster: Cluster) -> None:
    here, again, elsewhere = "a-12-0a1b2c", "a-13-0a1b2d", "b-7-0a1b2e"
    cluster.add("j", here, [here, again, elsewhere])
    cluster.add("alone", again, [here, again])
    cluster.add("k", elsewhere, [elsewhere])
    done = drain(cluster).run(60.0, 1)
    assert [(each.job, each.to) for each in done.moved] == [("j", elsewhere)]
    assert [each.job for each in done.left] == ["alone"]
    assert (done.barred, set(bars(cluster.read("j")))) == (1, {"a"}), "one that is started there later is barred too"


def test_a_job_has_moved_when_its_next_leader_has_completed_a_batch(cluster: Cluster) -> None:
    cluster.add("j", "a", ["a", "b"], batches=2)
    clock = Clock()
    clock.meanwhile = [lambda: None, lambda: None, lambda: cluster.complete("j")]
    (moved,) = drain(cluster, clock).run(60.0, 4).moved
    assert (moved.to, moved.checkpoint, moved.seconds) == ("b", 3, 1.5)


def test_one_that_completes_nothing_in_time_is_left_and_waited_for_aloud(cluster: Cluster) -> None:
    cluster.add("j", "a", ["a", "b"], batches=2)
    said: list[str] = []
    done = drain(cluster, tell=said.append).run(25.0, 4)
    assert [(each.job, each.why) for each in done.left] == [
        ("j", "b leads it and has completed no batch in time: that needs input")
    ]
    assert said[1:] == [f"j: b leads it, and has completed no batch in {each} s." for each in (10, 20)]
    assert drain(cluster).run(25.0, 4).left == [], "given again, it has moved"


def test_one_whose_leader_does_not_go_is_left(cluster: Cluster) -> None:
    cluster.add("j", "a", ["a", "b"])
    cluster.heedless = True
    clock = Clock()
    cluster.takes = clock
    done = drain(cluster, clock).run(60.0, 4)
    assert [each.why for each in done.left] == ["it was not taken over in time: see `ha job list` and its leader's log"]
    assert clock.at == 1060.0


def test_a_job_that_nobody_else_can_lead_is_left_alone_and_others_move(cluster: Cluster) -> None:
    cluster.add("alone", "a", ["a"])
    cluster.add("j", "a", ["a", "b"])
    done = drain(cluster).run(60.0, 4)
    assert [each.job for each in done.left] == ["alone"]
    assert [each.job for each in done.moved] == ["j"]
    assert bars(cluster.read("alone")) == {}


def test_nothing_moves_if_nothing_can(cluster: Cluster) -> None:
    cluster.add("alone", "a", ["a"])
    cluster.add("k", "b", ["a", "b"])
    done = drain(cluster).run(60.0, 4)
    assert (done.barred, done.moved, [each.job for each in done.left]) == (0, [], ["alone"])
    assert bars(cluster.read("k")) == {}
    assert cluster.call("drained", drained) == {}


def test_a_host_that_leads_nothing_is_barred_all_the_same(cluster: Cluster) -> None:
    cluster.add("k", "b", ["a", "b"])
    done = drain(cluster).run(60.0, 4)
    assert (done.barred, done.moved, done.left) == (1, [], [])


def test_without_zookeeper_it_is_barred_from_every_job_and_anybody_may_take_over(cluster: Cluster) -> None:
    cluster.add("j", "a", None)
    cluster.add("k", "b", None)
    done = drain(cluster).run(60.0, 4)
    assert cluster.moves == [("j", ANYBODY)]
    assert (done.barred, [each.to for each in done.moved]) == (2, ["b"])


def test_hosts_that_are_drained_or_barred_get_nothing(cluster: Cluster) -> None:
    cluster.add("j", "a", ["a", "b", "c", "d"])
    HostDrain(cluster, cluster.note, Bar("b", 1_950_000_000), WALL, clock=Clock()).run(60.0, 1)
    HostDrain(cluster, cluster.note, Bar("c", 1_850_000_000), WALL, clock=Clock()).run(60.0, 1)
    assert drain(cluster).run(60.0, 1).moved[0].to == "c", "its time is over"


def test_what_comes_back_before_the_bar_is_read_is_moved_again(cluster: Cluster) -> None:
    cluster.add("j", "a", ["a", "b"])
    cluster.moved = lambda job: cluster.lead(job, "a") if len(cluster.moves) == 1 else None
    done = drain(cluster).run(60.0, 4)
    assert [(each.to, each.epoch) for each in done.moved] == [("b", 4)]
    assert len(cluster.moves) == 2


def test_what_is_led_by_the_host_at_the_end_is_moved_once_more(cluster: Cluster) -> None:
    cluster.add("k", "b", ["a", "b"])
    cluster.add("j", "a", ["a", "b"])
    cluster.asked = lambda job: cluster.lead("k", "a") if job == "j" else None  # it had heard of a release
    done = drain(cluster).run(60.0, 4)
    assert sorted(each.job for each in done.moved) == ["j", "k"]
    assert cluster.holder("k") == "b"


def test_a_leader_that_has_just_gone_is_waited_for(cluster: Cluster) -> None:
    cluster.add("j", "a", ["a", "b"])

    def too_late(job: str) -> None:
        cluster.lead(job, "b")
        raise NoLeader("Job 'j' has no leader: its lease is free.")

    cluster.asked = too_late
    done = drain(cluster).run(60.0, 4)
    assert [(each.job, each.to) for each in done.moved] == [("j", "b")]


def test_a_store_that_fails_for_one_job_holds_up_no_other(cluster: Cluster) -> None:
    for job in ("j1", "j2"):
        cluster.add(job, "a", ["a", "b"])

    def fails_for_one(job: str) -> None:
        if job == "j1":
            raise ConnectionLost("No answer.")

    cluster.asked = fails_for_one
    done = drain(cluster).run(60.0, 4)
    assert [(each.job, each.why) for each in done.left] == [("j1", "No answer.")]
    assert [each.job for each in done.moved] == ["j2"]


def test_asking_again_changes_the_order_and_moves_what_is_left(cluster: Cluster) -> None:
    cluster.add("j", "a", ["a", "b"])
    cluster.heedless = True
    cluster.takes = Clock()
    assert len(drain(cluster, cluster.takes).run(60.0, 4).left) == 1
    cluster.lead("j", "b")
    later = Bar("a", ORDER.until + 60, "zoe")
    done = HostDrain(cluster, cluster.note, later, WALL, clock=Clock()).run(60.0, 4)
    assert (done.barred, done.moved, done.left) == (1, [], [])
    assert bars(cluster.read("j")) == cluster.call("drained", drained) == {"a": later}


def test_the_host_may_lead_again(cluster: Cluster) -> None:
    cluster.add("j", "a", ["a", "b"])
    cluster.add("other", "b", ["b", "c"])
    drain(cluster).run(60.0, 4)
    assert undrain(cluster, "a") == Undrained("a", True, ["j"], [])
    assert bars(cluster.read("j")) == {}
    assert undrain(cluster, "a") == Undrained("a", False, [], [])


def test_another_users_job_ends_nothing_and_is_told(cluster: Cluster) -> None:
    """R67 of the reports: what cannot be read is not known, neither as moved nor as free."""
    for job in ("i", "j", "k"):
        cluster.add(job, "a", ["a", "b"])
    cluster.closed = {"j"}
    done = drain(cluster).run(60.0, 4)
    assert [each.job for each in done.moved] == ["i", "k"]
    assert [(each.job, each.why.partition(",")[0]) for each in done.left] == [("j", "another user's job")]
    assert undrain(cluster, "a") == Undrained("a", True, ["i", "k"], ["j"])


@pytest.mark.parametrize(
    ("seen", "done"),
    [
        (SeenJob("j", 1, "a", ["a", "b"]), "bar move"),
        (SeenJob("j", 1, "b", ["a", "b"]), "bar"),
        (SeenJob("j", 1, None, ["a", "b"]), "bar"),
        (SeenJob("j", 1, "b", ["b", "c"]), ""),
        (SeenJob("j", 1, "a", ["a"]), "stuck"),
        (SeenJob("j", 1, None, ["a"]), ""),
        (SeenJob("j", 1, "a", ["a", "d"]), "stuck"),
        (SeenJob("j", 1, "b", ["a", "b"], frozenset({"b"})), "bar"),
        (SeenJob("j", 1, "a", ["a", "b"], frozenset({"b"})), "stuck"),
        (SeenJob("j", 1, "a", ["b"]), "bar move"),
        (SeenJob("j", 1, "a", None), "bar move"),
        (SeenJob("j", 1, "b", None), "bar"),
        (SeenJob("j", 1, None, None), "bar"),
    ],
)
def test_a_job_is_barred_moved_or_left_alone(seen: SeenJob, done: str) -> None:
    found = plan([seen], "a", {"d"})
    said = [name for name in ("bar", "move", "stuck") if getattr(found, name) == [seen]]
    assert " ".join(said) == done


def test_the_contender_that_leads_the_fewest_jobs_is_chosen() -> None:
    leads = Counter({"b": 2, "c": 1})
    assert [least_loaded(["c", "b", "d"], leads) for _ in range(5)] == ["d", "c", "d", "b", "c"]
