"""A group of roots, used as one: where jobs are created, how they are found, and what a root that is away touches."""

import logging
import queue
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from ha.placement import finding, group_files
from ha.placement.group_files import GroupFiles
from ha.placement.place import Pointer
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from leader.layout import tree
from leader.layout.lease import first_lease
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import AlreadyExists, DeadlineExceeded, Invalid, NotFound, NotSent, StoreError
from store.local import LocalFiles
from store.outcome import Outcome
from tests.patience import PATIENCE_S
from tests.unit.ha.placement.roots import Roots
from tests.unit.ha.waiting import wait_until

JOB = "orders"


def create(group: GroupFiles, job: str = JOB) -> None:
    group.call("create", lambda files: tree.create(files, job), PATIENCE_S)


def find(group: GroupFiles, job: str = JOB, timeout: float = PATIENCE_S) -> str:
    leader = group.call("find", lambda files: tree.find(files, job), timeout)
    return group.at(f"{job}/{leader.name}").removesuffix(f"/{job}/{leader.name}")


def move(roots: Roots, source: str, target: str, job: str = JOB, sequence: int = 1) -> None:
    old, new = roots.drivers[source], roots.drivers[target]
    leader = tree.find(old, job)
    old.rename(f"{job}/{leader.name}", f".fenced-{job}")
    new.make_root()
    new.make_directory(job)
    new.make_directory(f"{job}/{leader.name}")
    new.make_directory(f"{job}/{leader.name}/record")
    new.make_directory(f"{job}/{leader.name}/record/{first_lease(leader.session_id).name}")
    old.make_directory(f"{job}/{Pointer(sequence, target).name}")


def test_by_its_hash_a_job_lies_at_home_and_takes_one_list_to_find(roots: Roots) -> None:
    create(roots.group())
    roots.forget_lists()
    assert find(roots.group()) == roots.home(JOB)
    assert roots.lists() == 1


def test_elsewhere_it_takes_two_lists_once_and_then_one(roots: Roots) -> None:
    away = roots.others(JOB)[0]
    create(roots.group(roots.at(away)))
    group = roots.group()
    roots.forget_lists()
    assert find(group) == away
    assert roots.lists() == 2
    find(group)
    assert roots.lists() == 3


def test_before_a_job_is_created_each_root_is_asked_for_it_once(roots: Roots) -> None:
    create(roots.group(roots.at(roots.home(JOB))))
    assert roots.lists() == len(roots.uris)


def test_whoever_decides_first_decides(roots: Roots) -> None:
    first, second = roots.others(JOB)
    create(roots.group(roots.at(first)))
    with pytest.raises(AlreadyExists):
        create(roots.group(roots.at(second)))
    assert find(roots.group()) == first
    assert not (roots.drivers[second].path / JOB).exists()


def test_a_decision_that_was_written_meanwhile_counts(roots: Roots) -> None:
    first, second = roots.others(JOB)

    def late(*_: object) -> str:
        create(roots.group(roots.at(first)))
        return second

    with pytest.raises(AlreadyExists):
        create(roots.group(late))
    assert find(roots.group()) == first
    assert not (roots.drivers[second].path / JOB).exists()


