"""Topic: what a driver makes of its shards' answers, without Kafka; tests/system/integration has the real one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ha.kafka.shard import Sent, Shard
from ha.leadership import fenced_rename
from ha.leadership.leadership import Leadership
from ha.outputs.reading import JournalReader
from ha.spark.outputs import publisher
from ha.spark.outputs import topic as module
from ha.spark.outputs.topic import TRIES, Topic
from leader.errors import Fenced, InvalidSettings, LeaderError, OutputLost
from store.errors import Unknown
from tests.system.spark.batches import Batch, left
from tests.system.spark.helpers import leading

pytestmark = pytest.mark.slow


class Rows(Batch):
    """A frame whose shards are files."""

    columns = ("key", "value")

    def repartition(self, *_: object) -> "Rows":
        return self

    coalesce = repartition

    def selectExpr(self, *_: object) -> "Rows":  # noqa: N802
        return self

    sortWithinPartitions = selectExpr  # noqa: N815


class Brokers:
    """What tasks answer: given, unless the test says otherwise."""

    def __init__(self) -> None:
        self.answers: list[Callable[[Shard], Sent]] = []
        self.asked: list[Shard] = []

    def send(self, shard: Shard) -> Sent:
        self.asked.append(shard)
        return self.answers.pop(0)(shard) if self.answers else Sent(given=True)

    def held(self, topic: str) -> dict[int, object]:
        if topic == "nowhere":
            raise LeaderError("There is no topic 'nowhere'.")
        return {}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(module, "send", made.send)
    monkeypatch.setattr(module, "TopicPlaces", lambda _: made)
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    monkeypatch.setattr(publisher, "evaluate", lambda _: None)
    monkeypatch.setattr(Topic, "_sent", lambda _, shards: [made.send(each) for each in shards])
    return made


@pytest.fixture
def leadership(tmp_path: Path) -> Iterator[Leadership]:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        yield leadership


def topic_of(leadership: Leadership, **more: Any) -> Topic:
    return Topic(leadership, "words", options="kafka:9092", **more)


def again(_: Shard) -> Sent:
    return Sent(error="It was fenced.", again=True)


def test_a_batch_is_decided_and_then_given_to_its_shards(leadership: Leadership, brokers: Brokers) -> None:
    with topic_of(leadership, shards=3, dead_letters="dead") as topic:
        assert topic.write(Rows("a"), 0)  # type: ignore[arg-type]
        assert not topic.write(Rows("b"), 0), "it is known"  # type: ignore[arg-type]
        assert topic.write(Rows("c"), 1)  # type: ignore[arg-type]
    assert [(each.batch, each.number, each.name, each.topic) for each in brokers.asked] == [
        (0, 0, "ha/orders/output", "words"),
        (1, 0, "ha/orders/output", "words"),
    ]
    (output,) = JournalReader(lambda: leadership.own).outputs()
    assert (output.place, output.unfinished) == ("kafka words", [])
    assert left(leadership) == []


def test_a_fenced_producer_looks_at_the_leader_directory_and_tries_again(
    leadership: Leadership, brokers: Brokers
) -> None:
    brokers.answers = [again, again]
    with topic_of(leadership) as topic:
        assert topic.write(Rows("a"), 0)  # type: ignore[arg-type]
    assert len(brokers.asked) == 3


def test_a_driver_that_was_replaced_stops(leadership: Leadership, brokers: Brokers) -> None:
    def replaced(_: Shard) -> Sent:
        home = Path(leadership.directory.removeprefix("file://"))
        home.rename(home.parent / "elsewhere")
        return Sent(error="It was fenced.", again=True)

    brokers.answers = [replaced]
    with topic_of(leadership) as topic, pytest.raises(Fenced):
        topic.write(Rows("a"), 0)  # type: ignore[arg-type]
    assert len(brokers.asked) == 1
    home = Path(leadership.directory.removeprefix("file://"))
    (home.parent / "elsewhere").rename(home)


def test_what_is_not_known_is_completed_by_the_next_one(leadership: Leadership, brokers: Brokers) -> None:
    with topic_of(leadership) as topic:
        brokers.answers = [again] * TRIES
        with pytest.raises(Unknown, match=r"It was fenced\. It is tried again"):
            topic.write(Rows("a"), 0)  # type: ignore[arg-type]
    first = brokers.asked[0]
    with topic_of(leadership, shards=7) as topic:
        assert msgspec.to_builtins(brokers.asked[-1]) == msgspec.to_builtins(first), "with the shards that it had"
        assert not topic.write(Rows("b"), 0)  # type: ignore[arg-type]


def test_what_can_never_be_sent_stops_the_query_with_its_reason(leadership: Leadership, brokers: Brokers) -> None:
    brokers.answers = [lambda _: Sent(error="A row is too large.")]
    with topic_of(leadership) as topic, pytest.raises(OutputLost, match="Output 'output': A row is too large"):
        topic.write(Rows("a"), 0)  # type: ignore[arg-type]
    with topic_of(leadership, dead_letters="dead"):
        assert brokers.asked[-1].dead_letters == "dead", "then it is completed"


def test_what_is_wrong_is_told_at_the_start(leadership: Leadership, brokers: Brokers) -> None:
    assert brokers is not None
    for shards in (0, 1001):
        with pytest.raises(InvalidSettings, match="1 to 1000 shards"):
            topic_of(leadership, shards=shards)
    with pytest.raises(LeaderError, match="no topic 'nowhere'"):
        Topic(leadership, "nowhere", options="kafka:9092")
    with pytest.raises(InvalidSettings, match="brokers are not named"):
        Topic(leadership, "words")
    with topic_of(leadership, order=["at"]) as topic, pytest.raises(InvalidSettings, match="has no column 'at'"):
        topic.write(Rows("a"), 0)  # type: ignore[arg-type]
    with topic_of(leadership, key="by") as topic, pytest.raises(InvalidSettings, match="has no column 'by': it needs"):
        topic.write(Rows("a"), 0)  # type: ignore[arg-type]
    strange = Rows("a")
    strange.columns = ("value", "partition")
    with topic_of(leadership) as topic, pytest.raises(InvalidSettings, match="has a column 'partition'"):
        topic.write(strange, 0)  # type: ignore[arg-type]
