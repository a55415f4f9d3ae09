"""A move between roots: whatever dies, and when, one root at most has the job, and it can be completed or undone."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.groups.moving import mover as module
from ha.groups.moving import staying
from ha.groups.moving.marks import Copy, copies_in
from ha.groups.moving.mirror import Mirror
from ha.groups.moving.mover import ROUNDS, SMALL_S, Mover
from ha.groups.moving.steps import Handover, look
from ha.groups.placement.place import Pointer
from leader.errors import LeaderError, NoLeader
from leader.job.admin import JobAdmin
from leader.layout import tree
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import Conflict, Invalid, NotFound, StoreError, Unknown
from store.files import Entry
from store.local import LocalFiles
from tests.unit.ha.clocks import At
from tests.unit.ha.groups.roots import LONG, Roots

JOB = "orders"
OLD = "11111111-1111-4111-8111-111111111111"
NEW = "22222222-2222-4222-8222-222222222222"
FILES = {"spark/q/metadata": b"m", "spark/q/offsets/0": b"o", "spark/q/state/0/0/1.zip": b"state", "programs/1=a": b"p"}
NAMES = ("status=RUNNING", "checkpoints/q=0~1~1~5~6~7~8~", "history/0000000001-x~took-over~h1", "spark/q/commits")


class Process:
    """The files of one process. It dies at a change: before it, or after; then no call of it is answered any more."""

    def __init__(self, roots: Roots, dies_at: int | None = None, *, after: bool = False) -> None:
        self._roots, self._dies_at, self._after = roots, dies_at, after
        self.changes: list[str] = []
        self.dead = False
        self.group = SimpleNamespace(
            roots={uri: BoundedFiles(partial(Remote, self, roots.drivers[uri]), uri=uri) for uri in roots.uris}
        )

    def change(self, name: str, do: Callable[[], None]) -> None:
        self.check()
        if "/moving" in name or "arriving" in name.partition(" ")[0]:  # the copy itself can be repeated at any time
            return do()
        self.changes.append(name)
        if len(self.changes) - 1 == self._dies_at:
            self.dead = True
            if not self._after:
                raise Unknown("It died before.")
        do()
        assert len(leads(self._roots)) <= 1, f"two roots have the job after {name}"
        if self.dead:
            raise Unknown("It died after.")
        return None

    def check(self) -> None:
        if self.dead:
            raise Unknown("It is dead.")

    def close(self) -> None:
        for each in self.group.roots.values():
            each.close()


class Remote:
    """One root, as a process sees it."""

    def __init__(self, process: Process, driver: LocalFiles) -> None:
        self._process, self._driver, self.uri = process, driver, driver.uri

    def list(self, path: str) -> list[Entry]:
        self._process.check()
        return self._driver.list(path)

    def read(self, path: str, limit: int) -> bytes:
        self._process.check()
        return self._driver.read(path, limit)

    def make_root(self) -> None:
        self._process.check()
        self._driver.make_root()

    def make_directory(self, path: str) -> None:
        self._process.change(f"make {path}", lambda: self._driver.make_directory(path))

    def write(self, path: str, data: bytes) -> None:
        self._process.change(f"write {path}", lambda: self._driver.write(path, data))

    def rename(self, source: str, destination: str) -> None:
        self._process.change(f"rename {source} {destination}", lambda: self._driver.rename(source, destination))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self._process.change(f"delete {path}", lambda: self._driver.delete(path, recursive=recursive))

    def close(self) -> None:
        pass


def leads(roots: Roots) -> list[str]:
    """The roots at which somebody could lead the job: they hold a leader directory with a lease."""
    return [uri for uri, driver in roots.drivers.items() if led(driver) is not None]


def led(driver: LocalFiles) -> tuple[LeaderDirectory, Lease] | None:
    try:
        leader, record = tree.read(driver, JOB)
    except NotFound:
        return None
    return (leader, record.lease) if record.lease is not None else None


def claim(driver: LocalFiles, contender: str) -> LeaderDirectory:
    """Lead as the protocol does: seize the lease, and rename the leader directory."""
    found = led(driver)
    assert found is not None
    leader, lease = found
    new = LeaderDirectory(leader.epoch + 1, NEW)
    mine = Lease(lease.sequence + 1, Mode.HDFS, 6000, NEW, "", contender)
    record = f"{JOB}/{leader.name}/record"
    driver.rename(f"{record}/{lease.name}", f"{record}/{mine.name}")
    driver.rename(f"{JOB}/{leader.name}", f"{JOB}/{new.name}")
    return new


@pytest.fixture
def source(roots: Roots) -> str:
    """A job with a checkpoint, at its home."""
    uri = roots.home(JOB)
    driver = roots.drivers[uri]
    tree.create(driver, JOB)
    home = driver.path / JOB / claim(driver, "h1").name
    for name in NAMES:
        (home / name).mkdir(parents=True, exist_ok=True)
    for name, data in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
    return uri


class Leading:
    """Leads at a root as the mover does; ``then`` happens while it leads."""

    def __init__(self, roots: Roots, then: Callable[[], object] = bool) -> None:
        self._roots, self._then = roots, then
        self.believes = True

    @contextmanager
    def __call__(self, root: str, contender: str) -> Iterator[Any]:
        leader = claim(self._roots.drivers[root], contender)
        self._then()
        yield SimpleNamespace(own=SimpleNamespace(leader=leader), is_leader=lambda: self.believes)


def mover(process: Process, roots: Roots, lead: Any = None) -> Mover:
    return Mover(process.group, JOB, lead or Leading(roots), call_timeout=LONG, timeout=0.0)  # type: ignore[arg-type]


def content(roots: Roots, root: str) -> dict[str, bytes]:
    found = led(roots.drivers[root])
    assert found is not None
    home = roots.drivers[root].path / JOB / found[0].name
    return {str(each.relative_to(home)): each.read_bytes() for each in home.rglob("*") if each.is_file()}


def whole(roots: Roots, root: str) -> None:
    """The job lies at this root only, complete, and can be led with a higher epoch than ever before."""
    assert leads(roots) == [root]
    assert content(roots, root) == FILES
    found = led(roots.drivers[root])
    assert found is not None
    home = roots.drivers[root].path / JOB / found[0].name
    assert all((home / name).is_dir() for name in NAMES)
    for _ in range(2):
        assert roots.group().call("find", lambda files: tree.find(files, JOB), LONG) == found[0]


def changes_of_a_move(path: Path) -> list[str]:
    """The changes of a move that nobody interrupts."""
    made = Roots(path)
    driver = made.drivers[made.home(JOB)]
    tree.create(driver, JOB)
    claim(driver, "h1")
    process = Process(made)
    mover(process, made).move(made.others(JOB)[0])
    made.close()
    process.close()
    return process.changes


def test_a_job_moves_with_all_that_it_has(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]
    process = Process(roots)
    _, held = led(roots.drivers[source]) or pytest.fail("nobody")
    done = mover(process, roots).move(target)
    assert (done.job, done.source, done.target) == (JOB, source, target)
    assert done.rounds >= 1
    assert done.bytes == sum(map(len, FILES.values()))
    assert (done.leader, done.pause) == ("", None)  # nobody contends for it here
    whole(roots, target)
    leader, lease = led(roots.drivers[target]) or pytest.fail("nobody")
    assert lease.sequence > held.sequence, "a renewal of the old lease that comes late is older"
    assert (leader.epoch, lease.mode, lease.owner) == (3, Mode.RELEASED, leader.session_id)
    (left,) = roots.drivers[source].list(JOB)
    assert Pointer.parse(left.name) == Pointer(1, target)
    assert roots.drivers[source].list(f"{JOB}/{left.name}") == []
    assert {each.name.partition("~")[0] for each in roots.drivers[target].list(JOB)} == {leader.name, "arrived"}


@pytest.mark.usefixtures("source")
def test_it_takes_the_leadership_by_an_orderly_hand_over(roots: Roots) -> None:
    asked: list[str] = []
    leading = Leading(roots)

    @contextmanager
    def lead(root: str, contender: str) -> Iterator[Any]:
        found = led(roots.drivers[root])
        assert found is not None
        asked.append(found[1].successor)
        assert found[1].successor == contender
        with leading(root, contender) as leadership:
            yield leadership

    mover(Process(roots), roots, lead).move(roots.others(JOB)[0])
    assert asked[0].startswith("move-")


@pytest.mark.usefixtures("source")
def test_all_is_loaded_before_the_leader_is_asked(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    asks = JobAdmin.ask_to_hand_over

    def ask(*arguments: Any) -> Any:
        order.append("ask")
        return asks(*arguments)

    def lead(root: str, contender: str) -> Any:
        order.append("load")
        return Leading(roots)(root, contender)

    monkeypatch.setattr(JobAdmin, "ask_to_hand_over", ask)
    mover(Process(roots), roots, lead).move(roots.others(JOB)[0])
    assert order == ["load", "ask"]
    whole(roots, roots.others(JOB)[0])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rounds before the last one: they change nothing that a reader sees."""
    monkeypatch.setattr(module, "ROUNDS", 0)


