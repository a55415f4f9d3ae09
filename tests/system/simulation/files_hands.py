"""Steps that befall the file system: the NameNode, its journal, and single changes on their way."""

from functools import partial

from leader.election.events import FilesCommand
from store.errors import Invalid
from tests.system.simulation.commands import KINDS
from tests.system.simulation.hand import Hand
from tests.system.simulation.host import Fault
from tests.system.simulation.plan import Step
from tests.system.simulation.process import Process
from tests.system.simulation.sidecar import Sidecar

LOOKED_AT_FOR = 0.3
"""Share of the call time-out for which a standby's look has been under way."""


class FilesHands(Hand):
    """Breaks and mends the file system."""

    def _safe_mode(self, step: Step) -> None:
        files = self._system.files

        def begin() -> None:
            files.safe_mode = True

        def mend() -> None:
            files.safe_mode = False

        self._for(step, "the NameNode is in safe mode", begin, mend, "writes")

    def _failover(self, step: Step) -> None:
        files = self._system.files
        self._for(step, "no NameNode is active", files.stop, files.start, "files")

    def _journal(self, step: Step) -> None:
        """Lose the journal. Either it is back in time, or the next NameNode knows a share of the unwritten changes."""
        files, (share,) = self._system.files, step.how
        mend = files.regain_journal if share == "all" else partial(files.forget, float(share))
        self._for(step, "the journal cannot be written", files.lose_journal, mend, "journal")

    def _fate(self, step: Step) -> None:
        """Set a fault for the first such command, and then one for its sender."""
        self._set_fate(step, self._system.sidecars)

    def _set_fate(self, step: Step, processes: list[Sidecar]) -> None:
        aim, fate, delay, then = step.how
        system, taken = self._system, False

        def follow(process: Process) -> None:
            nonlocal taken
            if taken or self._healed:
                return
            taken = True
            system.note(f"{process.name}: a command ({aim}) is {fate}, then {then}", f"fate {fate}")
            name = self._name(process)
            if fate == "unwritten":
                self.take(Step(step.at, "journal", "", float(delay), ("0",)))
            if then != "nothing" and name:
                kind, *how = then.split()
                self.take(Step(step.at, kind, name, step.seconds, tuple(how)))

        for process in processes:
            fault = Fault(lambda command: not taken and self._is_aim(aim, command))
            if fate == "answered":
                fault.answered = partial(follow, process)
            else:
                fault.then = partial(follow, process)
            if fate == "late":
                fault.delay = float(delay)
            fault.lost = fate == "lost"
            fault.dropped = fate == "dropped"
            if fate == "refused":
                fault.error = Invalid("Refused on purpose.")
            process.faults.append(fault)

    def _is_aim(self, aim: str, command: FilesCommand) -> bool:
        if aim == "renewal during a look":
            return KINDS["renewal"](command) and any(each.looks_since(LOOKED_AT_FOR) for each in self._system.sidecars)
        return KINDS[aim](command)
