"""Benchmark of ``ha checkpoint inspect`` and ``ha checkpoint verify`` on a large one, beside Spark's own answer."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from threading import Timer
from typing import Any

from benchmarks.checkpoints.made import Size, make
from benchmarks.context import Context
from benchmarks.drawing import dotted
from benchmarks.result import Result, at_most

TITLE = "Looking into a checkpoint of 200 partitions, 2 operators and 100 batches"

INSPECT, VERIFY, SPARK = "ha checkpoint inspect", "ha checkpoint verify", "Spark's state-metadata"
INSPECT_WITHIN, VERIFY_WITHIN, READ_WITHIN = 2.0, 10.0, 20.0

ANSWERS_WITHIN_S = 1800.0  # A command that takes longer hangs
QUICK_SIZE = Size(partitions=4, batches=20, table_bytes=1000)

ASK_SPARK = """
import sys
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.log.level": "OFF"}
spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
assert spark.read.format("state-metadata").load(sys.argv[1]).collect()
spark.stop()
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """One process: seconds until it ended, and seconds of processor time of it and of those that it waited for."""

    wall: float
    cpu: float


def run(context: Context) -> Result:
    size = QUICK_SIZE if context.quick else Size()
    place = context.folder / "checkpoint"
    context.say("Making the checkpoint")
    made = make(place, size)
    uri = place.as_uri()
    ha = [sys.executable, "-m", "ha.cli"]
    commands = {
        INSPECT: [*ha, "checkpoint", "inspect", uri, "--json"],
        VERIFY: [*ha, "checkpoint", "verify", uri, "--json"],
        SPARK: [sys.executable, "-c", ASK_SPARK, uri],
    }
    found: dict[str, list[Asked]] = {name: [] for name in commands}
    for number in range(context.repeats()):
        context.say(f"Round {number + 1}")
        for name, command in commands.items():
            found[name].append(ask(command)[0])
    said = json.loads(ask(commands[INSPECT])[1])[0]
    return summarise(found, made, said)


def ask(command: Sequence[str]) -> tuple[Asked, bytes]:
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            overdue = Timer(ANSWERS_WITHIN_S, process.kill)  # then what it says ends, and so does it
            overdue.start()
            assert process.stdout is not None
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            overdue.cancel()
            process.kill()
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}.")
    return Asked(time.perf_counter() - began, used.ru_utime + used.ru_stime), said


def summarise(found: dict[str, list[Asked]], made: dict[str, int], said: dict[str, Any]) -> Result:
    wall = {name: median(each.wall for each in rounds) for name, rounds in found.items()}
    rows = tuple(
        (name, wall[name], max(each.wall for each in rounds), median(each.cpu for each in rounds))
        for name, rounds in found.items()
    )
    read_mb = said["bytes_read"] / 1e6
    return Result(
        ("command", "s", "slowest, s", "processor time, s"),
        rows,
        (
            at_most(INSPECT, INSPECT_WITHIN, wall[INSPECT], "s"),
            at_most(f"{INSPECT} reads", READ_WITHIN, read_mb, "MB"),
            at_most(VERIFY, VERIFY_WITHIN, wall[VERIFY], "s"),
        ),
        (
            f"The checkpoint has {made['files']:,} files of {made['bytes'] / 1e9:.1f} GB on a local disk.",
            f"{INSPECT} reads {said['reads']:,} files. Medians of whole processes, with the start of Python.",
            f"{SPARK} is asked in a fresh session; its processor time leaves out the JVM, which Python does not await.",
        ),
        (dotted("commands", TITLE, "s", {name: [e.wall for e in rounds] for name, rounds in found.items()}),),
        {"made": made, "read": said["bytes_read"], **{name: [asdict(e) for e in each] for name, each in found.items()}},
    )
