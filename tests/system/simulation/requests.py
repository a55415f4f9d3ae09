"""Requests by name: an operator that asks until it is answered, and a leader that accepts, carries out and answers.

Both use production's code. As production's sidecar, a leader looks when it is granted, and when it is told to.
The operator is patient: each time it asks, it marks the lease, and standbys take the mark for a renewal.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ha.views.requests import ask, find
from leader.errors import Fenced, NoLeader
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from leader.job.requests import Request, Requests, State
from leader.timing import Timing
from store.errors import StoreError
from tests.system.simulation.blocking import SimulatedBoundedFiles, SimulatedClock, Tasks
from tests.system.simulation.host import Host
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.world import World

OPERATOR = "operator"
VERB = "restart"

LOOKS_AGAIN = (0.5, 3.0)
"""Seconds after which an operator looks for an answer, or asks again if nothing was left."""

TAKES = (0.0, 1.0)
"""Seconds between the acceptance and what is done."""

ANSWERED = (0.0, 5.0)
"""Seconds between what is done and the answer: a restart takes a while, and the leader looks again meanwhile."""

LOOKS_WHETHER = 0.2
"""Seconds after which a leader looks whether an answer is due."""


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
                    found = ask(admin, job, VERB, identity, OPERATOR)
                    left = True
                if found is not None and found.state.final:
                    ledger.answers[identity] = found.state
            except (StoreError, Fenced, NoLeader):
                pass
            self._clock.sleep(self._dice.uniform(*LOOKS_AGAIN))


class RequestWork:
    """The requests of one leadership, for its leader."""

    def __init__(
        self, host: Host, tasks: Tasks, directory: FencedDirectory, works: Callable[[], bool], ledger: Ledger
    ) -> None:
        self._host, self._tasks, self._works, self._ledger = host, tasks, works, ledger
        self._epoch, self._requests = directory.leader.epoch, Requests(directory)
        self._clock, self._dice = SimulatedClock(host), host.world.dice(f"requests {host.name}")
        self._unanswered: list[tuple[float, Request]] = []
        """With the times from which on they are answered."""
        self._told = self._looks = False

    def look(self) -> None:
        """Look for requests, also if a look is under way."""
        self._told = True
        if not self._looks:
            self._tasks.spawn(self._look)

    def _look(self) -> None:
        self._looks = True
        while (self._told or self._unanswered) and self._works():
            told, self._told = self._told, False
            try:
                if told:
                    self._take()
                while self._unanswered and self._unanswered[0][0] <= self._clock.now():
                    self._requests.answer(self._unanswered[0][1], State.DONE, "It is done.")
                    self._unanswered.pop(0)
            except Fenced:
                return
            except StoreError:
                pass  # what was not found is found when the operator asks again
            self._clock.sleep(LOOKS_WHETHER)
        self._looks = False

    def _take(self) -> None:
        for request in self._requests.accept():
            self._clock.sleep(self._dice.uniform(*TAKES))
            if not self._works():
                self._requests.answer(request, State.REFUSED, "This leadership is about to end: ask again.")
                continue
            done = CarriedOut(self._host.world.now, self._host.name, self._epoch, request.id)
            self._ledger.carried_out.append(done)
            self._unanswered.append((self._clock.now() + self._dice.uniform(*ANSWERED), request))
