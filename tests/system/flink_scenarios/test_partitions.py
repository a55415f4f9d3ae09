"""Partitions of every shape between two contenders and two stores, in both directions or in one. Virtual time."""

from itertools import chain, combinations

import pytest

from tests.system.flink_scenarios.trouble import FILES, ZOOKEEPER, cut, mend
from tests.unit.leader.arena import TIMING, Arena

LINKS = [("a", ZOOKEEPER), ("a", FILES), ("b", ZOOKEEPER), ("b", FILES)]
SHAPES = list(chain.from_iterable(combinations(LINKS, count) for count in range(1, len(LINKS) + 1)))
OUTAGE = TIMING.long_ttl * 1.7


@pytest.mark.parametrize("way", ["both", "requests", "answers"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "+".join(f"{who}-{store}" for who, store in shape))
def test_whatever_is_cut_never_two_lead_and_one_does_in_the_end(shape: tuple[tuple[str, str], ...], way: str) -> None:
    """The arena asserts all the while that at most one leads, and that at most one thinks nobody else can."""
    arena = Arena()
    leader, standby = arena.start_led("b")
    for who, store in shape:
        process = leader if who == "a" else standby
        cut(process, store, there=way != "answers", back=way != "requests")
    arena.run(OUTAGE)
    if ("a", FILES) not in shape:
        assert arena.leaders() == [leader], "who reaches the file system stays"
        assert not leader.revokes()
    elif ("b", FILES) not in shape:
        assert arena.leaders() == [standby], "who does not is followed"
    for who, store in shape:
        mend(leader if who == "a" else standby, store)
    arena.run(TIMING.long_ttl)
    assert len(arena.leaders()) == 1
    assert f"jobmaster={arena.leaders()[0].name}_3a6123" in arena.endpoints()[0]
    assert arena.leaders()[0].participant().leader_mirror.mirror.published
