"""Watch: how often it looks, and what its looks say, while nobody leads; on a clock of its own."""

import threading
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from ha.agent.agent import LOOKS_PER_FRESHNESS, snapshot_of
from leader.layout.lease import Lease, Mode
from leader.lookup.answers import Look
from leader.lookup.rate_limit import JOB_BURST, JOB_PAUSE_S
from leader.lookup.reader import Reader
from leader.timing import Timing
from store.clock import now
from tests.patience import PATIENCE_S
from tests.unit.leader.faulty import Place
from tests.unit.leader.grants import FIRST, LEASE, SECOND, Grants
from tests.unit.leader.lookup.test_verification import Stores
from tests.unit.leader.lookup.ticking import Ticking

EVER = threading.Event()
SLOW = Timing(short_ttl=12.0)
"""Without ZooKeeper, a watch that passes nothing on looks every 4 s."""


class Watched:
    """A reader without ZooKeeper, its looks, and the times at which it asked HDFS."""

    def __init__(self, place: Place) -> None:
        self.clock, self.asked = Ticking(), list[float]()
        self._reader = Reader(place.files, None, SLOW, clock=self.clock)
        self._reader.rate_limit._unlimited = False  # as if it were a NameNode
        ask = place.files.outcome

        def by_this_clock(*question: Any) -> Any:
            self.asked.append(self.clock.at)
            return replace(ask(*question), started=self.clock.at, ended=self.clock.at)

        place.files.outcome = by_this_clock  # type: ignore[method-assign, assignment]

    def looks(self, every: float = float("inf")) -> Iterator[Look]:
        return self._reader.looks("orders", EVER, 30.0, every=every)


@pytest.mark.parametrize("fresh", [0.5, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("exists", [True, False], ids=["a job", "no such job"])
def test_an_agent_replaces_what_says_that_nobody_leads_before_it_ends(place: Place, fresh: float, exists: bool) -> None:
    if exists:
        Grants(place).claim(FIRST)
    watched, ends = Watched(place), float("inf")
    for look in islice(watched.looks(max(0.05, fresh / LOOKS_PER_FRESHNESS)), 300):
        assert watched.clock.at < ends
        ends = snapshot_of("orders", look, fresh).good_until
        assert look.answer is None
        assert look.asked == watched.asked[-1]
        assert ends <= look.asked + JOB_PAUSE_S + 0.4, "if the agent sleeps now, a reader asks a store soon"
    seconds = watched.clock.at - watched.clock.began
    assert len(watched.asked) <= JOB_BURST + 1 + seconds / JOB_PAUSE_S


def test_a_watch_that_passes_nothing_on_asks_no_more_often(place: Place, grants: Grants) -> None:
    grants.claim(FIRST)
    watched = Watched(place)
    times = [watched.clock.at for _ in islice(watched.looks(), 20)]
    pauses = [later - sooner for sooner, later in pairwise(times)]
    assert min(pauses) >= 0.8 * 4 * SLOW.poll


def test_what_an_audit_found_is_asked_about_again_though_nothing_changed(place: Place, grants: Grants) -> None:
    """HDFS says that nobody leads, and the old copy stays. The next leader cannot reach ZooKeeper."""
    stores = Stores(place, grants)
    looks = stores.reader.looks("orders", EVER, 2.0, every=1.0)
    (lease,) = [name for name in place.names(grants.record) if Lease.parse(name)]
    assert next(look for look in looks if look.answer is not None).answer is not None
    released = replace(LEASE, mode=Mode.RELEASED, ttl_ms=0, attestation="").name
    place.direct.rename(f"{grants.record}/{lease}", f"{grants.record}/{released}")
    end = now() + PATIENCE_S
    for look in looks:
        place.files.call("wait for audits", lambda _: None, PATIENCE_S)
        assert now() < end
        if look.answer is None:
            break
    grants.lead(SECOND, "b:1")
    began = stores.clock.at
    answer = next(look.answer for look in looks if look.answer is not None)
    assert answer.epoch == 2
    assert stores.clock.at - began <= 2 * JOB_PAUSE_S
