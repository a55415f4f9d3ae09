"""What is read of a function of foreachBatch: what it can only write with outputs of ours, and all that is in doubt."""

# Functions as people write them.
# ruff: noqa: ARG002, ARG005, N812, PLC0415, PTH123, S605, S607, SIM115, T201, UP017
# mypy: disable-error-code="name-defined, func-returns-value"

import functools
import io
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pyspark.sql.functions as F
import pytest
from pyspark.sql.readwriter import DataFrameWriter

from ha.hook import batch_functions

_log = logging.getLogger(__name__)


class Output:
    def __call__(self, *_: object) -> Any: ...
    def write(self, *_: object) -> Any: ...


Output.__module__ = "ha.spark.outputs.output"
here, other = Output(), Output()
registry: dict[str, Any] = {"a": here}
seen: defaultdict[str, int] = defaultdict(int)


@dataclass
class Pipeline:
    """A program's class: one method of it appends, which is no matter of a query that is given another."""

    output: Any
    dead: Any = None

    def good(self, rows: Any, batch: int) -> None:
        with _measured("good"):
            self._checked(rows, batch)
            self.sink.write(rows.where(self.condition()), batch)

    __call__ = good

    def _checked(self, rows: Any, batch: int) -> None:
        if rows.isEmpty():
            _log.warning("batch %d is empty at %s", batch, datetime.now(timezone.utc))

    @property
    def sink(self) -> Any:
        return self.output

    @staticmethod
    def condition() -> str:
        return "value > 1"

    def bad(self, rows: Any, batch: int) -> None:
        self.output.write(rows, batch)
        self._append(rows)

    def _append(self, rows: Any) -> None:
        rows.write.mode("append").saveAsTable("t")


class Base:
    output = here

    def __call__(self, rows: Any, batch: int) -> None:
        rows.write.insertInto("t")


class Derived(Base):
    def __call__(self, rows: Any, batch: int) -> None:
        self.output.write(rows, batch)
        super().__call__(rows, batch)


class Measured:
    """What it did when it was made is done no more."""

    limit: int

    def __init__(self, limit: int) -> None:
        vars(self)["limit"] = limit

    def __enter__(self) -> int:
        return self.limit

    def __exit__(self, *_: object) -> None:
        _log.info("%d", self.limit)


measured = Measured(7)


def in_its_context(rows: Any, batch: int) -> None:
    with measured as limit:
        here.write(rows.limit(limit), batch)


@contextmanager
def _measured(name: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    seen[name] += 1
    print(json.dumps({name: time.monotonic() - begun}), file=sys.stderr)


def cached(rows: Any, batch: int) -> None:
    """What the guides do in a batch."""
    rows.persist()
    try:
        _log.info("batch %d has %d rows", batch, rows.count())
        here.write(rows.where(F.col("value").isNotNull() & (rows.value > 1)), batch)
        other.write(rows.groupBy("user").agg(F.max("at").alias("text")).withColumn("day", F.to_date("at")), batch)
    finally:
        rows.unpersist()


def joined(rows: Any, batch: int) -> None:
    known = rows.sparkSession.read.parquet(f"{os.environ['BASE']}/known")
    here.write(rows.join(known, "id", "left").dropDuplicates(["id"]).drop("_x"), batch)


def imports(rows: Any, batch: int) -> None:
    from pyspark.sql import functions
    from pyspark.sql.window import Window

    latest = functions.row_number().over(Window.partitionBy("id").orderBy("at"))
    here.write(rows.withColumn("n", latest), batch)


def chosen(rows: Any, batch: int) -> None:
    for name, output in registry.items():
        output.write(rows.where(f"kind = '{name}'"), batch)


def threads(rows: Any, batch: int) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: each.write(rows, batch), [here, other]))
    thread = threading.Thread(target=here.write, args=(rows, batch))
    thread.start()
    thread.join(10)


def retries(rows: Any, batch: int) -> None:
    for attempt in range(3):
        try:
            here.write(rows, batch)
        except (ConnectionError, TimeoutError) as error:
            _log.exception("attempt %d: %s", attempt, error)
        else:
            return
    raise RuntimeError("given up")


def inside() -> Callable[..., None]:
    output, options = here, SimpleNamespace(column="day", outputs={"late": other})

    def write(rows: Any, batch: int, *, again: bool = False) -> None:
        if not again:
            write(rows, batch, again=True)
        output.write(rows.select(options.column), batch)
        options.outputs["late"].write(rows, batch)

    return write


