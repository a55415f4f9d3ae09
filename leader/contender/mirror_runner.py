"""Mirror runner: executes the commands of a mirror, so that a record's copy in ZooKeeper stays right."""

from collections.abc import Callable

from leader.election.mirror import Mirror
from leader.election.ports import Environment, Timer
from leader.layout.znodes import Node, NodeCommand, ReadNode
from leader.timing import NEVER
from store.outcome import Outcome


class MirrorRunner:
    """Runs one mirror."""

    def __init__(self, environment: Environment, path: str, on_changed: Callable[[], None] | None = None) -> None:
        """``on_changed`` is called when the node changes; while data is wanted, only for others' changes."""
        self.mirror = Mirror(path, observe=on_changed is not None)
        self._environment = environment
        self._on_changed = on_changed
        self._timer: Timer | None = None
        self._closed = False

    def want(self, data: bytes | None) -> None:
        """Want this data in the node; None deletes the node if it is ours."""
        self._run(self.mirror.want(data, self._environment.now()))

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is connected."""
        del timeout  # only the attestor needs it
        self._run(self.mirror.connected(session, self._environment.now()))

    def disconnected(self) -> None:
        """ZooKeeper is not connected."""
        self.mirror.disconnected()

    def close(self) -> None:
        """Stop for good, and ignore later answers."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self, command: NodeCommand | None) -> None:
        if self._closed:
            return
        if command is not None:
            self._environment.run_node(command, lambda outcome: self._answered(command, outcome), self._watch_fired)
        wake = self.mirror.wake_at(self._environment.now())
        if wake < NEVER and self._timer is None:
            self._timer = self._environment.call_at(wake, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._run(self.mirror.tick(self._environment.now()))

    def _answered(self, command: NodeCommand, outcome: Outcome[Node | None]) -> None:
        self._run(self.mirror.answered(command, outcome, self._environment.now()))
        if isinstance(command, ReadNode) and self.mirror.touched:
            self._report()

    def _watch_fired(self) -> None:
        self._run(self.mirror.changed(self._environment.now()))
        # A leader's own writes fire its watch as well: what it reads then shows whose they were.
        if not self.mirror.wanting:
            self._report()

    def _report(self) -> None:
        if self._on_changed is not None and not self._closed:
            self._on_changed()
