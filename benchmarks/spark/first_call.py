"""Benchmark of ``ha.spark.worker.job_master()`` in a fresh Python worker: its first call, and others."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from threading import Event

from benchmarks.context import Context, servers
from benchmarks.drawing import dotted
from benchmarks.programs import await_answer, client, ha_program
from benchmarks.result import Result, at_most
from leader.lookup.answers import Source

TITLE = "The first call of job_master() in a fresh Python worker"

JOB = "first"
ROUNDS, QUICK = 15, 3
AGENT, ALONE = "an agent on the host", "no agent"
COLUMNS = (
    *("with", "answered by", "imports, ms", "first call with imports, ms", "slowest first call, ms"),
    *("processor time of a first call, ms", "further call, us", "store clients imported"),
)
FIRST_WITHIN_MS, FURTHER_WITHIN_US = 100.0, 100.0

PROGRAM = """
import json, os, sys, time
import pyspark.daemon, pyspark.worker
began, began_cpu = time.perf_counter(), time.process_time()
import ha.spark.worker
ha.spark.worker.job_master
imported = time.perf_counter()
master = ha.spark.worker.job_master()
answered, cpu = time.perf_counter(), time.process_time() - began_cpu
further = []
for _ in range(2000):
    at = time.perf_counter()
    ha.spark.worker.job_master()
    further.append(time.perf_counter() - at)
print(json.dumps({
    "imports": imported - began,
    "first": answered - began,
    "cpu": cpu,
    "further": sorted(further)[1000],
    "source": master.source.value,
    "clients": sorted({"kazoo", "hdfs_native", "hdfs", "requests"} & set(sys.modules)),
}), flush=True)
os._exit(0)  # as PySpark's workers end
"""


@dataclass(frozen=True, slots=True)
class First:
    """Seconds of one worker; ``cpu``: processor time until the first answer, ``further``: the median of later calls."""

    imports: float
    first: float
    cpu: float
    further: float
    source: str
    clients: list[str]


def run(context: Context) -> Result:
    with servers(context) as sandbox:
        found = sandbox.environment()
        settings = {"files": found["HA_FILES"], "zookeeper": found["HA_ZOOKEEPER"]}
        snapshots = {AGENT: str(context.folder / "snapshots"), ALONE: "off"}
        lead = ["host", "daemon", JOB, "--endpoint", "jobmaster=host-1:6123"]
        own = {**settings, "snapshots": snapshots[AGENT]}
        with (
            ha_program(lead, {**settings, "snapshots": "off"}, context.folder / "leader.log"),
            ha_program(["host", "agent", JOB], own, context.folder / "agent.log"),
        ):
            with client(own) as asked:
                await_answer(asked, JOB, Source.SNAPSHOT)
            return summarise(measure(context, settings, snapshots))


def measure(context: Context, settings: Mapping[str, str], snapshots: Mapping[str, str]) -> dict[str, list[First]]:
    """Start workers with and without an agent, in turns."""
    firsts: dict[str, list[First]] = {name: [] for name in snapshots}
    for number in range(context.repeats(ROUNDS, QUICK)):
        context.say(f"Round {number + 1}")
        for name, place in snapshots.items():
            Event().wait(0.2)  # the end of one worker must not slow the next one
            told = {f"HA_{key.upper()}": value for key, value in {**settings, "snapshots": place, "job": JOB}.items()}
            command, variables = [sys.executable, "-c", PROGRAM], {**os.environ, **told}
            said = subprocess.check_output(command, env=variables, stderr=subprocess.PIPE, timeout=60)
            firsts[name].append(First(**json.loads(said)))
    return firsts


def summarise(firsts: Mapping[str, list[First]]) -> Result:
    rows, targets = [], []
    for name, found in firsts.items():
        first_ms = median(each.first for each in found) * 1e3
        further_us = median(each.further for each in found) * 1e6
        slowest_ms = max(each.first for each in found) * 1e3
        cpu_ms = median(each.cpu for each in found) * 1e3
        imports_ms = median(each.imports for each in found) * 1e3
        clients = ", ".join(sorted({client for each in found for client in each.clients})) or "none"
        rows.append((name, found[0].source, imports_ms, first_ms, slowest_ms, cpu_ms, further_us, clients))
        targets.append(at_most(f"The first call with {name}", FIRST_WITHIN_MS, first_ms, "ms"))
        targets.append(at_most(f"A further call with {name}", FURTHER_WITHIN_US, further_us, "us"))
    series = {name: [each.first * 1e3 for each in found] for name, found in firsts.items()}
    return Result(
        COLUMNS,
        tuple(rows),
        tuple(targets),
        (
            "Medians; each round is a fresh interpreter that has imported what PySpark's worker imports itself.",
            "A further call with an agent reads its snapshot file; without one it answers from memory, under a watch.",
        ),
        (dotted("first", TITLE, "ms", series),),
        {name: [asdict(each) for each in found] for name, found in firsts.items()},
    )
