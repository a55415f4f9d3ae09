"""Many jobs share one ZooKeeper session: their requests never delay the confirmations of the session itself."""

from collections.abc import Callable

import pytest

from leader.contender.scheduler import MAX_NODE_REQUESTS, SharedEnvironment
from leader.election.events import FilesCommand
from leader.election.ports import FilesAnswer, NodeAnswer
from leader.layout.znodes import SESSIONS, CreateNode, Node, NodeCommand, ReadNode, Sync
from leader.timing import Timing
from store.outcome import Outcome
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.process import Process
from tests.system.simulation.world import World

JOBS = [f"job-{number:03d}" for number in range(200)]


class Waiting(Process):
    def __init__(self, world: World) -> None:
        super().__init__(world, "a", Namespace(), None, Timing())
        self.requests: list[tuple[NodeCommand, NodeAnswer]] = []

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """Not used: these tests concern ZooKeeper only."""

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        del changed
        self.requests.append((command, answer))

    def answer(self, command: NodeCommand, node: Node | None = None) -> None:
        found = next(each for each in self.requests if each[0] == command)
        self.requests.remove(found)
        found[1](Outcome(node, None, self.now(), self.now()))


@pytest.fixture
def process() -> Waiting:
    process = Waiting(World())
    for job in JOBS:
        process.contender.join(job, process)
    process.contender.connected(0x1001, 10.0)
    return process


def of_the_session(process: Waiting) -> list[NodeCommand]:
    return [command for command, _ in process.requests if command.path.startswith(SESSIONS)]


def test_jobs_never_ask_all_at_once(process: Waiting) -> None:
    own = of_the_session(process)
    assert len(process.requests) - len(own) == MAX_NODE_REQUESTS
    seen = set()
    while asked := [command for command, _ in process.requests if command not in own]:
        assert len(asked) <= MAX_NODE_REQUESTS
        seen.add(asked[0].path)
        process.answer(asked[0], Node(b"", 1, 0))
    assert len(seen) == len(JOBS)


def test_the_session_is_confirmed_while_all_jobs_wait(process: Waiting) -> None:
    process.answer(ReadNode(SESSIONS), Node(b"cafe0123", 0, 0))
    created = of_the_session(process)
    assert isinstance(created[0], CreateNode)
    process.answer(created[0])
    for _ in range(2):
        process.answer(Sync(SESSIONS))
    confirmed = of_the_session(process)
    assert confirmed == [ReadNode(created[0].path, watch=True)]


def test_a_change_overtakes_reads() -> None:
    process = Waiting(World())
    shared = SharedEnvironment(process)
    for number in range(2 * MAX_NODE_REQUESTS):
        shared.run_node(ReadNode(f"/{number}"), lambda _: None, lambda: None)
    change = CreateNode("/change", b"")
    shared.run_node(change, lambda _: None, lambda: None)
    process.answer(ReadNode("/0"))
    assert process.requests[-1][0] == change
