"""Ports: what contenders and mirrors need of the outside world. Production's runtime and the simulator provide it."""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from leader.election.events import FilesCommand
from leader.layout.contact import ContactAddress, ReleaseNotice
from leader.layout.znodes import Node, NodeCommand
from store.outcome import Outcome

FilesAnswer = Callable[[Outcome[list[str] | None]], None]
NodeAnswer = Callable[[Outcome[Node | None]], None]


class Timer(Protocol):
    """A call in the future."""

    def cancel(self) -> None:
        """Do not make the call."""


class ProbeEvent(Enum):
    """A report of a liveness probe about a process. Every event but the first ends the probe."""

    GREETED = "greeted"  # the process has greeted
    ANOTHER_PROCESS = "another process"  # another process greets at that address
    BROKEN = "broken"  # the connection was open, and has ended or was reset
    REFUSED = "refused"  # the host answers that no process listens there
    SILENT = "silent"  # no answer comes in time, or it makes no sense


Heard = ProbeEvent | ReleaseNotice
"""All that is heard on a connection to another process: notices follow the greeting, and do not end the probe."""


class LivenessProbe(Protocol):
    """A connection to another process."""

    def close(self) -> None:
        """End the probe; no event follows."""


class Clockwork(Protocol):
    """Keeps the time. Every callback comes on one and the same thread."""

    def now(self) -> float:
        """Boot-clock seconds."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back at that time."""


class ProbeEnvironment(Clockwork, Protocol):
    """Also connects to other processes."""

    def probe(self, address: ContactAddress, on_event: Callable[[Heard], None]) -> LivenessProbe:
        """Connect to a process and report events about it: none before this returns, and none after the last one."""


class NodeEnvironment(Clockwork, Protocol):
    """Keeps the time and executes commands for ZooKeeper."""

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        """Execute a command for ZooKeeper; answer exactly once, in bounded time; call ``changed`` if a watch fires."""


class Environment(ProbeEnvironment, NodeEnvironment, Protocol):
    """All that a contender needs."""

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """Execute a command for the file system; answer exactly once, within the call time-out."""
