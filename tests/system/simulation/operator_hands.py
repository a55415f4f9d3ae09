"""Steps of operators: requests, pauses and bars, and what befalls the store just then."""

from collections.abc import Callable
from functools import partial

from leader.layout.bar import Bar
from leader.layout.lease import LOOK, Lease, Mode
from leader.layout.names import GRAPH, RECORD, REQUESTS, newest
from tests.system.simulation.escalation import BEFORE, Happened
from tests.system.simulation.hand import Hand
from tests.system.simulation.plan import Step
from tests.system.simulation.requests import OPERATOR, Operator
from tests.system.simulation.sidecar import JOB

RETRY_S = 0.5
"""Seconds after which an operator asks again."""


class OperatorHands(Hand):
    """Does what operators do."""

    def _request(self, step: Step) -> None:
        system, lease = self._system, self._system.lease
        directory = newest(system.files.list(JOB)) if lease is not None else None
        looks = step.how[0] == LOOK
        if lease is None or directory is None or system.files.safe_mode or (lease.successor and not looks):
            return
        if lease.mode is not Mode.RELEASED:
            what = "leaves a request" if looks else f"asks to hand over to {step.how[0]}"
            system.note(f"an operator {what}", step.kind)
            marked = lease.asked_to_look() if looks else lease.asked_to(step.how[0])
            record = f"{JOB}/{directory.name}/{RECORD}"
            system.files.rename(f"{record}/{lease.name}", f"{record}/{marked.name}", "operator")

    def _ask(self, step: Step) -> None:
        """Leave a request by name; the step's target is its id."""
        operator = self._system.hosts[OPERATOR]
        assert isinstance(operator, Operator), "the name is its own"
        self._system.note(f"an operator makes request {step.target}", step.kind)
        operator.ask(JOB, step.target)

    def _strike(self, step: Step) -> None:
        """Have another step befall the leader just when the NameNode renames something to a name with that in it."""
        fragment, kind, *how = step.how
        system, taken = self._system, False

        def renaming(path: str) -> None:
            nonlocal taken
            if not taken and not self._healed and fragment in path and (leader := system.leader) is not None:
                taken = True
                self.take(Step(step.at, kind, self._name(leader), step.seconds, tuple(how)))

        system.files.renaming = renaming

    def _failed_before(self, step: Step) -> None:
        """Let the job have failed so often in a row before, on another host."""
        system = self._system
        directory = newest(system.files.list(JOB)) if JOB in system.files.root.entries else None
        if directory is not None and not system.files.safe_mode:
            (failures,) = step.how
            graph = f"{JOB}/{directory.name}/{GRAPH}"
            system.files.make(graph, "operator")
            system.files.make(f"{graph}/attempts={failures}~0~~exit-3~before~0~1000", "operator")
            before = Happened(system.world.now, "operator", 0, BEFORE, float(failures))
            system.failures.happened.append(before)

    def _doubt(self, step: Step) -> None:
        """Lose the journal just before the next acceptance of a request, so that its outcome is in doubt."""
        system, taken = self._system, False

        def renaming(path: str) -> None:
            nonlocal taken
            if not taken and not self._healed and f"/{REQUESTS}/" in path and not path.endswith("=1"):
                taken = True
                self.take(Step(step.at, "journal", "", step.seconds, step.how))

        system.files.renaming = renaming

    def _pause_job(self, step: Step) -> None:
        self._for(step, "an operator pauses the job", partial(self._mark, Lease.as_paused), self._resume_job)

    def _bar(self, step: Step) -> None:
        """Bar a contender; the bar ends by itself."""
        system, directory = self._system, newest(self._system.files.list(JOB))
        if directory is not None and not system.files.safe_mode:
            until = int(system.world.now + step.seconds)
            system.note(f"an operator bars {step.target} until {until} s", step.kind)
            entry = Bar(step.target, until, "operator").name
            system.files.make(f"{JOB}/{directory.name}/{RECORD}/{entry}", "operator")
            self._mark(Lease.asked_to_look)

    def _resume_job(self) -> None:
        paused = (lease := self._system.lease) is not None and lease.paused
        if paused:
            self._mark(Lease.as_resumed)
        if paused or not self._healed:  # it may not have been done, or be forgotten with the journal
            self._system.world.after(RETRY_S, self._resume_job)

    def _mark(self, mark: Callable[[Lease], Lease]) -> None:
        """Give the job's lease another name, if the store takes writes now."""
        system, lease = self._system, self._system.lease
        directory = newest(system.files.list(JOB)) if lease is not None else None
        if lease is not None and directory is not None and not system.files.safe_mode:
            record = f"{JOB}/{directory.name}/{RECORD}"
            system.files.rename(f"{record}/{lease.name}", f"{record}/{mark(lease).name}", "operator")

    def _resign(self, step: Step) -> None:
        process = self._process(step.target)
        if process is not None and process.leads(JOB):
            self._system.note(f"{process.name} is told to give back what it leads", step.kind)
            process.run(lambda: process.contender.step_down(JOB, "It was told to."))
