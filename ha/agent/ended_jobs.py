"""Ended jobs: finds an agent's jobs that have ended for good, for an alert that also rings without a sidecar.

The sidecars of a job that has failed end, and their metrics with them. Only jobs without a leader are looked at, on
demand, in the background. A look is one list of the leader directory: one a minute while the job has not ended, and
none once it has ended under the known leader.
"""

from dataclasses import dataclass

from leader.job.status import Status, pick
from leader.layout.names import LeaderDirectory
from leader.lookup.answers import Look
from store.bounded import BoundedFiles
from store.clock import now
from store.files import Entry
from store.outcome import Outcome

AGAIN_S = 60.0  # between two looks at a job that has no leader, and that has not ended


@dataclass(slots=True, eq=False)
class _Seen:
    leader: LeaderDirectory
    ended: Status | None = None
    again_at: float = float("-inf")


class EndedJobs:
    """The ends of jobs without a leader. It is asked by one thread at a time."""

    def __init__(self, files: BoundedFiles, call_timeout: float) -> None:
        """Look at nothing yet."""
        self._files, self._timeout = files, call_timeout
        self._seen: dict[str, _Seen] = {}

    def end(self, job: str, look: Look) -> Status | None:
        """Return how a job has ended for good, as far as that is known by now; None if it has not."""
        # `look`: the agent's last look at its leader.
        known = look.known
        if look.answer is not None or known is None or not known.epoch:
            self._seen.pop(job, None)
            return None
        leader = LeaderDirectory(known.epoch, known.session_id)
        seen = self._seen.get(job)
        if seen is None or seen.leader != leader:
            seen = self._seen[job] = _Seen(leader)
        if seen.ended is None and now() >= seen.again_at:
            seen.again_at = now() + AGAIN_S
            self._look(job, seen)
        return seen.ended

    def keep(self, jobs: list[str]) -> None:
        """Forget all other jobs."""
        for job in self._seen.keys() - set(jobs):
            del self._seen[job]

    def _look(self, job: str, seen: _Seen) -> None:
        path = f"{job}/{seen.leader.name}"

        def listed(outcome: Outcome[list[Entry]]) -> None:
            found = pick(entry.name for entry in outcome.value) if outcome.done and outcome.value else None
            if found is not None and found.status.globally_terminal:
                seen.ended = found.status

        self._files.submit("agent_state", lambda files: files.list(path), self._timeout, listed)
