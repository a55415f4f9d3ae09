"""Simulated process: production's contender, with an application that obeys, or does not."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from leader.contender.contender import Contender
from leader.contender.participant import Participant
from leader.election.events import FilesCommand, Grant, ListRecord, Revoke
from leader.election.ports import FilesAnswer, Heard, LivenessProbe
from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation
from leader.layout.names import ADOPTED, LeaderDirectory
from leader.timing import Timing
from store.errors import DeadlineExceeded, StoreError
from store.outcome import Outcome
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.guard import Guard
from tests.system.simulation.host import Fault, Host
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.wires import Wires
from tests.system.simulation.world import World

if TYPE_CHECKING:
    from tests.system.simulation.lending import Socket

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
        guard: Guard | None = None,
        *,
        borrows: bool = False,
    ) -> None:
        super().__init__(world, name, files, ensemble, timing, wires)
        self.borrows_by: Socket | None = None
        """Its socket to the holder of its host's session, if it borrows that."""
        self.guard = guard
        """Of the command that it takes up, or that runs under its own leadership."""
        self.history: list[tuple[float, str, object]] = []
        self.endpoints: dict[str, str] | None = {"jobmaster": f"{name}:6123"}
        self.endpoints_ahead = False
        """Whether the endpoints are confirmed with the grant; else a moment after it."""
        self.contend_again = True
        self.gives_back = True
        self.ignores_requests = False
        self.contender = Contender(
            self,
            name,
            timing,
            new_session_id=world.uuid,
            wall_clock=lambda: world.now,
            new_incarnation=lambda: f"{world.random.getrandbits(32):08x}",
            address=self._listen(),
            jitter=self._dice.random,
            tell=(lambda notice: wires.tell(self, notice)) if wires is not None else None,
            borrows=borrows,
        )
        if self.client is not None:
            self.client.connected.append(self.contender.connected)
            self.client.disconnected.append(self.contender.disconnected)

        if guard is not None:
            guard.sidecar = self

    def _listen(self) -> ContactAddress | None:
        if self.wires is None:
            return None
        if self.guard is not None and self.guard.sidecar is not None:
            return self.wires.hand_over(self.guard.sidecar, self)
        return self.wires.listen(self)

    # --- as production's environment

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        started = self.now()
        over = False

        def reply(value: list[str] | None, error: StoreError | None) -> None:
            nonlocal over
            if not over:
                over = True
                deadline.cancel()
                answer(Outcome(value, error, started, self.now()))

        fault = self.fault_for(command)

        def answered(value: list[str] | None, error: StoreError | None) -> None:
            reply(value, error)
            if fault is not None and fault.answered is not None:
                fault.answered()

        self.send(fault, lambda: self.files.execute(job, command, self.name), answered)
        late = DeadlineExceeded("No answer in time.")
        deadline = self.world.after(self.timing.call_timeout / self.rate, lambda: self.run(lambda: reply(None, late)))

    def probe(self, address: ContactAddress, on_event: Callable[[Heard], None]) -> LivenessProbe:
        assert self.wires is not None, "only who listens calls"
        return self.wires.call(self, address, on_event)

    # --- as an application

    def start(self, job: str = "orders") -> "Process":
        self.contender.join(job, self)
        if self.guard is not None:
            self._take_up(self.guard)
        else:
            self.contend_for(job)
        if self.client is not None:
            self.client.start()
        return self

    def contend_for(self, job: str) -> None:
        self.contender.contend(job, self.endpoints if self.endpoints_ahead else None)

    def _take_up(self, guard: Guard) -> None:
        """Take up the leadership of the dead process, unless the guard kills the command before."""
        self.contender.adopt(guard.job, guard.leader, self.endpoints if self.endpoints_ahead else None)
        grants = len(self.grants())

        def killed() -> None:
            if self.guard is guard and len(self.grants()) == grants:
                guard.end()
                self.guard = None
                self._give_back(guard.job)

        if not guard.endless:
            self.world.at(max(self.world.now, guard.holds_until), lambda: self.run(killed))

    def participant(self, job: str = "orders") -> Participant:
        return self.contender.participants[job]

    def leads(self, job: str = "orders") -> bool:
        """Whether the process believes that it leads, whatever it is doing now; a dead process believes nothing."""
        return (
            self.alive
            and job in self.contender.participants
            and self.participant(job).election.state.is_leader(self.now())
        )

    def holds(self, job: str = "orders") -> bool:
        """Whether the process believes that nobody else can lead now."""
        held = self.alive and job in self.contender.participants
        return held and self.now() < self.participant(job).election.state.holds_until()

    def looks_since(self, share: float, job: str = "orders") -> bool:
        """Whether a list of the lease has been under way for at least that share of the call time-out."""
        if not self.alive or job not in self.contender.participants:
            return False
        state = self.participant(job).election.state
        looks = state.pending is not None and isinstance(state.pending.command, ListRecord)
        return looks and self.now() - state.schedule.sent_at >= share * self.timing.call_timeout

    def granted(self, job: str, grant: Grant) -> None:
        self.history.append((self.world.now, "granted", grant))
        if grant.reason != ADOPTED:
            self.guard = Guard(self.world, self.wires, job, LeaderDirectory(grant.epoch, grant.session_id))
            self.guard.sidecar = self
            self.guard.holds_until = self.true(self.participant(job).election.state.holds_until())
        if self.endpoints is not None and not self.endpoints_ahead:
            endpoints = self.endpoints
            self.world.after(0.0, lambda: self.run(lambda: self.contender.confirm(job, grant.session_id, endpoints)))

    def revoked(self, job: str, revoke: Revoke) -> None:
        self.history.append((self.world.now, "revoked", revoke))
        self.guard = None
        if self.gives_back:
            self.world.after(0.0, lambda: self.run(lambda: self._give_back(job)))

    def asked(self, job: str, successor: str) -> None:
        self.history.append((self.world.now, "asked", successor))
        if not self.ignores_requests:
            self.world.after(0.0, lambda: self.run(lambda: self.contender.release(job, successor)))

    def requested(self, job: str) -> None:
        self.history.append((self.world.now, "requested", job))

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        del leads_until
        if self.guard is not None and self.guard.job == job:
            self.guard.holds_until = self.true(holds_until) if holds_until > 0 else float("-inf")

    def crash(self) -> None:
        super().crash()
        if self.borrows_by is not None:
            self.borrows_by.end()

    def orphan(self, within: float) -> Guard | None:
        """End the process; its command runs on for so long. Returns the guard, None if there is no command."""
        guard = self.guard
        if guard is not None and guard.command_runs:
            guard.orphaned(within)
        self.crash()
        return guard

    def published(self, job: str, information: LeaderInformation) -> None:
        self.history.append((self.world.now, f"published {job}", information))

    def suspected(self, job: str, contender: str) -> None:
        self.history.append((self.world.now, "suspected", f"{job}: {contender}"))

    def said(self, job: str, sentence: str, **_: object) -> None:
        self.history.append((self.world.now, "said", f"{job}: {sentence}"))

    def grants(self) -> list[Grant]:
        return [item for _, kind, item in self.history if kind == "granted" and isinstance(item, Grant)]

    def revokes(self) -> list[Revoke]:
        return [item for _, kind, item in self.history if kind == "revoked" and isinstance(item, Revoke)]

    def _give_back(self, job: str, successor: str = "") -> None:
        self.contender.release(job, successor)
        if self.contend_again:
            self.contend_for(job)

    def run(self, callback: Callable[[], None]) -> None:
        super().run(callback)
        for participant in self.contender.participants.values():
            participant.election.state.validate()
