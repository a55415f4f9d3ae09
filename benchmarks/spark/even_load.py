"""Benchmark of even load: batches of a streaming query on a real cluster of Spark, one of whose workers is slow.

Two workers of two cores each are hosts of their own for Spark. Each row waits in a Python worker: four times as long on
the slow one, as if its disk or the service that it asks were slow. Waiting needs no processor, so the figures are about
where Spark puts the rows, and hold on a busy machine. The same batches run with other numbers of tasks, and under other
settings of Spark: in turns, with a driver of its own for each group of settings. Each row says which worker had it.
"""

import json
import os
import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.context import Context, servers
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result
from benchmarks.spark.cluster import Worker, clean_environment, standalone
from benchmarks.spark.even_load_driver import BATCHES, CORES, FEW, ROW_MS, ROWS, SLOW, TIMES, WARM, Turn
from ha.sandbox import Sandbox

NAME = "spark_even_load"
TITLE = "Batches on a cluster of Spark, one of whose workers is slow"

FAST_MS, SLOW_MS = 30, 120
"""Milliseconds that a row waits on either worker."""

SLOW_HOST = "127.0.0.2"

USUAL = "Spark's defaults"
NO_WAIT, SPECULATING, EAGER = "spark.locality.wait=0", "spark.speculation", "spark.speculation, eager"
SETTINGS: Mapping[str, dict[str, str]] = {
    USUAL: {},
    NO_WAIT: {"spark.locality.wait": "0s"},
    SPECULATING: {"spark.speculation": "true"},
    EAGER: {
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.5",
    },
}

EQUAL, MORE = f"tasks = cores ({CORES})", f"tasks = {TIMES} x cores ({CORES * TIMES})"
KAFKA, KAFKA_MORE = f"Kafka, {CORES} partitions", f"Kafka, minPartitions {CORES * TIMES}"
STATE, STATE_MORE = f"state in {CORES} partitions", f"state in {CORES * TIMES} partitions"
COALESCE, REPARTITION = f"{CORES * TIMES} tasks, coalesce(1)", f"{CORES * TIMES} tasks, repartition(1)"
STATE_COALESCE, STATE_REPARTITION = f"{STATE_MORE}, coalesce(1)", f"{STATE_MORE}, repartition(1)"

PLAN: Mapping[str, tuple[str, ...]] = {
    USUAL: (
        *(EQUAL, MORE, COALESCE, REPARTITION, KAFKA, KAFKA_MORE),
        *(STATE, STATE_MORE, STATE_COALESCE, STATE_REPARTITION),
    ),
    NO_WAIT: (KAFKA, STATE, STATE_MORE),
    SPECULATING: (EQUAL, MORE),
    EAGER: (EQUAL, MORE, STATE_MORE),
}
"""What runs under which settings."""

QUICK: Mapping[str, tuple[str, ...]] = {USUAL: (EQUAL, MORE, KAFKA, KAFKA_MORE), EAGER: (EQUAL, MORE)}
"""What runs in a quick run."""

