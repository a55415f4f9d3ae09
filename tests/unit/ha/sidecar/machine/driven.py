"""Driven: a sidecar's machine that a test gives events, with what it commands."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ha.config.restart_strategy import FixedDelay, NoRestart, RestartStrategy
from ha.program.engine_state import EngineState
from ha.program.heartbeat import Beat
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.machine import Machine
from ha.sidecar.machine.sidecar_state import Rules, SidecarState
from leader.job.request_folder import Request
from leader.layout.names import LeaderDirectory
from tests.unit.ha.led import session

T = TypeVar("T", bound=do.SidecarCommand)

GRACE = 10.0


def rules(strategy: Callable[[], RestartStrategy] = NoRestart, **more: Any) -> Rules:
    given = {"warm": False, "stop_grace": GRACE, "long_ttl": 30.0, "retry": 0.25, "renewal": 2.0}
    return Rules(strategy=strategy, warm_up=FixedDelay(99, 1.0), **(given | more))


@dataclass
class Driven:
    machine: Machine
    at: float = 100.0
    leads: bool = True
    done: list[do.SidecarCommand] = field(default_factory=list)
    """All commands so far."""

    @property
    def state(self) -> SidecarState:
        return self.machine.state

    def take(self, event: events.SidecarEvent) -> list[do.SidecarCommand]:
        """Take an event; returns what is commanded."""
        found = self.machine.handle(event, self.at, leads=self.leads)
        self.done += found
        return found

    def look(self, at: float, beat: Beat | None = None, engine: EngineState | None = None) -> list[do.SidecarCommand]:
        self.at = at
        return self.take(events.ClockTicked(beat, engine or EngineState()))

    def grant(self, epoch: int = 1) -> LeaderDirectory:
        """Grant the job; its state and failures are not known yet."""
        leader = LeaderDirectory(epoch, session(epoch))
        self.leads = True
        self.take(events.LeadershipGranted(leader))
        return leader

    def run(self, epoch: int = 1) -> LeaderDirectory:
        """Grant the job, and have its command run; nobody has asked for anything."""
        leader = self.grant(epoch)
        self.take(events.Begun(leader))
        self.take(events.Started(self.state.runs))
        self.take(events.RequestsFound(leader))
        return leader

    def end(self, code: int = 143, **more: Any) -> list[do.SidecarCommand]:
        """Have the newest run end; returns what is commanded."""
        return self.take(events.CommandEnded(self.state.runs, code, **more))

    def restart(self, verb: str = "restart", **arguments: str) -> Request:
        request = self.ask(verb, **arguments)
        self.take(events.RestartPrepared(request.id))
        return request

    def settle(self) -> list[do.SidecarCommand]:
        """Have the newest run's program say that it knows no end in order, and end by a signal."""
        self.take(events.Settling(self.state.runs, GRACE, able=False))
        return self.end()

    def ask(self, verb: str, **arguments: str) -> Request:
        request = Request(f"{len(self.done)}-{verb}", verb, 1, "jane", arguments)
        phase: Any = self.state.phase
        self.take(events.Marked())
        self.take(events.RequestsFound(phase.leader, (request,)))
        return request

    def all(self, kind: type[T]) -> list[T]:
        return [each for each in self.done if isinstance(each, kind)]

    def answers(self) -> list[tuple[str, str]]:
        return [(each.state.value, each.said) for each in self.all(do.AnswerRequest)]


def driven(strategy: Callable[[], RestartStrategy] = NoRestart, **more: Any) -> Driven:
    made = Driven(Machine(rules(strategy, **more)))
    made.done += made.machine.begin(made.at)
    return made
