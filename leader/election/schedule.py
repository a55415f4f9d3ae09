"""Poll schedule: every "when to look next" timer of one contender, in boot-clock seconds. No I/O.

It says how long to wait; the callers say when: :mod:`leader.election.responses` after an answer,
:mod:`leader.election.election` after an event.
"""

from leader.timing import NEVER, PAST, Timing


class PollSchedule:
    """When to look at the store, when to try a change, and when to stop waiting."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self.sent_at = PAST  # when the operation that is under way, or was last, was sent
        self.look_due = NEVER  # when to look at the store again
        self.look_from_top = True  # whether that look lists the job's directory first, not the known record
        self.look_again = False  # whether a look under way may have missed something: another must follow soon
        self.looked_at = PAST  # when the record was last listed
        self.retry_at = PAST  # no change is tried before this time
        self.held_off_until = PAST  # no lease is seized before: the contender gave its own back to others
        self.give_up_at = PAST  # when to stop giving the lease back; it ends by itself then
        self.announcement_due = PAST  # until then contact and history wait for the endpoints

    def due_times(self) -> list[float]:
        """The timers that count in every phase."""
        return [self.look_due, self.held_off_until, self.retry_at]

    # --- after an event

    def look_by(self, when: float) -> None:
        """Look at that time at the latest."""
        self.look_due = min(self.look_due, when)

    def look_soon(self, now: float, apart: float) -> None:
        """Look as soon as ``apart`` seconds have passed since the last look."""
        self.look_by(max(now, self.looked_at + apart))

    def postpone_look(self, until: float) -> None:
        """Nothing is to be seen before that time, unless a look under way may have missed something."""
        if not self.look_again:
            self.look_due = max(self.look_due, until)

    def start_over(self, now: float) -> None:
        """Look now, from the job's directory on."""
        self.look_from_top = True
        self.look_due = now

    # --- after an answer

    def job_created(self, now: float, *, done: bool) -> None:
        """The job's directory was created, or could not be."""
        self.look_due = now if done else self.sent_at + self._timing.poll

    def job_listed(self, now: float, *, found: bool) -> None:
        """The job's directory was listed, and holds a leader directory or none."""
        self.look_from_top = not found
        self.look_due = now if found else now + self._timing.poll

    def job_not_listed(self) -> None:
        """The job's directory could not be listed."""
        self.look_due = self.retry_at = self.sent_at + self._timing.retry

    def record_not_listed(self, *, gone: bool) -> None:
        """The record could not be listed; ``gone`` says that its directory is gone."""
        self.look_from_top = gone
        self.look_due = self.sent_at + self._timing.retry

    def record_listed(self, now: float) -> None:
        """The record was listed. Its holder looks again only if that look may have missed something."""
        self.look_due = now + self._timing.poll if self.look_again else NEVER

    def record_without_lease(self, now: float) -> None:
        """The record holds no lease."""
        self.look_due = now + self._timing.poll

    def rival_seen(self, now: float, interval: float) -> None:
        """A standby read somebody else's lease, and would look again after ``interval`` seconds."""
        self.look_due = now + (self._timing.retry if self.look_again else interval)

    def change_failed(self, now: float, *, from_top: bool) -> None:
        """A change was refused, or its outcome is unknown: look now, and retry only after a pause."""
        self.look_due = now
        self.retry_at = self.sent_at + self._timing.retry
        self.look_from_top = self.look_from_top or from_top

    def marked(self, now: float) -> None:
        """An operator has marked the lease that a standby knew, so a seizure was refused: the next need not wait."""
        # With a pause, somebody who marks it again and again would get in between each time.
        self.retry_at = min(self.retry_at, now)

    # --- after a transition

    def hold_off(self, now: float, *, zookeeper_tells: bool) -> None:
        """The lease was given back: leave it to others first."""
        # ZooKeeper tells standbys at once; without it, each of them looks when a renewal would be due.
        self.held_off_until = now + (self._timing.hand_over if zookeeper_tells else self._timing.courtesy)

    def claim_begins(self) -> None:
        """The lease is held, so there is nothing to look for."""
        self.look_due = NEVER

    def leadership_begins(self, now: float) -> None:
        """Nothing is looked for; all else that is announced waits a moment for the endpoints."""
        self.look_due = NEVER
        self.announcement_due = now + self._timing.retry
