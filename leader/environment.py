"""Whatever executes the commands of contenders and copies: production's runtime, or the simulator."""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from leader.events import FilesCommand
from leader.nodes import Node, NodeCommand
from leader.whereabouts import Whereabouts
from store.outcome import Outcome

FilesAnswer = Callable[[Outcome[list[str] | None]], None]
NodeAnswer = Callable[[Outcome[Node | None]], None]


class Timer(Protocol):
    """A call in the future."""

    def cancel(self) -> None:
        """Do not make the call."""


class Sign(Enum):
    """What is learnt of a process by a connection to it. All but the first are the end of that connection."""

    ITSELF = "itself"
    """It greets."""
    ANOTHER = "another"
    """Another process greets where it was."""
    BROKEN = "broken"
    """There was a connection, and it has ended or was reset."""
    REFUSED = "refused"
    """Its host answers, and says that nobody listens there."""
    NOTHING = "nothing"
    """Nobody answers in time, or something that makes no sense."""


class Line(Protocol):
    """A connection to another process."""

    def close(self) -> None:
        """End it; nothing is heard any more."""


class Exchange(Protocol):
    """Whatever keeps the time and connects to other processes. Every callback comes on one and the same thread."""

    def now(self) -> float:
        """Boot-clock seconds."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back at that time."""

    def call(self, where: Whereabouts, heard: Callable[[Sign], None]) -> Line:
        """Connect to a process, and tell what is learnt of it: never before this returns, and nothing after its end."""


class Environment(Exchange, Protocol):
    """Whatever executes commands, too."""

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """Execute a command for the file system; answer exactly once, within the call time-out."""

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        """Execute a command for ZooKeeper; answer exactly once, within a bound; ``changed`` if the watch goes off."""
