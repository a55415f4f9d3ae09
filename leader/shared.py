"""The environment as the jobs of one process share it: their requests to ZooKeeper take turns. No I/O.

When the session of a process that led a thousand jobs ends, ZooKeeper tells their next leader of two thousand nodes at
once. What it asks then must not stand before the confirmations of its own session: they go by themselves.
"""

from collections.abc import Callable

from leader.environment import Environment, FilesAnswer, Line, NodeAnswer, Sign, Timer
from leader.events import FilesCommand
from leader.nodes import NodeCommand, ReadNode, Sync
from leader.turns import Turns, Urgency
from leader.whereabouts import Whereabouts

AT_ONCE = 64
"""Requests to ZooKeeper that the jobs have under way at most: a server answers so many within some ten milliseconds."""


class Shared:
    """An environment in which requests to ZooKeeper wait for their turn; changes, which rest on a read, go first."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._turns = Turns(AT_ONCE)

    def now(self) -> float:
        """See :class:`Environment`."""
        return self._environment.now()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """See :class:`Environment`."""
        return self._environment.call_at(when, callback)

    def call(self, where: Whereabouts, heard: Callable[[Sign], None]) -> Line:
        """See :class:`Environment`."""
        return self._environment.call(where, heard)

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """See :class:`Environment`."""
        self._environment.run_files(job, command, answer)

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        """Execute a command for ZooKeeper when it is its turn; its bound begins then."""
        urgency = Urgency.LOOK if isinstance(command, ReadNode | Sync) else Urgency.HOLD
        self._turns.take(urgency, lambda answered: self._environment.run_node(command, answered, changed), answer)
