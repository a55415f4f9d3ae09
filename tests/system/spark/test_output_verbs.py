"""``ha output``: what was decided, what of it is there, and what can be done about the rest."""

import json
import shutil
from pathlib import Path

import pytest

from ha.cli.commands import exit_code
from ha.leadership import fenced_rename
from ha.leadership.leadership import Leadership
from ha.spark import Output
from store.errors import ConnectionLost
from store.local import LocalFiles
from tests.system.spark.batches import batch, found, own_folder
from tests.system.spark.helpers import leading

DAYS = {f"day={day}": "first" for day in range(3)}


class Job:
    def __init__(self, tmp_path: Path, shown: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.tmp_path, self.shown, self.patch = tmp_path, shown, patch
        self.root = (tmp_path / "jobs").as_uri()

    def output(self, leadership: Leadership, name: str = "clean") -> Output:
        return Output(leadership, (self.tmp_path / "out" / name).as_uri(), name, partition_by=["day"])

    def publish(self, *batches: int, name: str = "clean") -> None:
        with leading("orders", self.root) as leadership, self.output(leadership, name) as output:
            for each in batches:
                output.write(batch(DAYS), each)

    def crash(self, number: int, renames: int) -> Path:
        """Die in a batch after so many renames from its decision on; return the batch's folder in the journal."""
        rename, remaining = LocalFiles.rename, [renames]

        def then_die(files: LocalFiles, source: str, destination: str) -> None:
            if "/ready/" in source or "/ready/" in destination:
                if not remaining[0]:
                    raise ConnectionLost("the driver does nothing more")
                remaining[0] -= 1
            rename(files, source, destination)

        with leading("orders", self.root) as leadership, self.output(leadership) as output:
            with self.patch.context() as patch:
                patch.setattr(fenced_rename, "RETRY_S", 0.0)
                patch.setattr(LocalFiles, "rename", then_die)
                with pytest.raises(ConnectionLost):
                    output.write(batch(DAYS), number)
            return own_folder(leadership, "clean") / "ready" / str(number)

    def ha(self, *arguments: str) -> tuple[int, str]:
        self.shown.readouterr()
        code = exit_code(["output", *arguments, "--files", self.root])
        printed = self.shown.readouterr()
        return code, printed.out + printed.err.partition("file://")[0]

    def rows(self, *arguments: str) -> list[dict[str, object]]:
        _, text = self.ha(*arguments, "--json")
        read: list[dict[str, object]] = json.loads(text)
        return read

    @property
    def directory(self) -> Path:
        (found,) = (self.tmp_path / "jobs" / "orders").glob("0*")
        return found


@pytest.fixture
def job(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("HA_ZOOKEEPER", "")
    return Job(tmp_path, capsys, monkeypatch)


def test_what_is_there_is_listed(job: Job) -> None:
    job.publish(0, 1, 2)
    job.publish(7, name="sums")
    code, text = job.ha("list", "orders")
    assert code == 0
    assert f"clean  {job.tmp_path}/out/clean  complete up to batch 2, records from 0" in text
    assert "sums" in text
    assert "sums" not in job.ha("list", "orders", "clean")[1]
    code, text = job.ha("list", "orders", "clean", "--batches", "1-")
    assert text.splitlines()[0] == "clean  batch 1  complete  3 files, 15 bytes in 3 partitions"
    assert len(text.splitlines()) == 2
    assert [row["batch"] for row in job.rows("list", "orders", "--batches", "-1")] == [0, 1]
    assert job.rows("list", "orders", "clean")[0]["newest"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("list", "orders", "nobody"), 3, "has no output 'nobody': it has clean."),
        (("list", "strangers"), 3, "strangers"),
        (("verify", "orders", "--batches", "x"), 2, "'x' is not a range of batches, such as 7, 7-9, 7- or -9."),
        (("verify", "orders", "--batches", "9-7"), 2, "'9-7' ends before it begins."),
        (("verify", "orders", "--batches", "-"), 2, "is not a range"),
        (("repair", "orders", "--accept-loss", "--write-again"), 2, "Choose one of"),
        (("repair", "orders"), 0, "orders: every batch that was decided is complete"),
        (("verify", "orders"), 0, "clean: 1 complete"),
    ],
)
def test_what_is_answered(job: Job, arguments: tuple[str, ...], code: int, said: str) -> None:
    job.publish(0)
    got, text = job.ha(*arguments)
    assert (got, said in text) == (code, True), text


def test_a_job_that_publishes_nothing(job: Job) -> None:
    with leading("orders", job.root):
        pass
    code, said = job.ha("verify", "orders")
    assert (code, said) == (3, "ha: Job 'orders' has no output: none of its queries has decided a batch of one.\n")