def test_a_choice_that_took_too_long_counts_at_the_next_try(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a NameNode whose web server does not answer: asking it takes longer than a call of the election may."""
    away, late = roots.others(JOB)[0], list[str]()
    monkeypatch.setattr(group_files, "now", lambda: now() + 2 * PATIENCE_S * len(late))

    def slow(_: object, job: str) -> str:
        late.append(job)
        return away

    group = roots.group(slow)
    with pytest.raises(StoreError):
        create(group)
    create(group)
    assert late == [JOB]
    assert find(roots.group()) == away


def test_a_job_that_was_decided_but_not_created_is_created_where_it_was_decided(roots: Roots) -> None:
    first, second = roots.others(JOB)
    home = roots.drivers[roots.home(JOB)]
    home.make_root()
    home.make_directory(JOB)
    home.make_directory(f"{JOB}/{Pointer(1, first).name}")
    create(roots.group(roots.at(second)))
    assert find(roots.group()) == first


def test_a_job_from_before_the_group_is_found_and_not_created_again(roots: Roots) -> None:
    away = roots.others(JOB)[1]
    roots.drivers[away].make_root()
    tree.create(roots.drivers[away], JOB)
    assert find(roots.group()) == away
    with pytest.raises(AlreadyExists):
        create(roots.group())


def test_a_process_follows_a_job_that_moves(roots: Roots) -> None:
    home, (first, second) = roots.home(JOB), roots.others(JOB)
    group = roots.group()
    create(group)
    assert find(group) == home
    move(roots, home, first)
    assert find(group) == first
    move(roots, first, second)
    assert find(group) == second
    assert find(roots.group()) == second


def test_a_job_comes_back_home_and_its_old_pointer_does_not_count(roots: Roots) -> None:
    home, away = roots.home(JOB), roots.others(JOB)[0]
    group = roots.group()
    create(group)
    move(roots, home, away)
    move(roots, away, home, sequence=2)
    assert find(group) == find(roots.group()) == home


def test_on_its_way_a_job_is_not_created_anew(roots: Roots) -> None:
    home = roots.drivers[roots.home(JOB)]
    group = roots.group()
    create(group)
    home.rename(f"{JOB}/{tree.find(home, JOB).name}", ".fenced")
    for each in (group, roots.group()):
        assert each.call("list", lambda files: files.list(JOB), PATIENCE_S) == []
        with pytest.raises(NotFound, match="holds no leader directory"):
            each.call("find", lambda files: tree.find(files, JOB), PATIENCE_S)
        with pytest.raises(AlreadyExists):
            create(each)


def test_without_the_group_nobody_creates_what_has_moved_away(roots: Roots) -> None:
    home = roots.home(JOB)
    create(roots.group())
    move(roots, home, roots.others(JOB)[0])
    with pytest.raises(AlreadyExists):
        tree.create(roots.drivers[home], JOB)


def test_with_its_home_away_a_job_elsewhere_is_found(roots: Roots) -> None:
    away = roots.others(JOB)[0]
    create(roots.group(roots.at(away)))
    roots.drivers[roots.home(JOB)].down = True
    assert find(roots.group()) == away


def test_a_job_that_moved_from_a_root_that_is_away_now_is_found(roots: Roots) -> None:
    home, away = roots.home(JOB), roots.others(JOB)[0]
    group = roots.group()
    create(group)
    move(roots, home, away)
    roots.drivers[home].down = True
    assert find(group) == away


def test_a_root_that_is_away_hides_its_jobs_and_no_others(roots: Roots, caplog: pytest.LogCaptureFixture) -> None:
    jobs = [f"job-{number}" for number in range(12)]
    group = roots.group()
    for job in jobs:
        create(group, job)
    gone = roots.home("job-0")
    roots.drivers[gone].down = True
    theirs = [job for job in jobs if roots.home(job) == gone]
    for job in jobs:
        if job in theirs:
            with pytest.raises(StoreError, match="The NameNode is away"):
                find(group, job)
        else:
            assert find(group, job) == roots.home(job)
    with caplog.at_level(logging.WARNING):
        assert JobAdmin(group, None, PATIENCE_S).jobs() == sorted(set(jobs) - set(theirs))
    assert f"{gone} does not answer" in caplog.text
    for each in roots.drivers.values():
        each.down = True
    with pytest.raises(NotSent):
        JobAdmin(group, None, PATIENCE_S).jobs()


def test_a_job_is_not_created_while_a_root_is_away_where_it_may_exist(roots: Roots) -> None:
    roots.drivers[roots.others(JOB)[0]].down = True
    with pytest.raises(NotSent, match="Where job 'orders' lies is not known"):
        create(roots.group())
    assert not any((each.path / JOB).exists() for each in roots.drivers.values())


def test_a_job_is_missing_only_if_every_root_says_so(roots: Roots) -> None:
    admin = JobAdmin(roots.group(), None, PATIENCE_S)
    with pytest.raises(NoLeader, match="There is no job 'orders'"):
        admin.directory(JOB)
    roots.drivers[roots.others(JOB)[0]].down = True
    with pytest.raises(NotSent):
        admin.directory(JOB)


def find_out_that_it_hangs(group: GroupFiles, root: str, job: str) -> None:
    """Have one call given up inside the root; when this returns, it has come back from the group, not from the root."""
    while not group.roots[root].stuck:  # a call may be over before it reaches the root
        with pytest.raises((DeadlineExceeded, NotSent)):
            group.call("look", lambda files: files.list(f"{job}/x"), 0.01)
        wait_until(lambda: group.stuck == 0, what="the call is back from the group")


def test_a_root_that_hangs_takes_no_threads_of_others(roots: Roots) -> None:
    jobs = [f"job-{number}" for number in range(9)]
    group = roots.group()
    for job in jobs:
        create(group, job)
    stuck = roots.home("job-0")
    other = next(job for job in jobs if roots.home(job) != stuck)
    roots.drivers[stuck].hangs = threading.Event()
    find_out_that_it_hangs(group, stuck, "job-0")
    for _ in range(40):
        group.submit("look", lambda files: files.list("job-0/x"), PATIENCE_S, lambda _: None)
    assert find(group, other) == roots.home(other)


def test_a_root_that_hangs_is_refused_once_its_calls_have_their_share_of_the_threads(roots: Roots) -> None:
    group = GroupFiles(
        [BoundedFiles(lambda uri=uri: roots.drivers[uri], uri=uri) for uri in roots.uris],  # type: ignore[misc]
        lambda _, job: roots.home(job),
        workers=2,
    )
    roots.opened.append(group)
    create(group)
    home = roots.drivers[roots.home(JOB)]
    home.hangs, before = threading.Event(), len(home.lists)
    find_out_that_it_hangs(group, roots.home(JOB), JOB)
    refused: queue.SimpleQueue[Outcome[object]] = queue.SimpleQueue()
    for _ in range(3):
        group.submit("look", lambda files: files.list(f"{JOB}/x"), PATIENCE_S, refused.put)
    outcome = refused.get(timeout=PATIENCE_S)
    assert isinstance(outcome.error, NotSent)
    assert "hangs: " in str(outcome.error)
    wait_until(lambda: len(home.lists) == before + 3, what="the first call and two more are in it")


def test_a_root_that_answers_is_not_refused_however_many_calls_there_are(roots: Roots) -> None:
    group = roots.group()
    create(group)
    outcomes: queue.SimpleQueue[Outcome[object]] = queue.SimpleQueue()
    for _ in range(40):
        group.submit("look", lambda files: files.list(JOB), PATIENCE_S, outcomes.put)
    assert all(outcomes.get(timeout=PATIENCE_S).done for _ in range(40))


class Recorded(BoundedFiles):
    """A root that never answers: each call takes all of its time, by a clock of the test."""

    def __init__(self, uri: str, clock: list[float]) -> None:
        super().__init__(lambda: LocalFiles(Path("/nowhere")), uri=uri)
        self.clock, self.given = clock, 0.0

    def call(self, name: str, operation: object, timeout: float) -> NoReturn:
        del operation
        self.clock[0] += timeout
        self.given = timeout
        raise DeadlineExceeded(f"{name} took too long.")


def test_roots_that_hang_take_equal_parts_of_the_time_and_leave_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(finding, "now", lambda: clock[0])
    given = {uri: Recorded(uri, clock) for uri in ("file:///a", "file:///b", "file:///c")}
    found = finding.find(given, JOB, 112.0)
    assert [each.given for each in given.values()] == [3.0, 3.0, 3.0]
    assert clock == [109.0]
    assert isinstance(found.failure, DeadlineExceeded)


def test_on_its_way_a_directory_that_a_driver_has_made_once_more_is_not_shown(roots: Roots) -> None:
    home, group = roots.home(JOB), roots.group()
    create(group)
    driver = roots.drivers[home]
    leader = tree.find(driver, JOB).name
    driver.rename(f"{JOB}/{leader}", f"{JOB}/{Pointer(1, roots.others(JOB)[0]).name}")
    driver.make_directory(f"{JOB}/{leader}")
    listed = roots.group().call("list", lambda files: files.list(JOB), PATIENCE_S)
    assert [each.name for each in listed] == [Pointer(1, roots.others(JOB)[0]).name]


def test_an_empty_directory_at_home_does_not_hide_a_job_from_before_the_group(roots: Roots) -> None:
    home, away = roots.drivers[roots.home(JOB)], roots.others(JOB)[0]
    home.make_root()
    home.make_directory(JOB)
    roots.drivers[away].make_root()
    tree.create(roots.drivers[away], JOB)
    assert find(roots.group()) == away


@pytest.mark.parametrize("elsewhere", [True, False])
def test_whoever_loses_the_race_for_a_new_job_takes_the_place_of_the_winner(roots: Roots, *, elsewhere: bool) -> None:
    first, second = roots.others(JOB)
    winner = first if elsewhere else roots.home(JOB)

    def late(*_: object) -> str:
        create(roots.group(roots.at(winner)))
        return second

    group = roots.group(late)
    assert group.place_new(JOB, now() + PATIENCE_S) == winner
    assert group.known(JOB) == winner


def test_a_place_that_is_not_known_is_asked_for_within_a_time_of_its_own(roots: Roots) -> None:
    away = roots.others(JOB)[0]
    create(roots.group(roots.at(away)))
    assert roots.group().at(f"{JOB}/x") == f"{away}/{JOB}/x"
    with pytest.raises(NotFound, match="There is no job 'nobody'"):
        roots.group().at("nobody/x")


def test_a_call_that_is_told_later_has_its_own_deadline_at_the_roots(roots: Roots) -> None:
    group = roots.group()
    create(group)
    outcomes: queue.SimpleQueue[Outcome[object]] = queue.SimpleQueue()
    group.submit("list", lambda files: [each.name for each in files.list(JOB)], PATIENCE_S, outcomes.put)
    assert len(outcomes.get(timeout=PATIENCE_S).result()) == 1  # type: ignore[arg-type]


def test_a_pointer_out_of_the_group_is_told(roots: Roots) -> None:
    away = roots.others(JOB)[0]
    create(roots.group(roots.at(away)))
    fewer = roots.group(uris=[each for each in roots.uris if each != away])
    with pytest.raises(Invalid, match="which is no root of this group: add it to `files`"):
        find(fewer)


def test_nothing_is_renamed_from_root_to_root(roots: Roots) -> None:
    group = roots.group()
    other = next(f"job-{number}" for number in range(99) if roots.home(f"job-{number}") != roots.home(JOB))
    create(group)
    create(group, other)
    with pytest.raises(Invalid, match="nothing is renamed from root to root"):
        group.call("rename", lambda files: files.rename(f"{JOB}/x", f"{other}/x"), PATIENCE_S)


def test_files_of_a_job_are_written_read_and_deleted_where_it_lies(roots: Roots) -> None:
    away = roots.others(JOB)[0]
    group = roots.group(roots.at(away))
    create(group)
    group.call("write", lambda files: files.write(f"{JOB}/note", b"x"), PATIENCE_S)
    assert (roots.drivers[away].path / JOB / "note").read_bytes() == b"x"
    assert group.call("read", lambda files: files.read(f"{JOB}/note", 10), PATIENCE_S) == b"x"
    group.call("delete", lambda files: files.delete(f"{JOB}/note"), PATIENCE_S)
    assert not (roots.drivers[away].path / JOB / "note").exists()


def test_what_stands_beside_the_jobs_has_a_place_too(roots: Roots) -> None:
    group = roots.group()
    create(group)
    for each in roots.drivers.values():
        each.make_root()
    group.call("make", lambda files: files.make_directory(".drained"), PATIENCE_S)
    assert group.call("list", lambda files: files.list(".drained"), PATIENCE_S) == []


def test_a_root_twice_is_refused(roots: Roots) -> None:
    with pytest.raises(Invalid, match="names a root twice"):
        roots.group(uris=[roots.uris[0], roots.uris[0]])