POINTS = 13
"""More changes than a move has, so that the last ones interrupt nothing."""


def test_there_are_no_more_changes_than_are_interrupted(tmp_path: Path) -> None:
    assert 6 <= len(changes_of_a_move(tmp_path)) <= POINTS


@pytest.mark.usefixtures("source", "at_once")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", range(POINTS))
def test_killed_anywhere_it_goes_on(roots: Roots, point: int, after: bool) -> None:
    target = roots.others(JOB)[0]
    process = Process(roots, point, after=after)
    interrupted = False
    try:
        mover(process, roots).move(target)
    except StoreError:
        interrupted = True
    assert interrupted == process.dead
    mover(Process(roots), roots).move(target)
    whole(roots, target)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", range(POINTS))
def test_killed_anywhere_it_can_be_undone_until_it_is_decided(
    roots: Roots, source: str, point: int, after: bool
) -> None:
    target = roots.others(JOB)[0]
    process = Process(roots, point, after=after)
    try:
        mover(process, roots).move(target)
    except StoreError:
        assert process.dead
    decided = leads(roots) == [target]
    assert mover(Process(roots), roots).undo() == (target if decided else source)
    whole(roots, target if decided else source)
    if not decided:
        mover(Process(roots), roots).move(target)
        whole(roots, target)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("point", range(6))
