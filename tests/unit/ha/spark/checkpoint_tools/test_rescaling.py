"""Rescaling: whole or not at all, with a Spark that writes what the real one does (tests/system tries the real one)."""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ha.checkpoints.contents import offsets
from ha.outputs.lines import Line
from ha.spark import Output, checkpoint_location
from ha.spark.checkpoint_tools import rescaling
from ha.spark.checkpoint_tools.rescaling import Rescaled, Rescaling, repartitioned
from ha.spark.checkpoint_tools.rewinding import Rewinding
from ha.spark.rewind import completing
from ha.spark.stored import stored_state
from leader.errors import InvalidSettings
from store.errors import Conflict, Invalid
from tests.system.spark.batches import batch, found, line_of, shifts_in
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS, STORES
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.spark.checkpoint_tools.place import JOB, QUERY, LedJob, Place, led
from tests.unit.ha.spark.checkpoint_tools.place import checkpoint as hdfs_backed

pytestmark = pytest.mark.slow  # each computes for a tenth of a second and more

NEWEST = 5


def repartition(_: object, uri: str, partitions: int, __: object) -> None:
    """Write what Spark writes: a batch without input, with a whole version of each store."""
    home = Path(urlsplit(uri).path)
    newest = max(int(each.name) for each in (home / "commits").iterdir() if each.name.isdecimal())
    assert not (home / f"offsets/{newest + 1}").exists(), "Spark refuses a batch that was begun"
    said = (home / f"offsets/{newest}").read_bytes()
    (home / f"offsets/{newest + 1}").write_bytes(repartitioned(said, partitions))
    ids = []
    for partition in range(partitions):
        ids.append([f"{partition}-{store}" for store in STORES])
        for store in STORES:
            folder = home / f"state/0/{partition}/{store}"
            folder.mkdir(parents=True, exist_ok=True)
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                archive.writestr("metadata", 'v1\n{"sstFiles": [], "numKeys": 1}')
            (folder / f"{newest + 2}_{partition}-{store}.zip").write_bytes(packed.getvalue())
    commit = json.dumps({"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": ids}})
    (home / f"commits/{newest + 1}").write_text(f"v2\n{commit}")


class Job(LedJob):
    """A job with a query that has committed batch 5 and begun batch 6, and an output that has published it."""

    @property
    def checkpoint(self) -> Path:
        return self.home / "spark" / QUERY

    @property
    def rescaling(self) -> Rescaling:
        return Rescaling(self.files, JOB, QUERY, self.leadership.own.leader)

    def rescale(self, partitions: int) -> Rescaled:
        return self.rescaling.rescale(self.leadership, partitions)

    def publish(self, batches: range, rows: str, name: str = "clean") -> list[bool]:
        with Output(self.leadership, (self.root / "out" / name).as_uri(), name) as output:
            line = Line("aa", "sums") if name == "sums" else line_of(self.leadership, QUERY)
            return [output.write(batch(f"{rows}{each}", line=line), each) for each in batches]

    @property
    def seen(self) -> dict[str, str]:
        return found(self.root, "clean")

    @property
    def state(self) -> tuple[dict[str, bytes], set[str], dict[str, str]]:
        there = {str(each.relative_to(self.checkpoint)): each.read_bytes() for each in tree(self.checkpoint)}
        return there, shifts_in(self.home, "clean"), self.seen

    def logs(self) -> dict[str, int]:
        return {
            each.name: offsets(each.read_bytes()).partitions
            for each in (self.checkpoint / "offsets").iterdir()
            if each.name.isdecimal()
        }


def tree(place: Path) -> list[Path]:
    return [each for each in place.rglob("*") if each.is_file() and not each.name.endswith(".crc")]


