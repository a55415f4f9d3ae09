"""Senders of a shard that stop at a point: in a thread until they may go on, or in a process that freezes or dies."""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, Producer, TopicPartition

from ha.kafka import shard as sending
from ha.kafka.shard import Sent, Shard, send
from tests.patience import PATIENCE_S

POINTS = ("made", "init", "marker", "row", "rows", "offsets", "commit")
"""Where a sender stops: before it begins, after each step, and in the call that commits."""


def shard_of(brokers: str, topic: str, folder: Path, batch: int, count: int = 10, number: int = 0) -> Shard:
    """Write the rows of a shard as Spark does; they say their batch and their place in it."""
    name = f"part-{batch}-{number}.parquet"
    keys = [f"{batch}".encode()] * count
    values = [f"{number}:{batch}.{each}".encode() for each in range(count)]
    pq.write_table(pa.table({"key": keys, "value": values}), folder / name)
    return Shard(brokers, topic, "", "ha/orders/out", number, batch, folder.as_uri(), name)


def stopping_at(point: str, stop: Callable[[], object]) -> type[Producer]:
    """Return a producer that stops at a point, once."""

    class Stopping(Producer):
        rows = 0

        def _at(self, name: str) -> None:
            if name == point and self.rows >= 0:
                self.rows = -1000
                stop()

        def init_transactions(self, *more: Any) -> None:
            self._at("made")
            super().init_transactions(*more)
            self._at("init")

        def begin_transaction(self, *more: Any) -> None:
            self._at("marker")
            super().begin_transaction(*more)

        def produce(self, *more: Any, **others: Any) -> None:
            super().produce(*more, **others)
            self.rows += 1
            if self.rows == 3:
                self.flush(5)  # the broker has them
                self._at("row")

        def send_offsets_to_transaction(self, *more: Any) -> None:
            self._at("rows")
            super().send_offsets_to_transaction(*more)
            self._at("offsets")

        def commit_transaction(self, *more: Any) -> None:
            if point == "commit":
                threading.Timer(0.002, stop).start()
            super().commit_transaction(*more)

    return Stopping


def zombie(shard: Shard, point: str) -> tuple[Callable[[], object], Callable[[], Sent]]:
    """Start a sender in a thread that stops at a point; return what waits for that, and what lets it go on."""
    there, on, done = threading.Event(), threading.Event(), list[Sent]()

    def stop() -> None:
        there.set()
        on.wait(PATIENCE_S)

    def work() -> None:
        done.append(_send_with(shard, stopping_at(point, stop)))
        there.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def go_on() -> Sent:
        on.set()
        thread.join(PATIENCE_S)
        return done[0]

    return lambda: there.wait(PATIENCE_S), go_on


def _send_with(shard: Shard, producer: type[Producer]) -> Sent:
    _producers[threading.get_ident()] = producer
    try:
        return send(shard)
    finally:
        del _producers[threading.get_ident()]


_producers: dict[int, type[Producer]] = {}
_plain = Producer


def _made(settings: dict[str, str]) -> Producer:
    return _producers.get(threading.get_ident(), _plain)(settings)


def records(brokers: str, topic: str, partitions: int = 1) -> list[list[str]]:
    """Read each partition as a reader of committed records does, to its end."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "reader", "isolation.level": "read_committed"})
    found = []
    try:
        for each in range(partitions):
            values: list[str] = []
            consumer.assign([TopicPartition(topic, each, 0)])
            quiet = 0
            while quiet < 3:
                message = consumer.poll(1.0)
                if message is None:
                    quiet += 1
                elif message.error() is None:
                    values.append((message.value() or b"").decode())
            found.append(values)
    finally:
        consumer.close()
    return found


def main() -> None:
    """Send a shard, and freeze or kill this process at a point."""
    point, how, said = sys.argv[1:]
    shard: Shard = pickle.loads(bytes.fromhex(said))  # noqa: S301  # as Spark's tasks get it

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGSTOP if how == "frozen" else signal.SIGKILL)

    sys.stdout.write(msgspec.json.encode(_send_with(shard, stopping_at(point, stop))).decode())


setattr(sending, "Producer", _made)  # noqa: B010  # a process that imports this module has senders stop

if __name__ == "__main__":
    main()