@pytest.mark.parametrize("after", [False, True])
def test_an_undo_that_is_killed_is_called_again(roots: Roots, source: str, point: int, after: bool) -> None:
    target = roots.others(JOB)[0]
    fenced(roots, target)
    with suppress(StoreError):
        mover(Process(roots, point, after=after), roots).undo()
    assert mover(Process(roots), roots).undo() == source
    whole(roots, source)


def fenced(roots: Roots, target: str) -> None:
    """A mover dies when it has fenced the source and has not decided."""

    class Dead(Handover):
        def decide(self, copy: Copy) -> None:
            raise Unknown(f"It died before {copy.name}.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Handover", Dead)
        with pytest.raises(Unknown):
            mover(Process(roots), roots).move(target)
    assert leads(roots) == []


def test_a_mover_that_wakes_up_after_an_undo_decides_nothing(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]

    class Paused(Handover):
        def decide(self, copy: Copy) -> None:
            assert mover(Process(roots), roots).undo() == source
            assert leads(roots) == [source]
            super().decide(copy)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Handover", Paused)
        with pytest.raises((StoreError, LeaderError)):
            mover(Process(roots), roots).move(target)
    assert len(leads(roots)) == 1


def test_an_undo_before_the_fence_keeps_a_mover_that_wakes_up_from_deciding(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]

    class Paused(Handover):
        def fence(self, sequence: int, old: LeaderDirectory) -> Pointer:
            mover(Process(roots), roots).undo()
            return super().fence(sequence, old)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Handover", Paused)
        with pytest.raises(Conflict, match="Another process has undone this move"):
            mover(Process(roots), roots).move(target)
    whole(roots, source)


