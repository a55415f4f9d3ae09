"""The table of damaged files: runs the cases with one Spark session, and writes the page from all that were run.

python -m tests.system.checkpoints.damage_table --case "sums, rocksdb, bare" --case "plain, files, hdfs"

HDFS and Kafka are those of a sandbox, as ``ha lab sandbox env`` names them.

The rows are kept in ``damage.json`` beside this module; a case that is run again replaces its own.
"""

import json
import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import click
from pyspark.sql import SparkSession

from ha.checkpoints.verify import BAD, Condition
from ha.spark.session.spark_session import configured
from ha.spark.stored.stored_state import QUIET
from tests.system.checkpoints.damage import WRONG, Damages, Rate, Row, Source, Topic
from tests.system.checkpoints.damage_page import (
    ALTERED,
    BEGUN,
    BY_SUMS,
    FILE,
    REPAIRED,
    STARTS,
    STRICT,
    TOLD,
    UNKNOWABLE,
    UNSEEN,
    Case,
    Cells,
    kind,
    write,
)
from tests.system.spark.test_closures import FORMATS, STATE

ROCKSDB = {**FORMATS["rocksdb"], f"{STATE}.rocksdb.changelogCheckpointing.enabled": "false"}
STORES = {**FORMATS, "rocksdb without changes": ROCKSDB}
SETTINGS = {
    "spark.sql.streaming.fileSource.log.compactInterval": "3",
    "spark.sql.session.timeZone": "UTC",
    f"{STATE}.minDeltasForSnapshot": "4",
    f"{STATE}.maintenanceInterval": "300ms",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",  # thousands of short queries: compiling them takes the most time
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
OWN = r"state/.*/[^.][^/]*"
OWN_BY_IDS = rf"{OWN}|commits/[0-9]+"
"""Files of a store alone, and those that tell its ids; the others are the same whatever the state is."""

JVM = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
CASES = [
    *(f"plain, {source}, {place}" for source in ("files", "rate", "kafka") for place in ("file", "bare")),
    "plain, files, hdfs",
    "sums, rocksdb, hdfs",
    *(f"sums, {store}, bare" for store in STORES),
    "sums, hdfs, file",
    "sums, rocksdb with ids, file",
    *(f"pairs, {store}, bare" for store in ("hdfs", "rocksdb", "rocksdb with ids")),
    *(f"visits, {store}, bare" for store in ("rocksdb", "rocksdb with ids")),
]


def verdict(row: Row) -> str:
    said = row.said if row.said.condition in BAD else row.read
    starts = row.spark in ("", WRONG)
    if said.condition is Condition.ALTERED and starts:
        return ALTERED
    if said.condition in BAD:
        told = TOLD if said is row.said else BY_SUMS
        return told if row.spark else STRICT
    if not row.spark:
        return REPAIRED if said.condition is Condition.REPAIRED else STARTS
    one_byte = row.damage.endswith("byte")
    source = row.path.startswith("sources/") and (starts or "assertion failed" in row.spark)
    unsummed = source or row.path.endswith(".sst") or "UNSUPPORTED_DATATYPE" in row.spark
    return UNKNOWABLE if one_byte and unsummed else UNSEEN


def summed(rows: list[Row]) -> Case:
    """Return what is kept of a case: verdicts by kind of file and damage, and each difference."""
    cells: Cells = defaultdict(lambda: defaultdict(list))
    for row in rows:
        name = f"{kind(row.path)}{BEGUN if row.begun else ''}"
        if (said := verdict(row)) not in cells[name][row.damage]:
            cells[name][row.damage].append(said)
    differ = [
        f"{each.path}{' (begun)' if each.begun else ''}, {each.damage}: Spark {each.spark or 'starts'}; "
        f"we say {each.read.condition} {each.read.missing} {each.read.reason}".rstrip()
        for each in rows
        if verdict(each) in (UNSEEN, STRICT)
    ]
    return {"rows": len(rows), "differ": differ, "cells": cells}


def run(spark: SparkSession, case: str, home: Path, only: str, brokers: str, hdfs: str) -> list[Row]:
    program, what, place = case.split(", ")
    source = Rate(home) if what == "rate" else Topic(home, brokers) if what == "kafka" else Source(home)
    where = f"{hdfs}/damage-{os.getpid()}-{time.monotonic_ns()}" if place == "hdfs" else place
    with configured(spark, {**SETTINGS, **STORES.get(what, {})}):
        damages = Damages(spark, home, program, source, where)
        own = re.compile(".*" if program == "plain" else OWN_BY_IDS if "with ids" in what else OWN)
        return list(damages.rows(lambda path: path.startswith(only) and bool(own.fullmatch(path))))


@click.command()
@click.option("--case", "cases", multiple=True, type=click.Choice(CASES), default=CASES, show_default=False)
@click.option("--only", default="", help="Begin of the paths that are damaged; nothing is kept then.")
@click.option("--hdfs", default="", envvar="HA_FILES", help="URI of a directory on HDFS.")
@click.option("--kafka", default="", envvar="HA_SANDBOX_KAFKA", help="Address of a broker.")
@click.option("--jars", default="", envvar="HA_SANDBOX_KAFKA_JARS", help="Spark's connector for it.")
def main(cases: tuple[str, ...], only: str, hdfs: str, kafka: str, jars: str) -> None:
    """Run cases, and write the page; exit code 1 if anything differs."""
    root = str(Path(__file__).parents[3])
    os.environ |= {"HA_CONFIG": os.devnull, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": root}
    found = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    differ = 0
    with tempfile.TemporaryDirectory(prefix="ha-damage-", ignore_cleanup_errors=True) as folder:
        builder = SparkSession.builder.master("local[2]").config(
            map={**QUIET, **JVM, "spark.log.level": "OFF", "spark.jars": jars}
        )
        spark = builder.getOrCreate()
        for number, case in enumerate(cases):
            if ("hdfs" in case.split(", ")[2:] and not hdfs) or ("kafka" in case and not kafka):
                click.echo(f"{case}: not run: --hdfs or --kafka says where")
                continue
            began, home = time.monotonic(), Path(folder) / f"{number}"
            home.mkdir()
            said = summed(run(spark, case, home, only, kafka, hdfs))
            differ += len(said["differ"])
            seconds = time.monotonic() - began
            click.echo(f"{case}: {said['rows']} rows in {seconds:.0f} s, {json.dumps(said['differ'], indent=1)}")
            if not only:
                found[case] = said
                ordered = {each: found[each] for each in CASES if each in found}
                lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in ordered.items())
                FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
                write(ordered)
        spark.stop()
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
