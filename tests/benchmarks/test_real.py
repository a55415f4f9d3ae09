"""The benchmarks themselves, in haste, on real servers: that they measure what they say. Nothing here is timed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import availability, lookup, publish
from benchmarks.availability.contestants import CONTESTANTS, CURATOR, KAZOO, OURS
from benchmarks.availability.judging import judge
from benchmarks.availability.outages import Outage, suffer
from benchmarks.context import Context, servers

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(240)]

OUTAGE_S = 6.0


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    said: list[str] = []
    yield Context(quick=True, rounds=1, say=said.append, folder=tmp_path)
    assert said


def test_lookups_come_from_where_they_should(context: Context) -> None:
    result = lookup.run(context)
    assert {row[0] for row in result.rows} == set(lookup.CALLS)
    for name in lookup.CALLS:
        assert len(result.raw[name]["last_round_seconds"]) == lookup.CALLS[name] // lookup.QUICK_SHARE
    for name in (lookup.ZOOKEEPER, lookup.HDFS, lookup.WEBHDFS):
        assert result.raw[name]["answers_from_elsewhere"] == 0
    # An agent that gets no processor for three seconds lets its snapshot run out.
    assert result.raw[lookup.SNAPSHOT]["answers_from_elsewhere"] <= lookup.CALLS[lookup.SNAPSHOT] // 100


def test_publishing_takes_its_steps_one_after_the_other(context: Context) -> None:
    result = publish.run(context)
    for way in (publish.RPC, publish.WEB):
        steps = [
            result.raw[name + way]["rounds_seconds"][0] for name in (publish.CLAIM, publish.PUBLISHED, publish.COPIED)
        ]
        assert [len(each) for each in steps] == [publish.QUICK_TIMES] * 3
        assert all(claim < published <= copied for claim, published, copied in zip(*steps, strict=True))


def test_an_outage_is_survived_here_and_waited_for_by_kazoo(context: Context) -> None:
    outage = Outage("ZooKeeper killed", "zookeeper-1", False, OUTAGE_S, True, tuple(CONTESTANTS))
    with servers(context) as sandbox, availability._ground(sandbox, context) as ground:
        trouble, asked = suffer(ground, outage)
    assert trouble.began < trouble.moved < trouble.ended
    verdicts = {name: judge(trouble, each) for name, each in asked.items()}
    for name in OURS:
        assert verdicts[name].late > verdicts[KAZOO].late
        assert verdicts[name].misled < verdicts[CURATOR].misled
    assert verdicts[CURATOR].late > verdicts[KAZOO].late, "it answers from memory"
