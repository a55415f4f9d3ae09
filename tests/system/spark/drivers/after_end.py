"""Programs of five shapes in one driver, which leads, ends in some way, and goes on trying: after_end.py FOLDER.

It takes its orders from files in FOLDER, and writes what happens into one of them, in order: rows, starts, ends, and
starts that are refused. With HA_SPARK_JVM it imports nothing of ``ha``, and never ends by itself.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.system.spark.conftest import SETTINGS

PAUSE_S = 0.1  # of the loops, which must never stay down


class Program:
    """The shapes, over one source; each writes to a place of its own."""

    def __init__(self, spark: SparkSession, folder: Path, target: str) -> None:
        self.spark, self._folder, self._target = spark, folder, target
        self.over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._events = os.open(folder / "events", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, what: str) -> None:
        os.write(self._events, f"{what}\n".encode())

    def ordered(self, what: str) -> None:
        """Wait for an order."""
        while not (self._folder / what).exists():
            self.over.wait(PAUSE_S)
            if self.over.is_set():
                raise TimeoutError(what)

    def begin(self) -> None:
        for shape, run in (
            ("plain", self._once),
            ("loop", self._never_down),
            ("session", self._once),
            ("later", self._later),
            ("format", self._once),
        ):
            self._threads.append(threading.Thread(target=run, args=(shape,), name=shape, daemon=True))
            self._threads[-1].start()

    def end(self) -> None:
        self.over.set()
        for query in list(self.spark.streams.active):
            query.stop()
        for each in self._threads:
            each.join(60)
        os.close(self._events)

    def _start(self, shape: str) -> StreamingQuery:
        session = self.spark.newSession() if shape == "session" else self.spark
        lines = session.readStream.text((self._folder / "in").as_uri()).writeStream.queryName(shape)
        if shape == "format":
            query = lines.format("ha").option("format", "text").option("path", f"{self._target}/format").start()
        else:
            query = lines.foreachBatch(self._sink(shape)).start()
        self.note(f"started {shape}")
        return query

    def _sink(self, shape: str) -> Callable[[DataFrame, int], None]:
        place = (self._folder / "out" / shape).as_uri()

        def write(frame: DataFrame, _: int) -> None:
            frame.write.mode("append").text(place)
            self.note(f"row {shape}")

        return write

    def _once(self, shape: str) -> None:
        try:
            self._start(shape).awaitTermination()
            self.note(f"ended {shape}")
        except Exception as error:  # noqa: BLE001  # whatever happens
            self.note(f"failed {shape} {type(error).__name__} {error}".replace("\n", " "))

    def _never_down(self, shape: str) -> None:
        while not self.over.is_set():
            try:
                self._start(shape).awaitTermination()
                self.note(f"ended {shape}")
            except Exception as error:  # noqa: BLE001  # whatever happens
                self.note(f"refused {shape} {type(error).__name__}")
            self.over.wait(PAUSE_S)

    def _later(self, shape: str) -> None:
        self.ordered("later")
        self._never_down(shape)


class LeftByErrorError(Exception):
    pass


def lead(program: Program, said: dict[str, Any]) -> None:
    """Lead in the block, end in the way that is ordered, and leave the block when that is ordered."""
    import ha.spark  # noqa: PLC0415  # `--spark` is for programs that do not

    with ha.spark.lead(said["job"], program.spark, **said["settings"]) as leadership:
        program.note(f"leads {leadership.directory}")
        program.begin()
        program.ordered("end")
        if said["way"] == "rebuilt":
            program.spark.stop()
            program.spark = session()
            program.note("rebuilt")
            program.begin()
            program.ordered("resign")
        if said["way"] in ("resigned", "rebuilt"):
            leadership.resign()
        if said["way"] == "raised":
            raise LeftByErrorError
        if said["way"] != "left":
            program.ordered("leave")


def session() -> SparkSession:
    return SparkSession.builder.master("local[2]").config(map=dict(SETTINGS)).getOrCreate()


def main(folder: Path) -> None:
    number, spark = 0, session()
    while True:
        place = folder / str(number)
        waiting = threading.Event()
        while not (place / "order").exists():
            waiting.wait(PAUSE_S)
        said = json.loads((place / "order").read_text())
        program = Program(spark, place, said["target"])
        with ExitStack() as stack:
            stack.callback(program.end)
            program.note(f"pid {os.getpid()}")
            if "HA_SPARK_JVM" in os.environ:
                program.begin()
            else:
                try:
                    lead(program, said)
                except Exception as error:  # noqa: BLE001  # it is what the way says
                    program.note(f"block {type(error).__name__} {error}".replace("\n", " "))
                program.note("outside")
            program.ordered("over")
        spark = program.spark
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
