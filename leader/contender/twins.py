"""Twins: another process that contends for the same job under the same name. An observer; no I/O.

A lease under this contender's name, but of a session id that was never its own, may be left from its last life. If it
is renewed again and again, its holder lives: two processes bear one name. Only the lease in HDFS counts, because
anybody may write to an open ZooKeeper. So of two standbys nothing is known until one of them leads.
"""

from collections.abc import Callable

from leader.election.events import FilesDone, ListRecord, Rename
from leader.layout.information import Record
from leader.layout.lease import Lease, Mode

RENEWALS = 2  # that show a living holder: of a process that died, one operation may come late, but only one
OnTwin = Callable[[str], None]  # takes the job in which there is a twin


class TwinWatch:
    """Watches the leases that this process reads; an observer of :mod:`leader.observer`."""

    def __init__(self, contender: str, on_twin: OnTwin) -> None:
        """``on_twin`` is called at most once for each job, on the contender's thread."""
        self._contender, self._on_twin = contender, on_twin
        self._own: set[str] = set()
        self._seen: dict[str, Lease] = {}
        self._renewals: dict[str, int] = {}

    def observe(self, job: str, happened: object) -> None:
        """See :class:`leader.observer.Observer`."""
        if isinstance(happened, Rename):
            lease = Lease.parse(happened.destination.rpartition("/")[2])
            if lease is not None:
                self._own.add(lease.owner)
        elif isinstance(happened, FilesDone) and isinstance(happened.command, ListRecord) and happened.outcome.done:
            lease = Record.parse(happened.outcome.result() or []).lease
            if lease is not None:
                self._read(job, lease)

    def _read(self, job: str, lease: Lease) -> None:
        known, self._seen[job] = self._seen.get(job), lease
        if lease.contender != self._contender or lease.owner in self._own or lease.mode is Mode.RELEASED:
            self._renewals[job] = 0
            return
        if known is None or known.owner != lease.owner:
            self._renewals[job] = 0
        elif lease.renewed_since(known):
            self._renewals[job] = self._renewals.get(job, 0) + 1
            if self._renewals[job] == RENEWALS:
                self._on_twin(job)


def twin_sentence(contender: str) -> str:
    """Return a sentence: what is wrong, and what to do."""
    return (
        f"Another process that is called {contender} leads this job, and lives: give each contender a name of its own "
        "(the setting `contender`), or none. This process stops contending."
    )
