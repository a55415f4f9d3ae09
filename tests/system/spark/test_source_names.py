"""Sources with names, in declared queries on real HDFS: they can be added and moved; and what pre-flight says."""

import json
import logging
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ha.spark
from ha.spark.session.frozen import EVOLUTION
from leader.errors import InvalidSettings
from tests.patience import DRIVER_S, PATIENCE_S
from tests.system.spark.drivers.sources import AFTER, BEFORE, declare
from tests.system.spark.helpers import leading

ROOT = Path(__file__).parents[3]
NAMED = hasattr(__import__("pyspark.sql.streaming", fromlist=["x"]).DataStreamReader, "name")

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow, pytest.mark.timeout(900)]


def feed(folder: Path, name: str, line: str) -> None:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / f"{line}.txt").write_text(f"{line}\n")


class Job:
    def __init__(self, spark: SparkSession, name: str, root: str, source: Path) -> None:
        self._spark, self.name, self._root, self._source = spark, name, root, source

    def run(self, queries: dict[str, str], *, named_sources: bool) -> dict[str, list[str]]:
        """Run these queries; return the lines that each of them has read."""
        found = defaultdict[str, list[str]](list)
        declared = ha.spark.Job(
            self.name, named_sources=named_sources, files=self._root, zookeeper="", restart_strategy="none"
        )
        declare(declared, self._source, queries, lambda query, rows: found[query].extend(r[0] for r in rows.collect()))
        declared.run(self._spark, timeout=PATIENCE_S)
        return {query: sorted(lines) for query, lines in found.items()}

    def logs(self) -> dict[str, str]:
        with leading(self.name, self._root) as leadership:
            return {
                query: leadership.own.read(f"spark/{query}/offsets/0").decode().partition("\n")[0]
                for query in leadership.names("spark")
            }

    def preflight(self) -> "subprocess.CompletedProcess[str]":
        driver = Path(__file__).parent / "drivers" / "sources.py"
        command = [sys.executable, str(driver), self.name, str(self._source)]
        return subprocess.run(
            [sys.executable, "-m", "ha.cli", "job", "preflight", self.name, "--json", "--", *command],
            env={**os.environ, "HA_FILES": self._root, "HA_ZOOKEEPER": "", "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False, timeout=DRIVER_S,
        )  # fmt: skip


@pytest.fixture
def declared(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> Job:
    for name in ("a", "b", "c"):
        feed(tmp_path, name, f"{name}0")
    return Job(spark, job, hdfs_uri, tmp_path)


def test_new_queries_get_names_and_old_ones_go_on(
    declared: Job, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "ha")
    before = {query: sources for query, sources in BEFORE.items() if query != "old"}
    assert declared.run({"old": BEFORE["old"]}, named_sources=False) == {"old": ["a0", "b0"]}
    warned = [each.getMessage() for each in caplog.records if "no names" in each.getMessage()]
    assert len(warned) == (1 if NAMED else 0)
    assert all(each.startswith(f"{declared.name}: query 'old' begins with sources") for each in warned)
    caplog.clear()
    named = declared.run(BEFORE, named_sources=NAMED)
    assert named == {query: ["a0", "b0"] for query in before}, "the old one has read all, and goes on"
    assert declared.logs() == {"old": "v1"} | dict.fromkeys(before, "v2" if NAMED else "v1")
    assert "no names" not in caplog.text or not NAMED

    ran = declared.preflight()
    assert ran.returncode == 1, ran.stderr
    found = {each["query"]: each for each in json.loads(ran.stdout)["queries"]}
    kinds = {query: [each["kind"] for each in one["problems"]] for query, one in found.items()}
    silent = {query for query, one in found.items() if any(each["silent"] for each in one["problems"])}
    if NAMED:
        assert kinds == {"new": [], "old": ["error"], "renamed": ["sources"], "same": []}, ran.stdout
        assert silent == {"renamed"}
        assert found["new"]["notes"] == ["Source c is new: it is read from its beginning."]
        text = "The program has a source z, which the checkpoint has not, and no source a, which the checkpoint has."
        assert found["renamed"]["problems"][0]["text"] == text

        feed(tmp_path, "a", "a1")
        after = {query: sources for query, sources in AFTER.items() if query in ("new", "same")}
        assert declared.run(after, named_sources=False) == {"new": ["a1", "c0"], "same": ["a1"]}
        assert spark.conf.get(EVOLUTION) == "false"


if not NAMED:  # Spark 4.1 and older; tests/unit/ha/spark/session/test_frozen.py pretends to be one

    def test_a_spark_without_names_is_refused(declared: Job) -> None:
        with pytest.raises(InvalidSettings, match="has no names for sources"):
            declared.run(BEFORE, named_sources=True)