def test_an_undo_that_looks_while_a_mover_seals_and_fences_revokes_that_copy_too(roots: Roots, source: str) -> None:
    """It lists the target before the copy is there, and the source after the fence: the copy must not be missed."""
    target = roots.others(JOB)[0]
    process = Process(roots)
    late = mover(process, roots)
    before = look(process.group.roots, JOB)
    fenced(roots, target)
    after = look(process.group.roots, JOB)
    torn = type(after)([before.of(each.root) if each.root == target else each for each in after.places])
    (sealed,) = after.of(target).copies
    with pytest.MonkeyPatch.context() as patch:
        looks = iter([torn])
        patch.setattr(module, "look", lambda roots, job: next(looks, None) or look(roots, job))
        assert late.undo() == source
    with pytest.raises(NotFound):
        Handover(process.group.roots, JOB, source, target).decide(sealed)
    whole(roots, source)


def test_of_two_copies_with_one_number_none_is_missed_by_an_undo(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]
    fenced(roots, target)
    (sealed,) = look(Process(roots).group.roots, JOB).of(target).copies
    other = Copy(sealed.sequence, True, LeaderDirectory(sealed.leader.epoch, OLD))
    roots.drivers[target].make_directory(f"{JOB}/{other.name}")
    assert mover(Process(roots), roots).undo() == source
    with pytest.raises(NotFound):
        Handover(Process(roots).group.roots, JOB, source, target).decide(sealed)
    whole(roots, source)


def test_a_leader_that_takes_over_meanwhile_keeps_the_job(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]

    class Late(Handover):
        def fence(self, sequence: int, old: LeaderDirectory) -> Pointer:
            claim(roots.drivers[source], "h2")
            with pytest.raises(NotFound):
                super().fence(sequence, old)
            raise Conflict("refused")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Handover", Late)
        with pytest.raises(Conflict, match="refused"):
            mover(Process(roots), roots).move(target)
    whole(roots, source)


def test_a_mover_that_lost_its_leadership_seals_nothing(roots: Roots, source: str) -> None:
    leading = Leading(roots)
    leading.believes = False
    with pytest.raises(LeaderError, match="taken over"):
        mover(Process(roots), roots, leading).move(roots.others(JOB)[0])
    whole(roots, source)


def test_what_is_written_after_the_copy_puts_the_job_back(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]

    class Written(Handover):
        def fence(self, sequence: int, old: LeaderDirectory) -> Pointer:
            (roots.drivers[source].path / JOB / old.name / "requests").mkdir()
            return super().fence(sequence, old)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Handover", Written)
        with pytest.raises(Conflict, match="requests was changed while it was copied"):
            mover(Process(roots), roots).move(target)
    whole(roots, source)
    (copy,) = copies_in(each.name for each in roots.drivers[target].list(JOB))
    assert (copy.undone, copy.sequence) == (True, 2), "it is a later decision than the move's, whose number was 1"
    mover(Process(roots), roots).move(target)
    whole(roots, target)


class Rounds:
    """A mirror whose rounds take these times and end with these errors."""

    def __init__(self, clock: At, rounds: list[tuple[float, Exception | None]]) -> None:
        self.clock, self.rounds = clock, rounds

    def round(self, leader: str) -> int:
        assert LeaderDirectory.parse(leader) is not None
        seconds, error = self.rounds.pop(0)
        self.clock.at += seconds
        if error is not None:
            raise error
        return 100


