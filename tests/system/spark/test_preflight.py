"""Pre-flight, with real programs: each kind of change is classified right, and nothing is written."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from ha.sidecar.command.jvm_watch import UNHOOKED
from ha.spark.session.spark_session import configured
from leader.layout import tree
from store.local import LocalFiles
from tests.patience import DRIVER_S
from tests.system.spark.drivers.changed import KINDS, PARTITIONS, writer

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[3]
DRIVERS = Path(__file__).parent / "drivers"
STATE = "spark.sql.streaming.stateStore"
IDS = {
    f"{STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true",
}
VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))
if VERSION >= (4, 3):  # older ones do not go on with ids unless the program asks for them again
    IDS[f"{STATE}.checkpointFormatVersion"] = "2"
KINDS_KNOWN = VERSION >= (4, 0)
"""Whether checkpoints say what an operator is; older ones have the schemas of its state, and nothing else."""


class Expected(NamedTuple):
    """What is to be said of a kind of change: problems by kind, and whether Spark would not notice."""

    problems: tuple[str, ...] = ()
    silent: bool = False


CLASSIFIED = {
    "same": Expected(),
    "filtered": Expected(),
    "partitions": Expected(),
    "watermark": Expected(),
    "grouping": Expected(("state: names",), silent=True),
    "measure": Expected(("state: names",), silent=True),
    "key-type": Expected(("state: types",)),
    "aggregates": Expected(("state: types",)),
    "added": Expected(("state: operator added",)),
    "removed": Expected(("state: operator removed",)),
    "became-stateful": Expected(("error",)),
    "one-more-source": Expected(("error",)),
    "other-source": Expected(("error",)),
    "swapped": Expected(("error",)),
    "renumbered": Expected(("state: types", "state: types")),
    "joined": Expected(("state: types",)),
    "renamed": Expected(("missing",)),
}
if not KINDS_KNOWN:  # Spark does not notice; by schemas alone another operator is one more and one less
    CLASSIFIED["added"] = Expected(("state: operator removed", "state: operator added"))
    CLASSIFIED["became-stateful"] = Expected(("state: operator added",))


def feed(source: Path, numbers: range) -> None:
    for place in ("a", "b"):
        (source / place).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            rows = [
                {"user": f"u{each % 3}", "item": f"i{each % 5}", "value": each, "at": f"2026-01-01T00:00:{each:02d}"}
                for each in range(number * 10, number * 10 + 10)
            ]
            (source / place / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))


def create(folder: Path, job: str) -> Path:
    """Create a job; returns where its queries have their checkpoints."""
    tree.create(LocalFiles(folder / "ha"), job)
    (leader,) = (folder / "ha" / job).iterdir()
    return leader / "spark"


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changed")
    feed(folder / "in", range(2))
    place = create(folder, "orders")
    started = []
    with configured(spark, {**IDS, PARTITIONS: "2"}):
        for name in KINDS:
            query = writer(spark, name, (folder / "in").as_uri(), changed=False)
            query.option("checkpointLocation", (place / name).as_uri())
            started.append(query.format("noop").trigger(availableNow=True).start())
        for each in started:
            each.awaitTermination()
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ha(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {"HA_FILES": (folder / "ha").as_uri(), "HA_ZOOKEEPER": "", "PYTHONPATH": str(ROOT)}
    environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)  # as an environment that is activated finds it
    return subprocess.run(
        [sys.executable, "-m", "ha.cli", *words], env={**os.environ, **environment}, capture_output=True, text=True,
        check=False, timeout=DRIVER_S,
    )  # fmt: skip


@pytest.fixture(scope="module")
def judged(made: Path) -> Path:
    """What is said of one program with a query for each kind, under ``ha.spark.lead``, with ``ha.spark.Output``."""
    before = content(made)
    program = [sys.executable, str(DRIVERS / "changed.py"), "orders", (made / "in").as_uri(), (made / "out").as_uri()]
    run = ha(made, "job", "preflight", "orders", "--json", "--", *program)
    assert run.returncode == 1, run.stderr
    assert content(made) == before, "nothing is written"
    assert not list((made / "ha").glob(".preflight-*"))
    file = made / "judged.json"
    file.write_text(run.stdout)
    return file


def test_each_kind_of_change_is_classified_right(judged: Path) -> None:
    found = {each["query"]: each for each in json.loads(judged.read_text())["queries"]}
    said = {
        name: Expected(tuple(one["kind"] for one in each["problems"]), any(one["silent"] for one in each["problems"]))
        for name, each in found.items()
    }
    assert said == CLASSIFIED
    assert {name for name, each in found.items() if each["fits"]} == {"same", "filtered", "partitions", "watermark"}
    assert all(one["remedy"] for each in found.values() for one in each["problems"])
    assert found["partitions"]["notes"] == [
        "The checkpoint's setting stays: spark.sql.shuffle.partitions=2 (3 in the session)."
    ]
    assert found["grouping"]["problems"][0]["text"] == (
        "State 'default' of operator 0 is user string -> count bigint in the checkpoint, and item string -> count "
        "bigint in the program."
    )
    assert found["same"]["batch"] == 1, "the newest batch is done once more"
    if KINDS_KNOWN:
        assert found["renumbered"]["notes"] == [
            "Its operators have other numbers, and nothing else: --map of `ha checkpoint import` makes one that fits."
        ]
    mapped = [name for name, each in found.items() if "--map" in "".join(each["notes"])]
    assert mapped == (["renumbered"] if KINDS_KNOWN else [])


def rows_of(spark: SparkSession, checkpoint: Path, source: Path, *, changed: bool) -> dict[int, list[str]]:
    """Go on from a checkpoint until all input is read; return the rows of each batch."""
    found: dict[int, list[str]] = {}

    def keep(rows: DataFrame, batch: int) -> None:
        found[batch] = sorted(str(each) for each in rows.collect())

    query = writer(spark, "renumbered", source.as_uri(), changed=changed).foreachBatch(keep)
    query.option("checkpointLocation", checkpoint.as_uri()).trigger(availableNow=True).start().awaitTermination()
    return found


def test_a_program_with_other_numbers_goes_on_from_a_renumbered_checkpoint_with_the_same_results(
    made: Path, judged: Path, spark: SparkSession, tmp_path: Path
) -> None:
    (place,) = (made / "ha/orders").glob("*/spark")
    run = ha(made, "checkpoint", "import", "mapped", "grouping", (place / "grouping").as_uri(), "--map", str(judged))
    assert run.returncode == 1
    assert "cannot be matched without doubt" in run.stderr
    kind = "stateStoreSave" if KINDS_KNOWN else "of an unknown kind"
    assert f"checkpoint: 0 is {kind} (default: user string -> count bigint)" in run.stderr
    assert f"program: 0 is {kind} (default: item string -> count bigint)" in run.stderr
    assert not (made / "ha/mapped").exists()

    run = ha(
        made, "checkpoint", "import", "mapped", "renumbered", (place / "renumbered").as_uri(), "--map", str(judged)
    )
    if not KINDS_KNOWN:
        assert run.returncode == 1, "schemas alone leave a doubt"
        assert not (made / "ha/mapped").exists()
        return
    assert run.returncode == 0, run.stderr
    assert "operators: 0 becomes 1, 1 becomes 0" in run.stderr
    (mapped,) = (made / "ha/mapped").glob("*/spark/renumbered")
    shutil.copytree(place / "renumbered", tmp_path / "old")
    feed(made / "in", range(1, 3))  # one more file, and one that was read
    with configured(spark, {**IDS, PARTITIONS: "2"}):
        expected = rows_of(spark, tmp_path / "old", made / "in", changed=False)
        assert expected[2], "there is new input"
        assert rows_of(spark, mapped, made / "in", changed=True) == expected


def test_a_submit_stores_what_fits_and_a_program_that_the_cut_does_not_reach_starts_no_query(made: Path) -> None:
    """A program that does not import this package, as under ``ha run --spark``."""
    shutil.copytree(next((made / "ha/orders").glob("*/spark/same")), create(made, "plain") / "same")
    program = (str(DRIVERS / "counting.py"), "user", (made / "in/a").as_uri(), str(made / "marker"))
    run = ha(made, "job", "submit", "plain", "--json", "--", sys.executable, *program)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["checked"]
    isolated = made / "isolated"
    isolated.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    isolated.chmod(0o755)
    submit = (str(Path(sys.executable).with_name("spark-submit")), "--conf", f"spark.pyspark.driver.python={isolated}")
    for command, said, remedy in (
        ((sys.executable, "-I"), "has not read the hook of ha run --spark", "add to it, or set it before ha run"),
        (submit, *UNHOOKED),
    ):
        run = ha(made, "job", "submit", "plain", "--", *command, *program)
        assert run.returncode == 1
        assert "plain: same DOES NOT FIT" in run.stderr
        assert said in run.stderr
        assert remedy in run.stderr
        assert "so nothing was changed: correct it, or add --no-preflight" in run.stderr
        assert len(json.loads(ha(made, "job", "submit", "plain", "--list", "--json").stdout)) == 1
        assert not (made / "marker").exists()


SUBMIT = str(Path(sys.executable).with_name("spark-submit"))


@pytest.fixture(scope="module")
def damaged(made: Path, spark: SparkSession) -> Path:
    """Return where a job has a query whose state is of the kind in which a byte can be wrong without being seen."""
    place = create(made, "damaged") / "same"
    hdfs = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    with configured(spark, {f"{STATE}.providerClass": hdfs, PARTITIONS: "1"}):
        query = writer(spark, "same", (made / "in").as_uri(), changed=False).option(
            "checkpointLocation", place.as_uri()
        )
        query.format("noop").trigger(availableNow=True).start().awaitTermination()
    return place


@pytest.mark.parametrize("form", [[sys.executable], [SUBMIT]], ids=["python", "spark-submit"])
@pytest.mark.parametrize("how", ["gone", "a byte"])
def test_a_damaged_file_of_the_checkpoint_is_named(made: Path, damaged: Path, form: list[str], how: str) -> None:
    (file,) = damaged.glob("state/0/0/1.delta")
    good = file.read_bytes()
    marker = made / f"of-{how}"
    program = [*form, str(DRIVERS / "counting.py"), "user", (made / "in/a").as_uri(), str(marker)]
    try:
        if how == "gone":
            file.unlink()
        else:
            middle = len(good) // 2
            file.write_bytes(good[:middle] + bytes([good[middle] ^ 0xFF]) + good[middle + 1 :])
        run = ha(made, "job", "preflight", "damaged", "--json", "--", *program)
        assert run.returncode == 1, run.stderr
        (query,) = json.loads(run.stdout)["queries"]
        (problem,) = query["problems"]
        assert (query["fits"], problem["kind"]) == (False, "checkpoint")
        assert "state/0/0/1.delta" in problem["text"], problem
        assert "ha checkpoint verify damaged same" in problem["remedy"]
        assert not marker.exists()
    finally:
        file.write_bytes(good)
    run = ha(made, "job", "preflight", "damaged", "--", *program)
    newest = max(int(each.name) for each in (damaged / "commits").glob("[0-9]*"))  # other tests have fed the source
    said = f"damaged: same fits (batch {newest})"
    assert (run.returncode, said in run.stdout) == (0, True), run.stdout + run.stderr
