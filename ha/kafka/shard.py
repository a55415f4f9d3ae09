"""Shard: sends a part of a decided batch to a topic exactly once, from whatever process, by one transaction.

The transaction has the rows and a marker, which is an offset that a group of consumers commits. The order is the proof:
``init_transactions`` ends what an earlier process has begun; then the marker is read, by a reader that waits for
transactions; then rows are sent. A process that was frozen in between finds its producer fenced. See decision 89.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ha.kafka.clients import TIMEOUT_S, client_settings, reason
from leader.errors import InvalidSettings
from store.errors import StoreError
from store.open import open_files

MOST_BYTES = 1 << 30  # longest file of a shard: it is in the memory of its task
READ_S = 120.0  # time to read it

DEFAULTS = {"transaction.timeout.ms": "120000", "partitioner": "murmur2_random", "linger.ms": "20", "log_level": "0"}
"""The partitioner is that of Java's producers, so a key stays in its partition."""

LETTER_BYTES = 1000  # bytes of a key and of a value that a dead letter keeps


@dataclass(frozen=True)
class Shard:
    """One shard of a batch."""

    settings: Mapping[str, str] | str | Path  # of the client, or a file of them on the host of the task
    topic: str  # gets the rows
    dead_letters: str  # topic of the rows that the client refuses; empty if there is none
    name: str  # of the output, the same in each epoch
    number: int  # of the shard
    batch: int  # its id in the journal
    root: str  # URI of a file system
    file: str  # path of the rows there

    @property
    def id(self) -> str:
        """Of its producer, and of the group with its marker: brokers take none of a partition that is not there."""
        return f"{self.name}/{self.topic}/{self.number}"

    @property
    def token(self) -> str:
        """What was decided: no other batch has a file of that name."""
        return hashlib.sha256(self.file.rpartition("/")[2].encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sent:
    """What became of a shard: ``again`` if it is not known, and another try finds out."""

    given: bool = False  # whether this call has sent it, and none before
    letters: int = 0  # rows among these that became dead letters
    error: str = ""  # a sentence; empty if the rows are in the topic
    again: bool = False  # whether another try may help


def send(shard: Shard) -> Sent:
    """Send a shard, unless it was sent before."""
    try:
        settings = {**DEFAULTS, **client_settings(shard.settings)}
        own = {"transactional.id": shard.id, "enable.idempotence": "true"}
        producer = Producer({**settings, **own})
    except (InvalidSettings, KafkaException, ValueError) as error:
        return Sent(error=f"The settings of Kafka's client are refused: {reason(error)}")
    try:
        producer.init_transactions(TIMEOUT_S)
        return _send(producer, shard, settings)
    except (KafkaException, StoreError) as error:
        with suppress(KafkaException):
            producer.abort_transaction(1.0)  # so that readers need not wait
        error.with_traceback(None)  # its frames would keep the producer, with threads and connections
        return Sent(error=f"Shard {shard.number} of batch {shard.batch} was not sent: {reason(error)}", again=True)


def _send(producer: Producer, shard: Shard, settings: Mapping[str, str]) -> Sent:
    reader = {each: value for each, value in settings.items() if each.startswith(("bootstrap", "s", "log_level"))}
    consumer = Consumer({**reader, "group.id": shard.id, "isolation.level": "read_committed"})
    try:
        place = TopicPartition(shard.topic, 0)
        (marker,) = consumer.committed([place], timeout=TIMEOUT_S)
        if marker.error is not None:
            raise KafkaException(marker.error)
        if marker.offset > shard.batch:
            if (marker.offset, marker.metadata) == (shard.batch + 1, shard.token):
                return Sent()
            return Sent(
                error=f"Topic {shard.topic!r} has batches up to {marker.offset - 1} of {shard.name}, which this "
                f"journal has not published: batch {shard.batch} would be taken for one of them."
            )
        producer.begin_transaction()
        sending = _Sending(producer, shard)
        for row in read_rows(shard):
            sending.send(row)
        done = TopicPartition(shard.topic, 0, shard.batch + 1, metadata=shard.token)
        producer.send_offsets_to_transaction([done], consumer.consumer_group_metadata(), TIMEOUT_S)
        if sending.poison:
            producer.abort_transaction(TIMEOUT_S)
            return Sent(error=sending.poison)
        producer.commit_transaction(TIMEOUT_S)
        return Sent(given=True, letters=sending.letters)
    finally:
        consumer.close()


class _Sending:
    """The rows of one transaction.

    Attributes:
        letters: how many were refused, and sent as dead letters.
        poison: says which one was refused, if there is no topic for them.
    """

    def __init__(self, producer: Producer, shard: Shard) -> None:
        self._producer, self._shard = producer, shard
        self.letters, self.poison = 0, ""

    def send(self, row: Mapping[str, Any]) -> None:
        try:
            self._produce(self._shard.topic, row)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            letter = _letter(row, self._shard, reason(error))
            self.letters += 1
            if self._shard.dead_letters:
                self._produce(self._shard.dead_letters, {"key": None, "value": letter})
            else:
                self.poison = self.poison or (
                    f"A row of batch {self._shard.batch} cannot be sent: {letter.decode()} Give the topic "
                    "dead_letters, or a larger message.max.bytes: the batch is decided, and is completed then."
                )

    def _produce(self, topic: str, row: Mapping[str, Any]) -> None:
        headers = [(each["key"], each["value"]) for each in row.get("headers") or ()]
        more = {"timestamp": row["timestamp"]} if row.get("timestamp") is not None else {}
        while True:
            try:
                self._producer.produce(topic, row["value"], row.get("key"), headers=headers, **more)
            except BufferError:
                self._producer.poll(0.1)  # message.timeout.ms ends that if the brokers are gone
            else:
                self._producer.poll(0)
                return


def _letter(row: Mapping[str, Any], shard: Shard, why: str) -> bytes:
    texts = {each: (row.get(each) or b"")[:LETTER_BYTES].decode(errors="replace") for each in ("key", "value")}
    said = {"topic": shard.topic, "batch": shard.batch, "why": why, "bytes": len(row["value"] or b""), **texts}
    return msgspec.json.encode(said)


def read_rows(shard: Shard) -> Iterator[dict[str, Any]]:
    """Yield the rows of a shard, in the order in which they were staged."""
    files = open_files(shard.root)
    try:
        data = files.call("shard", lambda each: each.read(shard.file, MOST_BYTES), READ_S)
    finally:
        files.close()
    for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches(10_000):
        yield from batch.to_pylist()
