"""Shards of a batch with a real Kafka: senders die, freeze and race at every point; each row is there once."""

import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ha.kafka.clients import TopicPlaces
from ha.kafka.shard import Sent, Shard, send
from ha.sandbox import Sandbox
from leader.errors import LeaderError
from tests.limits import killed
from tests.system.integration.shard_races import POINTS, records, shard_of, zombie

pytestmark = [pytest.mark.hdfs, pytest.mark.slow, pytest.mark.timeout(600)]

RACES = int(os.environ.get("HA_RACES", "8"))


@pytest.fixture(scope="module")
def brokers(sandbox: Sandbox) -> str:
    sandbox.up(kafka=True)
    return sandbox.environment()["HA_SANDBOX_KAFKA"]


@pytest.fixture
def topic(brokers: str) -> str:
    return create(brokers, f"out-{uuid.uuid4().hex[:8]}")


def create(brokers: str, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": brokers})  # which has to live until it has the answer
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)
    return name


def rows(*batches: int, number: int = 0) -> list[str]:
    return [f"{number}:{batch}.{each}" for batch in batches for each in range(10)]


def sent(shard: Shard) -> Sent:
    """Send until it is known, as the driver does."""
    for _ in range(5):
        found = send(shard)
        if not found.again:
            return found
    raise AssertionError(found.error)


@pytest.mark.parametrize("how", ["killed", "frozen"])
@pytest.mark.parametrize("point", POINTS)
def test_a_process_that_dies_or_freezes_doubles_nothing(
    brokers: str, topic: str, tmp_path: Path, point: str, how: str
) -> None:
    first, second = (shard_of(brokers, topic, tmp_path, batch) for batch in (0, 1))
    assert sent(first).given
    words = [sys.executable, "-m", "tests.system.integration.shard_races", point, how]
    with killed(subprocess.Popen([*words, pickle.dumps(second).hex()], stdout=subprocess.PIPE)) as child:
        if how == "frozen":
            _, status = os.waitpid(child.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
        else:
            assert child.wait(60) == -signal.SIGKILL
        found = sent(second)
        assert (found.error, found.given or point == "commit") == ("", True)
        if how == "frozen":
            child.send_signal(signal.SIGCONT)
            out, _ = child.communicate(timeout=90)
            assert child.returncode == 0, "a fence is an answer, and no end of the process"
            woken = msgspec.json.decode(out, type=Sent)
            assert not (woken.given and found.given), "one of the two has sent it"
            assert woken.given or woken.again or woken == Sent(), "it looks again, or has found the marker"
    assert sent(second) == Sent(), "it is known"
    assert records(brokers, topic) == [rows(0, 1)]


def test_a_late_commit_doubles_nothing(brokers: str, topic: str, tmp_path: Path) -> None:
    """A zombie waits at a drawn point until its successor has committed; with 1,000 rounds: HA_RACES=125."""
    draw = random.Random(7)  # noqa: S311
    lanes = 8
    points = [[draw.choice(POINTS[:-1]) for _ in range(RACES)] for _ in range(lanes)]

    def lane(number: int) -> list[bool]:
        won = []
        for batch, point in enumerate(points[number]):
            shard = shard_of(brokers, topic, tmp_path, batch, number=number)
            stopped, go_on = zombie(shard, point)
            stopped()
            found = sent(shard)
            won.append(found.given)
            woken = go_on()
            assert not (found.given and woken.given), (number, batch, point)
        return won

    with ThreadPoolExecutor(lanes) as crew:
        won = [each for lane_won in crew.map(lane, range(lanes)) for each in lane_won]
    assert all(won), "the successor was first"
    (found,) = records(brokers, topic)
    for number in range(lanes):
        assert [each for each in found if each.startswith(f"{number}:")] == rows(*range(RACES), number=number)
    print(f"{len(won)} late commits, {len(found)} rows")  # noqa: T201


def test_numbers_that_another_journal_has_given_are_refused(brokers: str, topic: str, tmp_path: Path) -> None:
    """A job that was deleted and begins again counts from 0: its rows would be taken for known ones."""
    assert sent(shard_of(brokers, topic, tmp_path, 7)).given
    other = replace(shard_of(brokers, topic, tmp_path, 7), file="part-other.parquet")
    for shard in (other, replace(other, batch=3)):
        found = send(shard)
        assert (found.given, found.again) == (False, False)
        assert "has batches up to 7 of ha/orders/out, which this journal has not published" in found.error
    assert records(brokers, topic) == [rows(7)]


def test_headers_timestamps_and_keys_are_those_of_the_rows(brokers: str, topic: str, tmp_path: Path) -> None:
    headers = [[{"key": "trace", "value": b"1"}, {"key": "trace", "value": None}], None]
    table = {"key": [b"k", None], "value": [b"v", None], "headers": headers, "timestamp": [1_700_000_000_000, None]}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    assert sent(replace(shard_of(brokers, topic, tmp_path, 0), file="rows.parquet")).given
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "x", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    first, second = (consumer.poll(30) for _ in range(2))
    consumer.close()
    assert first is not None
    assert second is not None
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"k", b"v", 1_700_000_000_000)
    assert first.headers() == [("trace", b"1"), ("trace", None)]
    assert (second.key(), second.value(), second.headers()) == (None, None, None)


def test_a_row_that_is_too_large_is_a_dead_letter_once(brokers: str, topic: str, tmp_path: Path) -> None:
    values = [b"a", b"x" * 2_000_000, b"b"]
    pq.write_table(pa.table({"key": [b"k"] * 3, "value": values}), tmp_path / "rows.parquet")
    shard = replace(shard_of(brokers, topic, tmp_path, 0), file="rows.parquet")
    found = send(shard)
    assert (found.given, found.again, found.letters) == (False, False, 0)
    assert '"bytes":2000000' in found.error
    assert "Give the topic dead_letters" in found.error
    assert records(brokers, topic) == [[]], "nothing of the batch is there"
    dead = create(brokers, f"{topic}.dead")
    mended = replace(shard, dead_letters=dead)
    found = sent(mended)
    assert (found.given, found.letters) == (True, 1)
    assert sent(mended) == Sent()
    assert records(brokers, topic) == [["a", "b"]]
    ((letter,),) = records(brokers, dead)
    assert '"topic":"out-' in letter
    assert len(letter) < 2000


def test_a_sender_that_fails_leaves_no_threads_behind(brokers: str, topic: str, tmp_path: Path) -> None:
    """Found with 1,000 races in a process: each failure kept its producer until the next collection of cycles."""
    lost = replace(shard_of(brokers, topic, tmp_path, 0), file="gone.parquet")
    gc.disable()
    try:
        assert send(lost).again
        before = len([*Path("/proc/self/task").iterdir()])
        for _ in range(3):
            assert "No such file" in send(lost).error
        assert len([*Path("/proc/self/task").iterdir()]) < before + 4
    finally:
        gc.enable()


def test_what_cannot_be_reached_is_told(tmp_path: Path, brokers: str) -> None:
    with pytest.raises(LeaderError, match="There is no topic 'nowhere' at"):
        TopicPlaces({"bootstrap.servers": brokers}).held("nowhere")
    wrong = replace(shard_of(brokers, "x", tmp_path, 0), settings={"bootstrap.servers": brokers, "sasl.jaas": "x"})
    assert 'No such configuration property: "sasl.jaas"' in send(wrong).error
