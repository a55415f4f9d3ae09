"""PriorityScheduler: many jobs of one process wait their turn, urgent calls go first, and none is lost."""

from collections.abc import Callable

import pytest

from leader.contender.contender import MAX_FILE_CALLS
from leader.contender.scheduler import Priority, PriorityScheduler
from leader.election.events import FilesCommand, Rename
from leader.election.ports import FilesAnswer
from leader.timing import Timing
from store.errors import StoreError
from store.outcome import Outcome
from tests.system.simulation.host import Host
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.process import Process
from tests.system.simulation.world import World

JOBS = [f"job-{number:03d}" for number in range(200)]
TIMING = Timing()
EVERY = 0.002
"""Seconds between two answers of the store: all that the jobs ask for at once takes longer than a call may."""

SLOW = 0.03
"""Likewise: to ask about all jobs once takes longer than a lease lives."""

LONG = 30.0


class Calls:
    def __init__(self) -> None:
        self.made: list[str] = []
        self._answers: list[Callable[[str], None]] = []

    def __call__(self, name: str) -> Callable[[Callable[[str], None]], None]:
        def call(answered: Callable[[str], None]) -> None:
            self.made.append(name)
            self._answers.append(answered)

        return call

    def answer(self) -> None:
        self._answers.pop(0)("done")


@pytest.fixture
def calls() -> Calls:
    return Calls()


def ignore(_: str) -> None:
    pass


def test_no_more_are_under_way_than_may_be(calls: Calls) -> None:
    scheduler = PriorityScheduler(2)
    for name in "abcd":
        scheduler.submit(Priority.LOOK, calls(name), ignore)
    assert calls.made == ["a", "b"]
    calls.answer()
    assert calls.made == ["a", "b", "c"]
    calls.answer()
    calls.answer()
    calls.answer()
    scheduler.submit(Priority.LOOK, calls("e"), ignore)
    assert calls.made == ["a", "b", "c", "d", "e"]


def test_the_urgent_ones_go_first_and_others_in_the_order_of_their_coming(calls: Calls) -> None:
    scheduler = PriorityScheduler(1)
    scheduler.submit(Priority.LOOK, calls("first"), ignore)
    for name, urgency in (
        ("look", Priority.LOOK),
        ("seize", Priority.SEIZE),
        ("look again", Priority.LOOK),
        ("renew", Priority.HOLD),
        ("seize again", Priority.SEIZE),
        ("claim", Priority.HOLD),
    ):
        scheduler.submit(urgency, calls(name), ignore)
    for _ in range(7):
        calls.answer()
    assert calls.made == ["first", "renew", "claim", "seize", "seize again", "look", "look again"]


def test_a_call_made_by_an_answer_may_overtake_the_queue(calls: Calls) -> None:
    scheduler = PriorityScheduler(1)
    scheduler.submit(Priority.LOOK, calls("look"), lambda _: scheduler.submit(Priority.SEIZE, calls("seize"), ignore))
    scheduler.submit(Priority.LOOK, calls("another"), ignore)
    calls.answer()
    assert calls.made == ["look", "seize"]


def test_an_answer_that_raises_does_not_stop_the_queue(calls: Calls) -> None:
    scheduler = PriorityScheduler(1)

    def fail(_: str) -> None:
        raise ZeroDivisionError

    scheduler.submit(Priority.LOOK, calls("a"), fail)
    scheduler.submit(Priority.LOOK, calls("b"), ignore)
    with pytest.raises(ZeroDivisionError):
        calls.answer()
    assert calls.made == ["a", "b"]


class Many(Process):
    """A process that leads as many jobs as it can, on a store that takes one call after another."""

    def __init__(self, world: World, name: str, files: Namespace) -> None:
        super().__init__(world, name, files, None, TIMING)
        self.under_way = self.most = 0
        self.commands: list[tuple[str, FilesCommand]] = []
        self.every = EVERY
        self._free_at = 0.0

    def run(self, callback: Callable[[], None]) -> None:
        """Without looking at all jobs after each call: the job that is answered is looked at."""
        Host.run(self, callback)

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        started = self.now()
        self.commands.append((job, command))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self._free_at = max(self.world.now, self._free_at) + self.every

        def execute() -> None:
            self.under_way -= 1
            value: list[str] | None = None
            error: StoreError | None = None
            try:
                value = self.files.execute(job, command, self.name)
            except StoreError as caught:
                error = caught
            answer(Outcome(value, error, started, self.now()))
            self.participant(job).election.state.validate()

        self.world.after(self._free_at - self.world.now, lambda: self.run(execute))


@pytest.fixture
def world() -> World:
    return World()


def started(world: World, name: str, files: Namespace, jobs: list[str] = JOBS) -> Many:
    process = Many(world, name, files)
    for job in jobs:
        process.contender.join(job, process)
        process.contender.contend(job)
    return process


def until_all_are_led(world: World, process: Many, jobs: list[str] = JOBS) -> None:
    end = world.now + LONG
    while led := [job for job in jobs if not process.leads(job)]:
        assert world.now < end, f"{len(led)} jobs are not led after {LONG} s"
        world.run(0.1)


def test_many_jobs_never_call_all_at_once(world: World) -> None:
    process = started(world, "a", Namespace())
    until_all_are_led(world, process)
    assert process.most == MAX_FILE_CALLS
    assert not process.revokes()
    assert len(process.grants()) == len(JOBS), "each of them once"


def test_a_takeover_that_has_begun_is_carried_through_before_another_begins(world: World) -> None:
    process = started(world, "a", Namespace())
    until_all_are_led(world, process)
    renames = [(job, command.source) for job, command in process.commands if isinstance(command, Rename)]
    seized, claimed = set[str](), set[str]()
    for job, source in renames:
        (seized if "/" in source else claimed).add(job)
        assert len(seized - claimed) <= MAX_FILE_CALLS


@pytest.mark.slow
def test_leases_that_are_held_are_renewed_before_a_slow_store_is_asked_about_others(world: World) -> None:
    """Without ZooKeeper a standby looks twice a second, so many standbys ask for more than the store can answer."""
    files = Namespace()
    own, others = JOBS[:10], JOBS[10:]
    until_all_are_led(world, started(world, "other", files, others), others)
    process = started(world, "a", files)
    until_all_are_led(world, process, own)
    process.every = SLOW
    world.run(10 * TIMING.short_ttl)
    assert not process.revokes()
    assert [job for job in JOBS if process.leads(job)] == own