SHORT, LONGER = (SMALL_S, None), (SMALL_S + 0.1, None)
CHANGED = (0.0, Conflict("a file has changed"))


@pytest.mark.parametrize(
    ("rounds", "taken"),
    [
        ([SHORT], 1),
        ([LONGER, LONGER, SHORT], 3),
        ([CHANGED, (0.0, NotFound("gone")), SHORT], 3),
        ([LONGER] * ROUNDS, ROUNDS),
        ([CHANGED] * ROUNDS, ROUNDS),
    ],
)
def test_rounds_go_on_until_one_is_short_and_whole(
    roots: Roots, source: str, rounds: list[tuple[float, Exception | None]], taken: int
) -> None:
    clock, said, left = At(100.0), list[str](), [*rounds, *[SHORT] * 3]
    moving = Mover(
        Process(roots).group,  # type: ignore[arg-type]
        JOB,
        Leading(roots),
        call_timeout=LONG,
        timeout=0.0,
        say=said.append,
        clock=clock,
    )
    moving._follow(Rounds(clock, left), source)  # type: ignore[arg-type]
    assert len(said) == taken == len(rounds) + 3 - len(left)
    shown = [
        f"round {number}: {0 if each[1] else 100:,} bytes, {each[0]:.1f} s" for number, each in enumerate(rounds, 1)
    ]
    assert [each.partition(": ")[2].partition(" (")[0] for each in said] == shown


