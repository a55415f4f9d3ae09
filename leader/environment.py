"""Whatever executes the commands of contenders and copies: production's runtime, or the simulator."""

from collections.abc import Callable
from typing import Protocol

from leader.events import FilesCommand
from leader.nodes import Node, NodeCommand
from store.outcome import Outcome

FilesAnswer = Callable[[Outcome[list[str] | None]], None]
NodeAnswer = Callable[[Outcome[Node | None]], None]


class Timer(Protocol):
    """A call in the future."""

    def cancel(self) -> None:
        """Do not make the call."""


class Environment(Protocol):
    """Whatever executes commands and keeps the time. Every callback comes on one and the same thread."""

    def now(self) -> float:
        """Boot-clock seconds."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back at that time."""

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """Execute a command for the file system; answer exactly once, within the call time-out."""

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        """Execute a command for ZooKeeper; answer exactly once, within a bound; ``changed`` if the watch goes off."""