def decorated(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def timed(*given: Any) -> None:
        begun = time.time()
        function(*given)
        _log.info("%.1f s", time.time() - begun)

    return timed


@functools.lru_cache
def _made() -> Output:
    return Output()


@decorated
def by_decorator(rows: Any, batch: int) -> None:
    here.write(rows, batch)
    _made().write(rows, batch)


@pytest.mark.parametrize(
    "function",
    [
        here, here.write, cached, joined, imports, chosen, threads, retries, inside(), by_decorator, in_its_context,
        Pipeline(here), Pipeline(here).good, functools.partial(lambda output, rows, batch: output(rows, batch), here),
        lambda rows, batch, output=here: output.write(rows.toDF("a").coalesce(1), batch),
    ],
)  # fmt: skip
def test_rows_that_reach_outputs_of_ours_alone_are_in_no_doubt(function: Any) -> None:
    assert batch_functions.read(function) == (True, "")


def _table(rows: Any) -> Any:
    return rows.writeTo("t").append()


def _nested(rows: Any, batch: int) -> None:
    here.write(rows, batch)

    def last() -> None:
        rows.foreachPartition(print)

    last()


def _imports(rows: Any, batch: int) -> None:
    import sqlite3

    here.write(rows, batch)
    sqlite3.connect("orders").execute("INSERT INTO orders VALUES (1)")


def _imports_from(rows: Any, batch: int) -> None:
    from subprocess import run

    here.write(rows, batch)
    run(["true"], check=True, timeout=10)


producer = subprocess.Popen
file = io.TextIOWrapper(io.BytesIO())
encoder = msgspec.json.Encoder()

DOUBTED: list[tuple[Any, str]] = [
    (lambda rows, batch: (here.write(rows, batch), rows.write.mode("append").csv("out")), "csv"),
    (lambda rows, batch: (here.write(rows, batch), rows.write.format("jdbc").save()), "save"),
    (lambda rows, batch: (here.write(rows, batch), rows.write.jdbc("jdbc:x", "t")), "jdbc"),
    (lambda rows, batch: (here.write(rows, batch), rows.write.json("out", mode="append")), "json"),
    (lambda rows, batch: (here.write(rows, batch), rows.sparkSession.sql("INSERT INTO t")), "sql"),
    (lambda rows, batch: (here.write(rows, batch), rows.rdd.saveAsTextFile("out")), "rdd"),
    (lambda rows, batch: (here.write(rows, batch), DataFrameWriter.save(rows.write)), "save"),
    (lambda rows, batch: (here.write(rows, batch), rows._jdf.write().parquet("out")), "_jdf"),
    (lambda rows, batch: (here.write(rows, batch), _table(rows)), "writeTo"),
    (lambda rows, batch: here.write(rows, rows.foreach(print)), "foreach"),
    (lambda rows, batch: [here.write(rows, batch), *rows.collect()], "collect"),
    (lambda rows, batch: (here.write(rows, batch), rows.toPandas()), "toPandas"),
    (lambda rows, batch: (here.write(rows, batch), open("log", "a").write("a")), "open"),
    (lambda rows, batch: (here.write(rows, batch), Path("log").write_text("a")), "pathlib"),
    (lambda rows, batch: (here.write(rows, batch), getattr(rows, "wri" + "te")), "getattr"),
    (lambda rows, batch: (here.write(rows, batch), print(batch, file=file)), "TextIOWrapper"),
    (lambda rows, batch: (here.write(rows, batch), producer(["true"])), "subprocess.Popen"),
    (lambda rows, batch: (here.write(rows, batch), encoder.encode(batch)), "msgspec"),
    (lambda rows, batch: (here.write(rows, batch), os.system("true")), "system"),
    (lambda rows, batch: (here.write(rows, batch), made_later(rows)), "made_later"),  # noqa: F821
    (_nested, "foreachPartition"),
    (_imports, "sqlite3"),
    (_imports_from, "subprocess.run"),
    (decorated(_nested), "foreachPartition"),
    (Pipeline(here).bad, "_append uses saveAsTable"),
    (Derived(), "insertInto"),
    (functools.partial(lambda output, also, rows, batch: also(rows), here, _table), "writeTo"),
    (lambda rows, batch, also=_table: (here.write(rows, batch), also(rows)), "writeTo"),
    (SimpleNamespace(a=here, b=[_table]), "writeTo"),
]


@pytest.mark.parametrize(("function", "says"), DOUBTED)
def test_what_may_write_elsewhere_is_in_doubt(function: Any, says: str) -> None:
    assert says in batch_functions.read(function)[1]


def test_what_cannot_be_looked_at_is_in_doubt() -> None:
    class Odd:
        def __getattribute__(self, name: str) -> Any:
            raise OSError(name)

    odd = Odd()
    assert "OSError" in batch_functions.read(lambda rows, _: here(rows, odd))[1]


def test_each_way_in_which_sparks_writer_writes_is_known() -> None:
    """What PySpark adds is decided upon here."""
    settings = {"mode", "format", "option", "options", "partitionBy", "bucketBy", "sortBy", "clusterBy"}
    public = {name for name in dir(DataFrameWriter) if not name.startswith("_")}
    assert public - settings <= batch_functions.WRITES
