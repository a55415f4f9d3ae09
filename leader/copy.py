"""A record's copy in ZooKeeper: a publication whose commands are executed."""

from collections.abc import Callable

from leader.environment import Environment, Timer
from leader.nodes import Node, NodeCommand, ReadNode
from leader.publication import Publication
from store.outcome import Outcome


class Copy:
    """A publication whose commands are executed."""

    def __init__(self, environment: Environment, path: str, told: Callable[[], None] | None = None) -> None:
        """Publish nothing yet.

        Args:
            environment: asks ZooKeeper.
            path: the node's.
            told: called when the node changes; while something is wanted there, only if somebody else changes it.
        """
        self.publication = Publication(path, observe=told is not None)
        self._environment = environment
        self._told = told
        self._timer: Timer | None = None
        self._closed = False

    def want(self, data: bytes | None) -> None:
        """The node shall hold this; None: it shall go, if it is ours."""
        self._ask(self.publication.want(data, self._environment.now()))

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is there."""
        del timeout  # the session keeper's matter
        self._ask(self.publication.connected(session, self._environment.now()))

    def disconnected(self) -> None:
        """ZooKeeper is away."""
        self.publication.disconnected()

    def close(self) -> None:
        """Ask and wake up no more, whatever is still answered."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ask(self, command: NodeCommand | None) -> None:
        if self._closed:
            return
        if command is not None:
            self._environment.run_node(command, lambda outcome: self._answered(command, outcome), self._changed)
        wake = self.publication.wake_at(self._environment.now())
        if wake < float("inf") and self._timer is None:
            self._timer = self._environment.call_at(wake, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._ask(self.publication.tick(self._environment.now()))

    def _answered(self, command: NodeCommand, outcome: Outcome[Node | None]) -> None:
        self._ask(self.publication.answered(command, outcome, self._environment.now()))
        if isinstance(command, ReadNode) and self.publication.touched:
            self._tell()

    def _changed(self) -> None:
        self._ask(self.publication.changed(self._environment.now()))
        # A leader's own writes set its watch off as well: what it reads then says whose they were.
        if not self.publication.wanting:
            self._tell()

    def _tell(self) -> None:
        if self._told is not None and not self._closed:
            self._told()
