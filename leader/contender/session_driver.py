"""Session driver: executes an attestor's requests to ZooKeeper when they are due. No I/O of its own."""

from collections.abc import Callable

from leader.election.attestation import SessionAttestor
from leader.election.ports import NodeEnvironment, Timer
from leader.layout.znodes import Node, NodeCommand
from leader.timing import NEVER
from store.outcome import Outcome


class SessionDriver:
    """Runs one attestor."""

    def __init__(self, environment: NodeEnvironment, attestor: SessionAttestor, on_changed: Callable[[], None]) -> None:
        """``on_changed`` is called after everything that may have changed what is attested."""
        self.attestor = attestor
        self._environment = environment
        self._on_changed = on_changed
        self._timer: Timer | None = None

    def connected(self, session: int, timeout: float) -> None:
        """Confirm this session from now on."""
        self._run(self.attestor.connected(session, timeout, self._environment.now()))

    def disconnected(self) -> None:
        """Confirm nothing from now on."""
        self.attestor.disconnected()
        self._run(None)

    def _run(self, command: NodeCommand | None) -> None:
        self._on_changed()
        self._schedule()
        if command is None:
            return

        def answered(outcome: Outcome[Node | None]) -> None:
            self._run(self.attestor.answered(command, outcome, self._environment.now()))

        self._environment.run_node(command, answered, self._confirm_now)

    def _confirm_now(self) -> None:
        self._run(self.attestor.confirm_now(self._environment.now()))

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wake = self.attestor.wake_at()
        self._timer = self._environment.call_at(wake, self._wake) if wake < NEVER else None

    def _wake(self) -> None:
        self._timer = None
        self._run(self.attestor.tick(self._environment.now()))