@pytest.fixture
def job(local: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    monkeypatch.setattr(rescaling, "repartition", repartition)
    monkeypatch.setattr(stored_state, "session", lambda _: nullcontext())
    monkeypatch.setattr(rescaling, "compare", lambda *_, **__: [])
    with led(Job, local, tmp_path, monkeypatch) as made:
        until_batch(ROCKSDB_IDS, NEWEST).write_to(made.checkpoint)
        begin(made.checkpoint, NEWEST + 1)
        made.publish(range(NEWEST + 2), "old")
        yield made


def begin(checkpoint: Path, number: int) -> None:
    """Begin a batch, as Spark does: its input is known, and nothing more."""
    said = (checkpoint / f"offsets/{number - 1}").read_text().rpartition("\n")[0]
    (checkpoint / f"sources/0/{number}").write_text(
        f'v1\n{{"path":"file:///in/{number}","timestamp":1,"batchId":{number}}}'
    )
    (checkpoint / f"offsets/{number}").write_text(f'{said}\n{{"logOffset":{number}}}')


def test_a_batch_that_was_begun_and_published_is_known_under_its_next_number(job: Job) -> None:
    before = job.state
    outlook = job.rescaling.look(8)
    assert (outlook.batch, outlook.begun, outlook.present, outlook.partitions) == (5, True, 2, 8)
    assert (outlook.outputs, outlook.is_there) == (["clean"], False)
    assert job.rescale(8).plan.batch == 6
    logs = job.logs()
    assert {each: logs[each] for each in ("5", "6", "7")} == {"5": 2, "6": 8, "7": 8}
    assert (job.checkpoint / "offsets/7").read_text().endswith('{"logOffset":6}'), "with the same input"
    assert (job.checkpoint / "sources/0/6").exists()
    assert job.state[1] == {"line=0~7~-1"}
    assert job.publish(range(7, 9), "new") == [False, True], "Spark's batch 7 is the one that was published as 6"
    assert job.seen == {**before[2], "batch=7": "new8"}
    assert job.rescaling.look(8).is_there

    plan = Rewinding(job.files, JOB, QUERY, job.leadership.own.leader).undo(job.leadership)
    assert plan.batch == 5
    assert job.state == before
    assert job.publish(range(6, 8), "again") == [False, True]


def test_what_was_not_published_has_sparks_number(job: Job) -> None:
    begin(job.checkpoint, 7)
    for log in ("offsets/6", "commits/5"):
        (job.checkpoint / log.replace("offsets", "commits")).write_bytes((job.checkpoint / "commits/5").read_bytes())
    (job.checkpoint / "offsets/7").unlink()
    for path in tree(job.checkpoint / "state"):  # batch 6 writes version 7
        if path.name.startswith("6_"):
            path.with_name(f"7{path.name[1:]}").write_bytes(path.read_bytes())
    assert not job.rescaling.look(3).begun
    assert job.rescale(3).plan.batch == 7
    assert job.state[1] == set()
    assert job.publish(range(8, 9), "new") == [True]
    assert job.seen["batch=8"] == "new8"


def test_nothing_changes_until_it_is_decided(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    before = job.state

    def dies(*_: object) -> None:
        raise RuntimeError("Spark")

    for patched, error, said in (
        (dies, RuntimeError, "Spark"),
        (lambda *_: None, Conflict, "offsets/6: It is missing"),
        (lambda spark, uri, _, told: repartition(spark, uri, 4, told), Conflict, "more than partitions"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(rescaling, "repartition", patched)
            with pytest.raises(error, match=said):
                job.rescale(8)
        assert job.state == before
    with monkeypatch.context() as patch:
        patch.setattr("ha.spark.checkpoint_tools.replacing.complete", lambda *_: None)
        job.rescale(8)
    assert job.state == before, "it dies right after the decision"
    completing._settled.clear()  # as the next leader
    checkpoint_location(job.leadership, QUERY)
    assert job.logs()["7"] == 8
    assert job.state[1] == {"line=0~7~-1"}


def test_the_outputs_of_other_queries_do_not_follow(job: Job) -> None:
    job.publish(range(3), "other", "sums")
    until_batch(ROCKSDB_IDS, 2).write_to(job.home / "spark/sums")
    assert job.rescaling.look(8).outputs == ["clean"]
    job.rescale(8)
    assert {each.parent.name.partition("-")[0] for each in job.home.glob("out/*/line=0~7*")} == {"clean"}


def test_an_output_that_has_come_further_than_its_query_is_left_alone(job: Job) -> None:
    job.publish(range(7, 8), "more")
    with pytest.raises(Invalid, match="'clean' has published batches 6 to 7, which the query has not committed"):
        job.rescale(8)


def test_what_cannot_be_repartitioned_is_left_alone(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    before = job.state
    with monkeypatch.context() as patch:
        patch.setattr("ha.spark.session.private_names.SparkSession", object)
        with pytest.raises(InvalidSettings, match=r"cannot repartition the state .*: install PySpark 4\.2 or 4\.3"):
            job.rescale(8)
    (job.checkpoint / "sources/0/6").unlink()
    with pytest.raises(Invalid, match="sources/0/6: It is missing"):
        job.rescale(8)
    begin(job.checkpoint, 6)
    assert job.state == before
    place = job.home / "spark" / "hdfs"
    job.place.write(job.place.below(job.leadership.path("spark/hdfs")), hdfs_backed(3))
    with pytest.raises(Invalid, match="Spark cannot repartition"):
        Rescaling(job.files, JOB, "hdfs", job.leadership.own.leader).look(8)
    assert place.exists()
    with pytest.raises(Invalid, match="has no checkpoint of a query 'nothing': it has daily, hdfs"):
        Rescaling(job.files, JOB, "nothing", job.leadership.own.leader).look(8)
    (job.home / "spark" / "begun").mkdir()
    with pytest.raises(Invalid, match="Query 'begun' of job 'orders' has committed no batch: it has no state yet"):
        Rescaling(job.files, JOB, "begun", job.leadership.own.leader).look(8)


@pytest.mark.parametrize("data", [b"", b"v1", b"v1\n[]\n-", b"v1\n{}\n-", b'v1\n{"conf":{}}\n-', b"v1\n\xff"])
def test_offsets_of_another_form_are_not_guessed(data: bytes) -> None:
    with pytest.raises(Invalid):
        repartitioned(data, 3)


def test_only_the_partitions_of_a_batch_that_was_begun_change() -> None:
    conf: dict[str, Any] = {"a": "1", "spark.sql.shuffle.partitions": "2"}
    head = {"batchWatermarkMs": 7, "batchTimestampMs": 9, "conf": conf}
    version, said, *sources = repartitioned(f"v1\n{json.dumps(head)}\n-\n{{}}".encode(), 3).decode().split("\n")
    assert (version, sources) == ("v1", ["-", "{}"])
    assert json.loads(said) == {**head, "conf": {**conf, "spark.sql.shuffle.partitions": "3"}}
