"""Stateful examples, run as users run them: the leader's driver is killed, and no row is lost or doubled."""

import importlib
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import ha
from tests.patience import DRIVER_S, PATIENCE_S
from tests.system.spark.example import EXAMPLES, Example, driver_of
from tests.system.spark.helpers import eventually, rows

pytestmark = [
    pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(1200),
    pytest.mark.usefixtures("sandbox"),
]  # fmt: skip

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FILES, GAP_S, WITHIN_S, LATE_S = 6, 1800, 600, 600


def moment(seconds: float) -> str:
    return (BEGIN + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lines(events: list[dict[str, str]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in events)


def published(example: Example) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for batch in rows(example.output).values() for row in batch)


@contextmanager
def closing_words(example: Example) -> Iterator[None]:
    try:
        yield
    finally:
        example.tell()


@contextmanager
def survives(example: Example, add: Callable[[int], None], end: Callable[[], None]) -> Iterator[None]:
    """Run the example on two sidecars, kill the leader's driver between batches or in one, and let the other finish."""
    for number in range(FILES // 2):
        add(number)
    with (
        closing_words(example),
        example.sidecar("first") as first,
        ha.connect(files=example.files, zookeeper=example.zookeeper) as client,
    ):
        eventually(lambda: len(example.batches()) >= 2, DRIVER_S)
        with example.sidecar("second") as second:
            before = eventually(lambda: example.leader(client))
            assert before is not None
            os.kill(driver_of(first), signal.SIGKILL)
            for number in range(FILES // 2, FILES):
                add(number)
            end()
            example.stop()
            assert second.wait(DRIVER_S) == 0
            assert first.wait(PATIENCE_S) == 0, "it finds the job finished"
            batches = len(example.batches())
            assert list(client.checkpoint(example.job).queries.values()) == [batches - 1]
            yield
    assert sorted(rows(example.output)) == sorted(f"batch={number}" for number in range(batches))


def test_sessions_are_those_of_a_plain_program(hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path) -> None:
    choose = random.Random(11)  # noqa: S311
    example = Example("sessions.py", hdfs_uri, zookeeper_hosts, tmp_path, "--max-files", "1", "--gap", str(GAP_S))
    seen: dict[str, list[float]] = {}

    def add(number: int) -> None:
        events = []
        for _ in range(60):
            # The last ones of a file come after the first ones of the next.
            user, at = f"user-{choose.randrange(12)}", (number + choose.uniform(0.0, 1.1)) * 3600
            at = round(at, 3)
            seen.setdefault(user, []).append(at)
            events.append({"user": user, "at": moment(at)})
        example.add(lines(events))

    with survives(example, add, lambda: example.add(lines([{"user": "nobody", "at": moment(90 * 86400)}]))):
        pass
    assert published(example) == Counter(plain_sessions(seen))


def plain_sessions(seen: dict[str, list[float]]) -> list[str]:
    found = []
    for user, times in seen.items():
        session: list[float] = []
        for at in [*sorted(times), float("inf")]:
            if session and at - session[-1] >= GAP_S:
                row = {"user": user, "first": moment(session[0]), "last": moment(session[-1]), "events": len(session)}
                found.append(json.dumps(row, sort_keys=True))
                session = []
            session.append(at)
    return found


def test_a_join_is_that_of_tables(
    spark: SparkSession, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = random.Random(13)  # noqa: S311
    options = ["--max-files", "1", "--within", str(WITHIN_S), "--late", str(LATE_S)]
    example = Example("join.py", hdfs_uri, zookeeper_hosts, tmp_path, *options)

    def add(number: int) -> None:
        views, clicks = [], []
        for each in range(40):
            name, at = f"view-{number}-{each}", (number + choose.random()) * 600
            views.append({"view": name, "at": moment(at)})
            times = [at + choose.uniform(0, WITHIN_S * 1.2) for _ in range(choose.choice([0, 0, 1, 2]))]
            clicks += [{"view": name, "at": moment(time)} for time in times]  # some come too late to count
        example.add(lines(views), folder="views")
        example.add(lines(clicks), folder="clicks")

    def end() -> None:
        for folder in ("views", "clicks"):
            example.add(lines([{"view": "the end", "at": moment(90 * 86400)}]), folder=folder)

    with survives(example, add, end):
        pass
    monkeypatch.syspath_prepend(EXAMPLES)
    assert published(example) == Counter(joined_as_tables(spark, example))


def joined_as_tables(spark: SparkSession, example: Example) -> list[str]:
    join = importlib.import_module("join")
    views, clicks = (spark.read.schema(join.EVENT).json(f"{example.input}/{name}") for name in ("views", "clicks"))
    found = join.clicked(views, clicks, WITHIN_S, LATE_S).select(sql.to_json(sql.struct("*"), {"timeZone": "UTC"}))
    return [json.dumps(json.loads(row[0]), sort_keys=True) for row in found.collect()]
