"""Plan of a drain: the action for each job, from one look at all of them. No I/O."""

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from leader.layout.hosts import covers


class SeenJob(msgspec.Struct, frozen=True):
    """One job, as it was last seen."""

    job: str  # its name
    epoch: int  # of its newest leadership
    holder: str | None  # the contender that holds the lease; None if it is free
    contenders: list[str] | None  # that have announced themselves in ZooKeeper; None if ZooKeeper does not answer
    barred: frozenset[str] = frozenset()  # contenders, and hosts, that may not take it over now
    checkpoint: int = 0  # id of its newest completed checkpoint; 0 if it has none

    def involves(self, host: str) -> bool:
        """Whether that host contends for the job, or may do so unseen."""
        return self.contenders is None or any(covers(host, each) for each in self.contenders) or self.led_by(host)

    def led_by(self, host: str) -> bool:
        """Whether that host holds its lease."""
        return self.holder is not None and covers(host, self.holder)

    def successors(self, host: str, drained: Collection[str]) -> list[str] | None:
        """The contenders that may take the job over from a host; None if they are unknown."""
        if self.contenders is None:
            return None
        barred = {host, *drained, *self.barred}
        return [each for each in self.contenders if not any(covers(name, each) for name in barred)]


class DrainPlan(msgspec.Struct, frozen=True):
    """What is to be done."""

    bar: list[SeenJob]  # jobs from which the host is barred
    move: list[SeenJob]  # jobs that it leads, and that others can lead
    stuck: list[SeenJob]  # jobs that it leads, and that have no other contender: they are left alone


def plan(seen: Iterable[SeenJob], host: str, drained: Collection[str]) -> DrainPlan:
    """Decide about each job. A job that only this host contends for is left alone, whether it leads it or waits."""
    involved = [each for each in seen if each.involves(host)]
    alone = [
        each for each in involved if each.successors(host, drained) == [] and (each.holder is None or each.led_by(host))
    ]
    bar = [each for each in involved if each not in alone]
    return DrainPlan(bar, [each for each in bar if each.led_by(host)], [each for each in alone if each.led_by(host)])


def least_loaded(candidates: Collection[str], leads: Counter[str]) -> str:
    """The contender that leads the fewest jobs, by name among equals; it is counted as the leader of one more."""
    chosen = min(candidates, key=lambda each: (leads[each], each))
    leads[chosen] += 1
    return chosen
