"""Many jobs of one process and one ZooKeeper session: what they ask of it does not stand before the session itself."""

from collections.abc import Callable

import pytest

from leader.environment import FilesAnswer, NodeAnswer
from leader.events import FilesCommand
from leader.nodes import SESSIONS, CreateNode, Node, NodeCommand, ReadNode, Sync
from leader.shared import AT_ONCE, Shared
from leader.timing import Timing
from store.outcome import Outcome
from tests.simulation.namespace import Namespace
from tests.simulation.process import Process
from tests.simulation.world import World

JOBS = [f"job-{number:03d}" for number in range(200)]


class Waiting(Process):
    """ZooKeeper answers it when it is told to."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "a", Namespace(), None, Timing())
        self.requests: list[tuple[NodeCommand, NodeAnswer]] = []

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """HDFS is another matter."""

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        del changed
        self.requests.append((command, answer))

    def answer(self, command: NodeCommand, node: Node | None = None) -> None:
        """Answer this one, which is done."""
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
    assert len(process.requests) - len(own) == AT_ONCE
    seen = set()
    while asked := [command for command, _ in process.requests if command not in own]:
        assert len(asked) <= AT_ONCE
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


def test_a_change_goes_before_what_is_only_read() -> None:
    process = Waiting(World())
    shared = Shared(process)
    for number in range(2 * AT_ONCE):
        shared.run_node(ReadNode(f"/{number}"), lambda _: None, lambda: None)
    change = CreateNode("/change", b"")
    shared.run_node(change, lambda _: None, lambda: None)
    process.answer(ReadNode("/0"))
    assert process.requests[-1][0] == change
