"""A simulated sidecar: the contender of production, and an application that does as it is told, or does not."""

from collections.abc import Callable

from leader.candidacy import Candidacy
from leader.contender import Contender
from leader.environment import FilesAnswer, Line, NodeAnswer, Sign
from leader.events import FilesCommand, Grant, Revoke
from leader.information import LeaderInformation
from leader.nodes import Node, NodeCommand
from leader.timing import Timing
from leader.whereabouts import Whereabouts
from store.errors import DeadlineExceeded, NotSent, StoreError
from store.outcome import Outcome
from tests.simulation.ensemble import Ensemble
from tests.simulation.host import Fault, Host
from tests.simulation.namespace import Namespace
from tests.simulation.wires import Wires
from tests.simulation.world import World

__all__ = ["Fault", "Process"]


class Process(Host):
    """A process with one contender."""

    def __init__(
        self,
        world: World,
        name: str,
        files: Namespace,
        ensemble: Ensemble | None,
        timing: Timing,
        wires: Wires | None = None,
    ) -> None:
        super().__init__(world, name, files, ensemble, timing, wires)
        self.history: list[tuple[float, str, object]] = []
        self.endpoints: dict[str, str] | None = {"jobmaster": f"{name}:6123"}
        self.contend_again = True
        self.gives_back = True
        self.ignores_requests = False
        self.contender = Contender(
            self,
            name,
            timing,
            new_session_id=world.uuid,
            new_incarnation=lambda: f"{world.random.getrandbits(32):08x}",
            where=wires.listen(self) if wires is not None else None,
            jitter=self._dice.random,
        )
        if self.client is not None:
            self.client.connected.append(self.contender.connected)
            self.client.disconnected.append(self.contender.disconnected)

    # --- what production's environment does

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        started = self.now()
        over = False

        def reply(value: list[str] | None, error: StoreError | None) -> None:
            nonlocal over
            if not over:
                over = True
                deadline.cancel()
                answer(Outcome(value, error, started, self.now()))

        self.send(self.fault_for(command), lambda: self.files.execute(job, command, self.name), reply)
        late = DeadlineExceeded("No answer in time.")
        deadline = self.world.after(self.timing.call_timeout / self.rate, lambda: self.run(lambda: reply(None, late)))

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        started = self.now()

        def answered(value: Node | None, error: StoreError | None) -> None:
            answer(Outcome(value, error, started, self.now()))

        if self.client is None:
            refused = NotSent("There is no ZooKeeper.")
            self.world.after(0.0, lambda: self.run(lambda: answered(None, refused)))
        else:
            self.client.request(command, answered, changed)

    def call(self, where: Whereabouts, heard: Callable[[Sign], None]) -> Line:
        assert self.wires is not None, "only who listens calls"
        return self.wires.call(self, where, heard)

    # --- what it does as an application

    def start(self, job: str = "orders") -> "Process":
        self.contender.join(job, self)
        self.contender.contend(job)
        if self.client is not None:
            self.client.start()
        return self

    def candidacy(self, job: str = "orders") -> Candidacy:
        return self.contender.candidacies[job]

    def leads(self, job: str = "orders") -> bool:
        """Whether it believes to lead, whatever it is doing now; a dead process believes nothing."""
        return self.alive and job in self.contender.candidacies and self.candidacy(job).election.is_leader(self.now())

    def holds(self, job: str = "orders") -> bool:
        """Whether it believes that nobody else can lead now."""
        held = self.alive and job in self.contender.candidacies
        return held and self.now() < self.candidacy(job).election.holds_until()

    def granted(self, job: str, grant: Grant) -> None:
        self.history.append((self.world.now, "granted", grant))
        if self.endpoints is not None:
            endpoints = self.endpoints
            self.world.after(0.0, lambda: self.run(lambda: self.contender.confirm(job, grant.session_id, endpoints)))

    def revoked(self, job: str, revoke: Revoke) -> None:
        self.history.append((self.world.now, "revoked", revoke))
        if self.gives_back:
            self.world.after(0.0, lambda: self.run(lambda: self._give_back(job)))

    def asked(self, job: str, successor: str) -> None:
        self.history.append((self.world.now, "asked", successor))
        if not self.ignores_requests:
            self.world.after(0.0, lambda: self.run(lambda: self.contender.release(job, successor)))

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        pass

    def published(self, job: str, information: LeaderInformation) -> None:
        self.history.append((self.world.now, f"published {job}", information))

    def suspected(self, job: str, contender: str) -> None:
        self.history.append((self.world.now, "suspected", f"{job}: {contender}"))

    def said(self, job: str, sentence: str) -> None:
        self.history.append((self.world.now, "said", f"{job}: {sentence}"))

    def grants(self) -> list[Grant]:
        return [item for _, kind, item in self.history if kind == "granted" and isinstance(item, Grant)]

    def revokes(self) -> list[Revoke]:
        return [item for _, kind, item in self.history if kind == "revoked" and isinstance(item, Revoke)]

    def _give_back(self, job: str) -> None:
        self.contender.release(job)
        if self.contend_again:
            self.contender.contend(job)

    def run(self, callback: Callable[[], None]) -> None:
        super().run(callback)
        for candidacy in self.contender.candidacies.values():
            candidacy.election.validate()
