"""What the file system's answers make of a contender. No I/O.

Only what was acknowledged is held, claimed and believed; what is only listed says where to go on.
"""

from leader import names
from leader.events import Asked, CreateJob, Grant, ListJob, ListRecord, Say
from leader.information import Record
from leader.lease import Lease, Mode
from leader.names import LeaderDirectory
from leader.observation import NEVER
from leader.standing import Standing
from leader.step import Phase, Step
from store.errors import NotFound
from store.outcome import Outcome


class Following(Standing):
    """A contender that follows what the file system answers."""

    def _answered(self, outcome: Outcome[list[str] | None], now: float) -> None:
        step, self._under_way = self._under_way, None
        assert step is not None, "an answer belongs to a command"
        match step.command:
            case ListJob():
                self._job_listed(outcome, now)
            case ListRecord(directory):
                self._record_listed(directory, outcome, now)
            case CreateJob():
                self._missing = False
                self._look_due = now if outcome.done else self._sent_at + self.timing.poll
                self._complain(step, outcome)
            case _ if outcome.done:
                self._changed(step, now)
            case _:
                self._failed(step, outcome, now)

    def _failed(self, step: Step, outcome: Outcome[list[str] | None], now: float) -> None:
        """Refused or unknown: look what the store holds, and decide from that."""
        self._look_due = now
        self._retry_at = self._sent_at + self.timing.retry
        if isinstance(outcome.error, NotFound) or step.directory is not None:
            self._look_from_top = True
        if step.change is not None and outcome.refused:
            self._confirmation.refused(step.change)
        elif step.change is not None:
            self._confirmation.doubted(step.change)
        self._complain(step, outcome)

    def _complain(self, step: Step, outcome: Outcome[list[str] | None]) -> None:
        if sentence := self._complaints.about(step.purpose(self.phase), outcome.error):
            self._commands.append(Say(sentence))

    def _changed(self, step: Step, now: float) -> None:
        self._complaints.clear()
        if step.directory is not None:
            self.directory = step.directory
            if self.phase is Phase.CLAIMING:
                self._grant(now)
        elif step.change is not None:
            self._confirmation.made(step.change)
        elif step.lease is not None and step.lease in self._holding:
            self._observation.see(step.lease, now)
            self._hold(step.lease, now)

    def _job_listed(self, outcome: Outcome[list[str] | None], now: float) -> None:
        if not outcome.done:
            gone = isinstance(outcome.error, NotFound)
            self._look_due = self._retry_at = self._sent_at + self.timing.retry
            if gone and self.phase is not Phase.STANDBY:
                self._overtaken("The job's directory is gone.", now)
            elif gone:
                self._missing = True
            else:
                self._commands.append(Say(f"It cannot list the directory of the job: {outcome.error}"))
            return
        found = names.newest(outcome.result() or [])
        if found != self.directory and self.phase in (Phase.LEADING, Phase.STEPPING_DOWN, Phase.RELEASING):
            by = f"epoch {found.epoch} has begun" if found else "its leader directory is gone"
            self._overtaken(f"It was fenced: {by}.", now)
        self.directory = found
        self._look_from_top = found is None
        self._look_due = now if found else now + self.timing.poll
        if found is None:
            self._commands.append(Say("The job's directory holds no leader directory; it looks again."))

    def _record_listed(self, directory: LeaderDirectory, outcome: Outcome[list[str] | None], now: float) -> None:
        self._looked_at = now
        if not outcome.done:
            self._look_from_top = isinstance(outcome.error, NotFound)
            self._look_due = self._sent_at + self.timing.retry
            if not self._look_from_top:
                self._commands.append(Say(f"It cannot read the record of the job: {outcome.error}"))
            return
        record = Record.parse(outcome.result() or [])
        self._confirmation.see(record.entries)
        self._look_due = now + self.timing.poll if self._look_again else NEVER
        if record.lease is None:
            self._observation.forget()
            self._commands.append(Say(f"The record in {directory.name} holds no lease; it looks again."))
            self._look_due = now + self.timing.poll
            return
        self._observation.see(record.lease, outcome.ended)
        if self.phase is Phase.STANDBY:
            if record.lease in self._holding:
                self._observation.disown(self.session_id)  # seized, as it seems: once more, to be sure
            poll = self._observation.poll_interval(self.attestation)
            self._look_due = now + (self.timing.retry if self._look_again else poll)
            self._observation.check_due = min(self._observation.check_due, now)
        elif record.lease in self._holding:
            self._holding.see(record.lease)
            if record.lease.mode is Mode.RELEASED:
                self._released(now)
        elif record.lease.owner == self.session_id and record.lease.successor:
            self._holding.adopt(record.lease)
            self._asked(record.lease.successor)
        else:
            self._overtaken(f"Its lease was seized by {record.lease.contender}.", now)

    def _asked(self, successor: str) -> None:
        """An operator asks to hand over. Only who leads, or still works, has to be told; others just give it back."""
        if self.phase in (Phase.LEADING, Phase.STEPPING_DOWN):
            self._commands.append(Asked(successor))
            return
        self._successor = self._successor or successor
        if self.phase is Phase.CLAIMING:
            self._give_up_at = self._holding.until()
            self.phase = Phase.RELEASING

    def _released(self, now: float) -> None:
        # ZooKeeper tells standbys at once; without it each looks when a renewal would be due.
        self._held_off_until = now + (self.timing.hand_over if self.attestation.usable else self.timing.courtesy)
        self._lose(now)

    def _hold(self, lease: Lease, now: float) -> None:
        """The lease is in the store to stay, and ours."""
        self._holding.confirm(lease)
        if lease.mode is Mode.RELEASED:
            self._released(now)
        elif self.phase is Phase.STANDBY:
            self.phase = Phase.CLAIMING
            self._look_due = NEVER
            if not self.contending:
                self._release("")
        elif self.phase is Phase.CLAIMING and self.directory and self.directory.session_id == self.session_id:
            self._grant(now)

    def _grant(self, now: float) -> None:
        if now >= self._holding.until() or self.directory is None:
            return  # too late by our own clock: _expire ends it
        self.phase = Phase.LEADING
        self._look_due = NEVER
        self._history_due = now + self.timing.retry  # most leaders confirm at once, and people can wait for their line
        self._confirmation.begin(self.directory, self._reason, self.contender)
        self._commands.append(Grant(self.directory.epoch, self.session_id, self._reason))
