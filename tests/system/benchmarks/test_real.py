"""Quick runs of the benchmarks on real servers: they measure what they claim. No test here depends on timing."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import availability, lookup, publish
from benchmarks.availability.asking import Asked
from benchmarks.availability.contestants import CONTESTANTS, CURATOR, KAZOO, OURS
from benchmarks.availability.outages import Outage, suffer
from benchmarks.context import Context, servers

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

OUTAGE_S = 14.0
"""Seconds. The leader moves halfway; readers then have 7 s to learn of it."""


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
    # An agent without processor time for three seconds lets its snapshot expire.
    assert result.raw[lookup.SNAPSHOT]["answers_from_elsewhere"] <= lookup.CALLS[lookup.SNAPSHOT] // 100


def test_publishing_takes_its_steps_one_after_the_other(context: Context) -> None:
    result = publish.run(context)
    for way in (publish.RPC, publish.WEB):
        steps = [
            result.raw[name + way]["rounds_seconds"][0] for name in (publish.CLAIM, publish.PUBLISHED, publish.COPIED)
        ]
        assert [len(each) for each in steps] == [publish.QUICK_TIMES] * 3
        assert all(claim < published <= copied for claim, published, copied in zip(*steps, strict=True))


def test_in_an_outage_only_ours_learn_of_the_next_leader(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_AUDIT", "6")  # so that readers ask HDFS every 2 s, even after a long time without change
    outage = Outage("ZooKeeper killed", "zookeeper-1", False, OUTAGE_S, True, tuple(CONTESTANTS))
    with servers(context) as sandbox, availability._environment(sandbox, context) as environment:
        trouble, asked = suffer(environment, outage)
    assert trouble.began < trouble.moved < trouble.ended
    # The outage lasts at least until then.
    named = {name: epochs(each, trouble.moved, trouble.began + OUTAGE_S) for name, each in asked.items()}
    for name in OURS:
        assert trouble.epoch in named[name]
    assert named[KAZOO] == set(), "it waits for ZooKeeper"
    assert {epoch < trouble.epoch for epoch in named[CURATOR]} == {True}, "it answers from memory"


def epochs(asked: Sequence[Asked], begin: float, end: float) -> set[int]:
    answers = [(due, due + seconds, epoch) for due, seconds, epoch in asked if seconds is not None]
    return {epoch for due, answered, epoch in answers if begin <= due and answered < end}
