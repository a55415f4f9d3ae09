"""Priority scheduler: bounds how many store calls the jobs of a process make at once. No I/O.

A store call has a deadline, and a lease counts from when its renewal was decided. If a thousand jobs called at once,
most calls would be over before they began, renewals among them. So calls wait here for a slot; each job has at most one
call under way or waiting. The job that has come furthest goes first: a takeover that has begun is carried through.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum
from itertools import count
from typing import TypeVar

from leader.election.events import FilesCommand
from leader.election.ports import Environment, FilesAnswer, Heard, LivenessProbe, NodeAnswer, Timer
from leader.layout.contact import ContactAddress
from leader.layout.znodes import NodeCommand, ReadNode, Sync

MAX_NODE_REQUESTS = 64  # of a process to ZooKeeper under way at once; a server answers that many within some 10 ms

T = TypeVar("T")


class Priority(IntEnum):
    """The purpose of a call; the lowest number is the most urgent."""

    HOLD = 0  # the job's lease is held, and its time to live is running out
    SEIZE = 1  # a lease is about to be seized; its time to live already counts
    LOOK = 2  # everything else that a standby does


class PriorityScheduler:
    """Runs a bounded number of calls at once; the others wait, ordered by priority and then by arrival."""

    def __init__(self, max_calls: int) -> None:
        """Start with an empty queue; at most ``max_calls`` calls are under way at once."""
        self._free = max_calls
        self._numbers = count()
        self._waiting: list[tuple[Priority, int, Callable[[], None]]] = []

    def submit(
        self, priority: Priority, call: Callable[[Callable[[T], None]], None], answer: Callable[[T], None]
    ) -> None:
        """Make a call as soon as a slot is free."""
        # It must call its argument exactly once with the answer, and not before it returns. A call that `answer`
        # submits may go ahead of everything that waits.

        def answered(value: T) -> None:
            self._free += 1
            try:
                answer(value)
            finally:
                self._start_waiting()

        heapq.heappush(self._waiting, (priority, next(self._numbers), lambda: call(answered)))
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            heapq.heappop(self._waiting)[2]()


class SharedEnvironment:
    """The environment as the jobs of one process share it: it schedules their requests to ZooKeeper.

    When the session of a process that led a thousand jobs ends, ZooKeeper notifies their next leader of two thousand
    nodes at once. The requests that follow must not delay the confirmations of its own session, which do not pass here.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scheduler = PriorityScheduler(MAX_NODE_REQUESTS)

    def now(self) -> float:
        """See :class:`Environment`."""
        return self._environment.now()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """See :class:`Environment`."""
        return self._environment.call_at(when, callback)

    def probe(self, address: ContactAddress, on_event: Callable[[Heard], None]) -> LivenessProbe:
        """See :class:`Environment`."""
        return self._environment.probe(address, on_event)

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """See :class:`Environment`."""
        self._environment.run_files(job, command, answer)

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        """Execute a command for ZooKeeper as soon as a slot is free; its time-out begins then."""
        priority = Priority.LOOK if isinstance(command, ReadNode | Sync) else Priority.HOLD
        self._scheduler.submit(
            priority, lambda answered: self._environment.run_node(command, answered, changed), answer
        )