CASES: Mapping[str, Turn] = {
    EQUAL: Turn("rate", CORES),
    MORE: Turn("rate", CORES * TIMES),
    COALESCE: Turn("rate", CORES * TIMES, "coalesce", FEW),
    REPARTITION: Turn("rate", CORES * TIMES, "repartition"),
    KAFKA: Turn("kafka", CORES),
    KAFKA_MORE: Turn("kafka", CORES * TIMES),
    STATE: Turn("state", CORES),
    STATE_MORE: Turn("state", CORES * TIMES),
    STATE_COALESCE: Turn("state", CORES * TIMES, "coalesce", FEW),
    STATE_REPARTITION: Turn("state", CORES * TIMES, "repartition"),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One turn: milliseconds of each batch, and the part of its rows that the slow worker had."""

    settings: str
    case: str
    batch_ms: list[float]
    slow: list[float]


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        SandboxError: the servers did not start.
        CalledProcessError: a driver failed; its log is in the benchmark's folder.
    """
    rounds, plan = context.repeats(3, 1), QUICK if context.quick else PLAN
    context.say("Starting HDFS, Kafka and a cluster of Spark")
    workers = (Worker(variables={ROW_MS: f"{FAST_MS}"}), Worker(SLOW_HOST, variables={ROW_MS: f"{SLOW_MS}", SLOW: "1"}))
    with servers(context) as sandbox:
        sandbox.up(kafka=True)
        (cluster := context.folder / "cluster").mkdir()
        with standalone(cluster, workers=workers) as master:
            measured = []
            for number in range(rounds):
                names = list(plan)
                for name in names[number % len(names) :] + names[: number % len(names)]:
                    context.say(f"Round {number + 1} of {rounds}: {name}")
                    measured += _turns(context, sandbox, master, name, plan[name], number)
    return _result(measured, rounds, plan)


def _turns(
    context: Context, sandbox: Sandbox, master: str, name: str, cases: tuple[str, ...], number: int
) -> list[Measured]:
    """Run a driver with the settings of this name; its cases begin in turns."""
    found = sandbox.environment()
    cases = cases[number % len(cases) :] + cases[: number % len(cases)]
    plan = [{**asdict(CASES[case]), "topic": _topic(found, case), "case": case} for case in cases]
    told = {
        "master": master,
        "settings": {**SETTINGS[name], "spark.jars": found["HA_SANDBOX_KAFKA_JARS"]},
        "brokers": found["HA_SANDBOX_KAFKA"],
        "checkpoints": f"{found['HA_FILES']}-even-load/{uuid.uuid4()}",
        "turns": plan,
    }
    environment = clean_environment() | {key: found[key] for key in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME")}
    log = context.folder / f"driver-{number}-{list(SETTINGS).index(name)}.log"
    with log.open("wb") as errors:
        command = [sys.executable, "-m", "benchmarks.spark.even_load_driver", json.dumps(told)]
        ran = subprocess.run(
            command, env=environment, cwd=Path.cwd(), stdout=subprocess.PIPE, stderr=errors, check=True
        )
    return [Measured(settings=name, **each) for each in json.loads(ran.stdout.splitlines()[-1])]


def _topic(found: Mapping[str, str], case: str) -> str:
    """Make a topic with a partition for each core, whose records are as many in each; empty if the case has none."""
    if CASES[case].source != "kafka":
        return ""
    topic = f"even-{uuid.uuid4()}"
    brokers = found["HA_SANDBOX_KAFKA"]
    admin = AdminClient({"bootstrap.servers": brokers})  # it calls the broker until it is gone
    admin.create_topics([NewTopic(topic, CORES, 1)])[topic].result(60)
    producer = Producer({"bootstrap.servers": brokers})
    for record in range(ROWS * (WARM + BATCHES)):
        producer.produce(topic, f"{record}".encode(), partition=record % CORES)
    producer.flush(60)
    return topic


def _result(measured: Sequence[Measured], rounds: int, plan: Mapping[str, tuple[str, ...]]) -> Result:
    grouped: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for each in measured:
        grouped[each.settings, each.case].append(each)
    rows, series = [], {}
    for name, cases in plan.items():
        for case in cases:
            turns = grouped[name, case]
            took = [ms / 1000 for each in turns for ms in each.batch_ms]
            slow = median(part for each in turns for part in each.slow)
            rows.append((case, name, round(median(took), 2), round(max(took), 2), f"{slow:.0%}"))
            series[case if name == USUAL else f"{case}; {name}"] = took
    return Result(
        name=NAME,
        title=TITLE,
        columns=(
            "batch",
            "settings",
            "median [s]",
            "longest [s]",
            "rows on the slow worker",
        ),
        rows=tuple(rows),
        targets=(),
        notes=(
            f"Rounds: {rounds}. In each, {BATCHES} batches of {ROWS} rows after one that does not count.",
            f"With coalesce, {FEW} batches.",
            f"Two workers of {CORES // 2} cores each. A row waits {FAST_MS} ms on one and {SLOW_MS} ms on the other.",
            f"No batch can be shorter than {least():.2f} s: the four cores then end at once.",
            "Eager speculation: spark.speculation.quantile 0.5 and multiplier 1.5; Spark 4 has 0.9 and 3.",
        ),
        pictures=(Picture("batches", "Seconds of each batch", dots("Batches, one worker slow", "s", series)),),
        raw={"turns": [asdict(each) for each in measured], "load": os.getloadavg()},
    )


def least() -> float:
    """Return the seconds of a batch whose rows are spread so that all cores end at once."""
    return ROWS / 1000 / (CORES / 2 / FAST_MS + CORES / 2 / SLOW_MS)
