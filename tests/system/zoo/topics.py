"""Kafka topics of one run: fed like the input directories, and read as a consumer does that reads all."""

import json
import os

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.system.zoo.places import Places, events

PARTITIONS = 2


def feed(places: Places, count: int, topics: str = "a") -> None:
    """Write the next events, in turn to these topics; the topics are made before the first one."""
    brokers: dict[str, str | int | float | bool] = {"bootstrap.servers": os.environ["HA_SANDBOX_KAFKA"]}
    if not places.fed:
        admin = AdminClient(brokers)
        wanted = [f"{places.name}-a", f"{places.name}-b", f"{places.name}.out"]
        for future in admin.create_topics([NewTopic(each, PARTITIONS, 1) for each in wanted]).values():
            future.result(60)
    producer = Producer({**brokers, "acks": "all"})
    for number in range(places.fed, places.fed + count):
        for event in events(number):
            producer.produce(f"{places.name}-{topics[number % len(topics)]}", json.dumps(event).encode())
    assert producer.flush(60) == 0, "the broker has all of them"
    places.fed += count


def read(places: Places) -> list[str]:
    consumer = Consumer({"bootstrap.servers": os.environ["HA_SANDBOX_KAFKA"], "group.id": "zoo"})
    rows = []
    try:
        for number in range(PARTITIONS):
            part = TopicPartition(f"{places.name}.out", number, 0)
            end = consumer.get_watermark_offsets(part, timeout=20)[1]
            consumer.assign([part])
            offset = 0
            while offset < end:
                record = consumer.poll(20)
                assert record is not None
                offset = (record.offset() or 0) + 1
                rows.append((record.value() or b"").decode())
    finally:
        consumer.close()
    return rows