def test_what_is_gone_since_is_named(job: Job) -> None:
    job.publish(*range(5))
    shutil.rmtree(job.tmp_path / "out" / "clean" / "day=1" / "batch=2")
    (job.tmp_path / "out" / "clean" / "day=2" / "batch=4" / "part-0").write_text("cut")
    code, text = job.ha("verify", "orders")
    assert code == 1
    assert "clean  batch 2  gone since" in text
    assert "  day=1/batch=2/part-0 is not there" in text
    assert "  day=2/batch=4/part-0 is not there" in text
    assert "clean: 3 complete, 2 gone since" in text
    assert job.ha("verify", "orders", "--batches", "3")[0] == 0
    rows = job.rows("verify", "orders")
    assert [row["missing"] for row in rows] == [[], [], ["day=1/batch=2/part-0"], [], ["day=2/batch=4/part-0"]]


def test_what_spark_s_readers_do_not_see_is_not_complete(job: Job) -> None:
    job.publish(0, 1)
    log = job.tmp_path / "out" / "clean" / "_spark_metadata"
    log.mkdir()
    (log / "0").write_text("v1")
    code, text = job.ha("verify", "orders")
    assert (code, "clean  unseen  Spark's readers follow _spark_metadata" in text) == (1, True), text
    assert "clean: 2 complete, 1 unseen" in text


def test_a_batch_over_the_edge_of_a_thousand(job: Job) -> None:
    job.publish(998, 999, 1000, 1001)
    assert [row["batch"] for row in job.rows("verify", "orders", "--batches", "999-1000")] == [999, 1000]
    assert [row["batch"] for row in job.rows("verify", "orders", "--batches", "1000-")] == [1000, 1001]
    assert [row["batch"] for row in job.rows("verify", "orders", "--batches", "-999")] == [998, 999]


def test_an_unfinished_batch_is_finished(job: Job) -> None:
    job.publish(0)
    job.crash(1, 2)
    code, text = job.ha("verify", "orders")
    assert (code, "clean  batch 1  unfinished" in text) == (0, True)
    assert job.ha("list", "orders")[1].endswith("; batch 1 is not complete\n"), "and it can be"
    code, text = job.ha("repair", "orders")
    assert (code, "clean: batch 1 is complete: 3 files: 2 moved, 1 in place before" in text) == (0, True), text
    assert job.ha("verify", "orders")[1].startswith("clean: 2 complete")


def test_what_is_lost_is_named_and_nothing_is_moved(job: Job) -> None:
    shutil.rmtree(job.crash(1, 2) / "rows" / "day=2")
    code, text = job.ha("verify", "orders")
    assert code == 1
    assert "clean  batch 1  lost" in text
    assert "  day=2/batch=1/part-0 is not there" in text
    assert job.ha("list", "orders")[1].endswith("; batch 1 is not complete, and cannot be: files of it are lost\n")
    assert job.rows("list", "orders")[0]["lost"] == [1]
    before = found(job.tmp_path)
    code, text = job.ha("repair", "orders")
    assert (code, "clean: batch 1 is lost: Batch 1 of output 'clean' is not complete" in text) == (1, True), text
    assert found(job.tmp_path) == before


def test_a_loss_is_accepted_and_stays_visible(job: Job) -> None:
    shutil.rmtree(job.crash(1, 2) / "rows" / "day=2")
    code, text = job.ha("repair", "orders", "--accept-loss", "--yes")
    assert (code, "1 moved, 1 in place before, 1 given up" in text) == (0, True), text
    code, text = job.ha("verify", "orders")
    assert (code, "clean  batch 1  complete  3 files, 15 bytes in 3 partitions, 1 given up" in text) == (0, True), text
    job.publish(2)


def test_a_batch_without_its_record_can_be_given_up(job: Job) -> None:
    next(job.crash(1, 2).glob("files=*")).rmdir()
    assert "clean  batch 1  unknown" in job.ha("verify", "orders")[1]
    assert "batch 1 is not complete, and cannot be" in job.ha("list", "orders")[1]
    assert job.ha("repair", "orders")[0] == 1
    assert job.ha("repair", "orders", "--accept-loss", "--yes")[0] == 0
    assert len(found(job.tmp_path)) == 3


def test_a_batch_is_written_again_if_nothing_of_it_was_seen(job: Job) -> None:
    shutil.rmtree(job.crash(1, 1) / "rows" / "day=2")
    code, text = job.ha("repair", "orders", "--write-again", "--yes")
    assert (code, "batch 1 is undecided" in text) == (0, True), text
    job.publish(1)
    assert len(found(job.tmp_path)) == 3


def test_a_batch_of_which_something_was_seen_is_not_written_again(job: Job) -> None:
    shutil.rmtree(job.crash(1, 2) / "rows" / "day=2")
    code, text = job.ha("repair", "orders", "--write-again", "--yes")
    assert (code, "1 of the 3 files of batch 1 are in their places" in text) == (1, True), text


def test_a_job_that_is_led_is_not_repaired(job: Job) -> None:
    job.crash(1, 2)
    with leading("orders", job.root):
        code, text = job.ha("repair", "orders", "--timeout", "0.5")
    assert (code, "stop all processes that contend for it" in text) == (1, True), text
