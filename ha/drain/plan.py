"""Plan of a drain: what is to be done in each job, from one look at all of them. No I/O."""

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec


class Seen(msgspec.Struct, frozen=True):
    """One job, as it was last seen.

    Attributes:
        job: its name.
        epoch: of its newest leadership.
        holder: the contender that holds the lease; None if it is free.
        contenders: that have announced themselves in ZooKeeper; None if ZooKeeper does not answer.
        barred: contenders that may not take it over now.
        checkpoint: id of its newest completed checkpoint; 0 if it has none.
    """

    job: str
    epoch: int
    holder: str | None
    contenders: list[str] | None
    barred: frozenset[str] = frozenset()
    checkpoint: int = 0

    def involves(self, host: str) -> bool:
        """Whether that host contends for the job, or may do so unseen."""
        return self.contenders is None or host in self.contenders or self.holder == host

    def successors(self, host: str, drained: Collection[str]) -> list[str] | None:
        """The contenders that may take the job over from a host; None if nobody knows them."""
        if self.contenders is None:
            return None
        return [each for each in self.contenders if each != host and each not in drained and each not in self.barred]


class Plan(msgspec.Struct, frozen=True):
    """What is to be done.

    Attributes:
        bar: jobs from which the host is barred.
        move: jobs that it leads, and that others can lead.
        stuck: jobs that it leads, and that nobody else contends for: they are left alone.
    """

    bar: list[Seen]
    move: list[Seen]
    stuck: list[Seen]


def plan(seen: Iterable[Seen], host: str, drained: Collection[str]) -> Plan:
    """Decide about each job. A job that only this host contends for is left alone, whether it leads it or waits."""
    involved = [each for each in seen if each.involves(host)]
    alone = [each for each in involved if each.successors(host, drained) == [] and each.holder in (host, None)]
    bar = [each for each in involved if each not in alone]
    return Plan(bar, [each for each in bar if each.holder == host], [each for each in alone if each.holder == host])


def least_loaded(candidates: Collection[str], leads: Counter[str]) -> str:
    """The contender that leads the fewest jobs, by name among equals; it is counted as the leader of one more."""
    chosen = min(candidates, key=lambda each: (leads[each], each))
    leads[chosen] += 1
    return chosen
