"""Requests by name: an operator that asks until it is answered, and a leader that accepts, carries out and answers.

Both use production's code. As production's sidecar, a leader looks when it is granted, and when it is told to.
The operator is patient: each time it asks, it marks the lease, and standbys take the mark for a renewal.
"""

from dataclasses import dataclass

from ha.verbs.asking import ask, find
from leader.errors import Fenced, NoLeader
from leader.job.admin import JobAdmin
from leader.job.request_folder import State
from leader.timing import Timing
from store.errors import StoreError
from tests.system.simulation.blocking import SimulatedBoundedFiles, SimulatedClock, Tasks
from tests.system.simulation.host import Host
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.world import World

OPERATOR = "operator"
KEPT_VERB, BOUND_VERB = "restart", "savepoint"
"""One that any later leader may carry out, and one that is for the leader of one epoch."""

LOOKS_AGAIN = (0.5, 3.0)
"""Seconds after which an operator looks for an answer, or asks again if nothing was left."""


def is_kept(identity: str) -> bool:
    """Whether the request with this id, a letter and a number, is kept for the next leader."""
    return int(identity[1:]) % 2 == 0


def patience(timing: Timing) -> float:
    """Return the seconds after which an operator asks again: by then the lease of a dead leader has been seized."""
    return 2 * timing.long_ttl


@dataclass(frozen=True)
class CarriedOut:
    """A leader has carried out a request."""

    at: float
    contender: str
    epoch: int
    id: str


class Ledger:
    """What leaders have carried out, and the answers that the operator has read."""

    def __init__(self) -> None:
        self.carried_out: list[CarriedOut] = []
        self.answers: dict[str, State | None] = {}
        """By id, of all that were asked; None while there is no answer."""
        self.asked_at = float("-inf")
        """When the operator has asked last, and so may have marked the lease."""

    @property
    def open(self) -> bool:
        """Whether an operator waits for an answer."""
        return None in self.answers.values()


class Operator(Host):
    """A person's host. It asks from the moment of a step on until it is answered."""

    def __init__(self, world: World, files: Namespace, timing: Timing, tasks: Tasks, ledger: Ledger) -> None:
        super().__init__(world, OPERATOR, files, None, timing)
        self._tasks, self._ledger, self._clock = tasks, ledger, SimulatedClock(self)
        self._files = SimulatedBoundedFiles(self, tasks)
        self.patience = patience(timing)

    def ask(self, job: str, identity: str) -> None:
        """Begin to ask."""
        self._ledger.answers[identity] = None
        self.run(lambda: self._tasks.spawn(lambda: self._ask(job, identity)))

    def _ask(self, job: str, identity: str) -> None:
        admin = JobAdmin(self._files, None, self.timing.call_timeout)  # type: ignore[arg-type]
        ledger, left = self._ledger, False
        while ledger.answers[identity] is None:
            try:
                if left and self.world.now < ledger.asked_at + self.patience:
                    found = find(admin, job, identity)
                else:
                    ledger.asked_at = self.world.now
                    found = ask(admin, job, KEPT_VERB if is_kept(identity) else BOUND_VERB, identity, OPERATOR)
                    left = True
                if found is not None and found.state.final:
                    ledger.answers[identity] = found.state
            except (StoreError, Fenced, NoLeader):
                pass
            self._clock.sleep(self._dice.uniform(*LOOKS_AGAIN))
