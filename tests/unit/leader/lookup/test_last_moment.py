"""A stranger writes into ZooKeeper while a reader waits for the next leader: whenever that is, HDFS is heard first."""

import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from leader.errors import NoLeader
from leader.layout.information import LeaderInformation, Record, encode, endpoint_entries
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.lookup.reader import Reader
from store.bounded import BoundedFiles
from store.errors import DeadlineExceeded, NotFound
from store.outcome import Outcome
from tests.unit.leader.grants import FIRST, QUICK, PlayedZooKeeper
from tests.unit.leader.lookup.ticking import Ticking
from tests.unit.leader.samples import C

LOOKUPS = 100
TRUTH = LeaderInformation("orders", FIRST.epoch, FIRST.session_id, {"rest": "a:1"})
FORGED = LeaderInformation("orders", FIRST.epoch + 1, C, {"rest": "evil:1"})
HELD = Lease(5, Mode.HDFS, 600, FIRST.session_id, "", "a")
GIVEN_BACK = Lease(6, Mode.RELEASED, 0, FIRST.session_id, "", "a")


class Stores(PlayedZooKeeper):
    """Both stores: HDFS answers each question after some seconds, and a stranger writes at some time."""

    uri = "hdfs://n"

    def __init__(self, clock: Ticking, latency: float) -> None:
        self.clock, self.latency = clock, latency
        self.record = Record(HELD, endpoint_entries(TRUTH))
        self.written, self.forged_at = encode(TRUTH), float("inf")

    def outcome(self, name: str, operation: object, timeout: float) -> Outcome[Any]:
        del name, operation
        started = self.clock.at
        self.clock.sleep(max(0.0, min(self.latency, timeout)))
        late = DeadlineExceeded("no answer") if timeout < self.latency else None
        found = LeaderDirectory(FIRST.epoch, FIRST.session_id), self.record
        return Outcome(None if late else found, late, started, self.clock.at)

    def submit(self, name: str, operation: object, timeout: float, done: Callable[[Outcome[Any]], None]) -> None:
        done(self.outcome(name, operation, timeout))

    def call(self, operation: Any, timeout: float) -> Any:
        del operation, timeout
        self.clock.sleep(0.001)
        if self.clock.at >= self.forged_at:
            return encode(FORGED), None
        if not self.written:
            raise NotFound("orders")
        return self.written, None


@pytest.mark.parametrize("latency", [0.002, 0.005, 0.01, 0.03, 0.1])
def test_no_reader_is_sent_to_a_stranger_while_hdfs_answers(latency: float) -> None:
    """Found by the simulator: a last look with a few milliseconds left took HDFS for silent."""
    dice = random.Random(7)  # noqa: S311
    for _ in range(LOOKUPS):
        clock = Ticking()
        stores = Stores(clock, latency)
        reader = Reader(cast(BoundedFiles, stores), stores.client, QUICK, clock=clock, rng=dice)
        assert reader.leader("orders", 2.0).verified
        stores.record, stores.written = Record(GIVEN_BACK, frozenset()), b""
        stores.forged_at = clock.at + dice.uniform(0.0, 2.0)
        with pytest.raises(NoLeader):
            reader.leader("orders", 2.0)