@pytest.mark.usefixtures("source")
@pytest.mark.usefixtures("source")
def test_a_move_says_how_long_it_took(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause begins when the old leader is asked."""
    clock = At(100.0)
    monkeypatch.setattr(JobAdmin, "handed_over", lambda *_: led(roots.drivers[roots.others(JOB)[0]]))

    def later() -> None:
        clock.at += 7.0

    moving = Mover(
        Process(roots).group,  # type: ignore[arg-type]
        JOB,
        Leading(roots, later),
        call_timeout=LONG,
        timeout=0.0,
        clock=clock,
    )
    done = moving.move(roots.others(JOB)[0])
    assert (done.seconds, done.pause) == (7.0, 7.0)


def test_of_what_has_moved_away_the_record_goes_first(roots: Roots, source: str) -> None:
    """An old leader directory without its record says that the move was decided, whatever a NameNode forgets."""
    process = Process(roots)
    mover(process, roots).move(roots.others(JOB)[0])
    (left,) = roots.drivers[source].list(JOB)
    deleted = [each.partition(f"{left.name}/")[2] for each in process.changes if f"{left.name}/" in each]
    assert deleted[0] == "record"
    assert len(deleted) > 1


def test_a_bar_moves_along_and_a_late_one_is_not_lost(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]
    leader, _ = led(roots.drivers[source]) or pytest.fail("nobody")
    bar = "barred~h1~99~me~maintenance"
    roots.drivers[source].make_directory(f"{JOB}/{leader.name}/record/{bar}")
    mover(Process(roots), roots).move(target)
    leader, _ = led(roots.drivers[target]) or pytest.fail("nobody")
    assert bar in {each.name for each in roots.drivers[target].list(f"{JOB}/{leader.name}/record")}


def test_a_file_with_other_content_under_its_name_is_copied_again(roots: Roots, source: str) -> None:
    def rewrite() -> None:
        found = led(roots.drivers[source])
        assert found is not None
        path = roots.drivers[source].path / JOB / found[0].name / "spark/q/offsets/0"
        path.write_bytes(b"O")
        os.utime(path, (1, 1))

    target = roots.others(JOB)[0]
    mover(Process(roots), roots, Leading(roots, rewrite)).move(target)
    assert content(roots, target)["spark/q/offsets/0"] == b"O"


def test_each_round_counts_the_bytes_of_what_has_changed(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]
    steps = Handover(roots.group().roots, JOB, source, target)
    steps.prepare()
    leader, _ = led(roots.drivers[source]) or pytest.fail("nobody")
    mirror = Mirror(roots.group().roots[source], roots.group().roots[target], JOB)
    home = roots.drivers[source].path / JOB / leader.name
    assert mirror.round(leader.name) == sum(map(len, FILES.values()))
    assert mirror.round(leader.name) == 0
    (home / "spark/q/offsets/1").write_bytes(b"new")
    os.utime(home / "spark/q/metadata", (1, 1))
    assert mirror.round(leader.name) == 3 + len(FILES["spark/q/metadata"])


class Copied:
    """A copy after one round, and what is changed in it from then on."""

    def __init__(self, roots: Roots, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
        target = roots.others(JOB)[0]
        found = led(roots.drivers[source])
        assert found is not None
        self._leader, self._lease = found
        self.home = roots.drivers[source].path / JOB / self._leader.name
        self.driver = roots.drivers[target]
        self.tree = self.driver.path / JOB / "moving/tree"
        self.driver.make_root()
        self.driver.make_directory(JOB)
        roots_of = roots.group().roots
        self._mirror = Mirror(roots_of[source], roots_of[target], JOB)
        self.round()
        self.changes: list[str] = []
        self.dies = False
        for name in ("write", "make_directory", "delete"):
            monkeypatch.setattr(self.driver, name, partial(self._change, name, getattr(self.driver, name)))

    def _change(self, name: str, do: Callable[..., None], path: str, *more: Any, **options: Any) -> None:
        if self.dies and "/tree/record" in path:
            raise Unknown("It dies.")
        self.changes.append(f"{name} {path.removeprefix(f'{JOB}/moving/')}")
        do(path, *more, **options)

    def round(self) -> None:
        self._mirror.round(self._leader.name)

    def last(self) -> str:
        self._mirror.last(self._leader.name, self._lease)
        return f"make_directory tree/record/{self._lease.name}"


def test_while_a_job_stands_still_only_what_has_changed_is_made(
    roots: Roots, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = Copied(roots, source, monkeypatch)
    (copied.home / "status=RUNNING").rename(copied.home / "status=ENDED")
    lease = copied.last()
    assert [each for each in copied.changes if " tree/" in each] == [
        "make_directory tree/status=ENDED",
        "delete tree/record",
        "delete tree/status=RUNNING",
        "make_directory tree/record",
        lease,
    ]
    assert "write listing.json" not in copied.changes, "it would take half a second on HDFS"


def test_a_round_makes_folders_of_what_is_on_its_way(
    roots: Roots, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = Copied(roots, source, monkeypatch)
    (copied.home / "spark/.x.tmp/below").mkdir(parents=True)
    copied.round()
    assert (copied.tree / "spark/.x.tmp/below").is_dir()


def test_a_last_round_that_died_leaves_nothing_that_is_taken_for_newer(
    roots: Roots, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = Copied(roots, source, monkeypatch)
    name = "spark/q/state/0/0/1.zip"
    for number, end in enumerate((copied.last, copied.round, copied.last), 1):
        (copied.home / name).write_bytes(b"%05d" % number)
        os.utime(copied.home / name, (number, number))
        copied.dies = number == 1
        with pytest.raises(Unknown) if copied.dies else nullcontext():
            end()
        assert (copied.tree / name).read_bytes() == b"%05d" % number


def test_a_directory_that_an_old_driver_makes_anew_is_not_taken_for_the_job(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]
    leader, _ = led(roots.drivers[source]) or pytest.fail("nobody")
    mover(Process(roots), roots).move(target)
    (roots.drivers[source].path / JOB / leader.name / "spark/q/state").mkdir(parents=True)
    whole(roots, target)


def test_a_job_stays_for_half_an_hour_by_the_clock_of_its_root(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]
    mover(Process(roots), roots).move(target)
    with pytest.raises(Invalid, match="it has moved lately, and stays for 30 min more"):
        mover(Process(roots), roots).move(source)
    (arrived,) = [each for each in (roots.drivers[target].path / JOB).iterdir() if each.name.startswith("arrived")]
    at = arrived.stat().st_mtime
    os.utime(arrived, (at - staying.REST_S + 60, at - staying.REST_S + 60))
    with pytest.raises(Invalid, match="stays for 1 min more"):
        mover(Process(roots), roots).move(source)
    os.utime(arrived, (at - staying.REST_S - 1, at - staying.REST_S - 1))
    mover(Process(roots), roots).move(source)
    whole(roots, source)
    assert not [each for each in roots.drivers[source].list(JOB) if Pointer.parse(each.name)]


def test_a_decision_that_a_namenode_forgets_is_made_again_and_not_undone(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]
    fenced(roots, target)
    seen = look(Process(roots).group.roots, JOB)
    pointer = seen.of(source).pointer
    assert pointer is not None
    Handover(Process(roots).group.roots, JOB, source, target).empty(pointer)
    with pytest.raises(Conflict, match="was decided"):
        mover(Process(roots), roots).undo()
    mover(Process(roots), roots).move(target)
    whole(roots, target)


@pytest.mark.usefixtures("source")
def test_on_its_way_to_one_root_it_does_not_go_to_another(roots: Roots) -> None:
    first, second = roots.others(JOB)
    fenced(roots, first)
    with pytest.raises(Conflict, match="is on its way to"):
        mover(Process(roots), roots).move(second)
    mover(Process(roots), roots).move(first)
    whole(roots, first)


def test_its_home_learns_where_it_went(roots: Roots) -> None:
    home, (first, second) = roots.home(JOB), roots.others(JOB)
    tree.create(roots.drivers[first], JOB)
    roots.drivers[home].make_root()
    roots.drivers[home].make_directory(JOB)
    roots.drivers[home].make_directory(f"{JOB}/{Pointer(1, first).name}")
    mover(Process(roots), roots).move(second)
    assert look(Process(roots).group.roots, JOB).of(home).pointer == Pointer(3, second)
    again = mover(Process(roots), roots).move(second)
    assert (again.source, again.rounds) == ("", 0)


def test_outputs_that_are_published_by_renames_keep_a_job_on_its_file_system(roots: Roots, source: str) -> None:
    leader, _ = led(roots.drivers[source]) or pytest.fail("nobody")
    (roots.drivers[source].path / JOB / leader.name / "out" / "daily").mkdir(parents=True)
    assert staying.outputs(Process(roots).group.roots[source], JOB, leader.name) == ["daily"]
    assert "'daily' is published by renames on hdfs://ns1" in staying.bound(["daily"], "hdfs://ns1/ha", "hdfs://ns2/ha")
    assert staying.bound(["daily"], "hdfs://ns1/ha", "hdfs://ns1/other") == ""
    assert staying.bound([], "hdfs://ns1/ha", "hdfs://ns2/ha") == ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "bound", lambda *_: "its output 'daily' stays")
        with pytest.raises(Invalid, match=r"cannot move from .*: its output 'daily' stays"):
            mover(Process(roots), roots).move(roots.others(JOB)[0])
    whole(roots, source)
    mover(Process(roots), roots).move(roots.others(JOB)[0])


def test_a_job_that_does_not_exist_is_not_moved(roots: Roots) -> None:
    with pytest.raises(NoLeader, match="There is no job"):
        mover(Process(roots), roots).move(roots.uris[0])
    with pytest.raises(NoLeader, match="There is no job"):
        mover(Process(roots), roots).undo()


def test_a_root_that_does_not_answer_stops_a_move(roots: Roots, source: str) -> None:
    roots.drivers[roots.others(JOB)[1]].down = True
    with pytest.raises(StoreError):
        mover(Process(roots), roots).move(roots.others(JOB)[0])
    roots.drivers[roots.others(JOB)[1]].down = False
    whole(roots, source)
