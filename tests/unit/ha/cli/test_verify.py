"""``ha checkpoint verify``: a job's queries, a directory by URI, and the exit code of damage."""

import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.spark.tools import import_checkpoint
from tests.unit.ha.checkpoints.simulated_spark import HDFS, ROCKSDB
from tests.unit.ha.checkpoints.test_check_sums import hadoop_sums
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return until_batch(HDFS, 4).write_to(tmp_path / "elsewhere" / "sums")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look at what seems to be damaged follows at once: nothing changes meanwhile."""
    monkeypatch.setattr("ha.checkpoints.verify.AGAIN_S", 0.0)


def test_a_directory_is_verified_by_its_uri(checkpoint: Path, cli: CommandLine) -> None:
    uri = checkpoint.as_uri()
    whole = cli("checkpoint verify", uri)
    assert whole.out == f"{uri}: batches 0 to 4: 2 restorable with rebuilt files, 3 restorable\n"
    (checkpoint / "state/0/1/left/4.delta").unlink()
    said = cli("checkpoint verify", uri, code=1).out.splitlines()
    assert said[0] == f"{uri}: batches 0 to 4: 2 restorable with rebuilt files, 1 restorable, 2 damaged"
    assert said[1:-1] == [f"  batch {n} is damaged. state/0/1/left/4.delta: It is missing." for n in (3, 4)]
    assert said[-1].endswith(": put the file back, from a copy of it")


def test_each_query_of_a_job_is_verified(checkpoint: Path, cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", checkpoint.as_uri())
        import_checkpoint(leadership, "totals", checkpoint.as_uri())
        place = Path(urlsplit(leadership.path("spark/totals")).path)
    (place / "offsets/4").unlink()
    sums, totals = cli("checkpoint verify orders --json", code=1).json
    assert (sums["query"], totals["query"]) == ("sums", "totals")
    assert {each["condition"] for each in sums["batches"]} <= {"restorable", "restorable with rebuilt files"}
    assert (totals["batches"][-1]["condition"], totals["batches"][-1]["missing"]) == ("damaged", "offsets/4")
    (offered,) = re.findall("`ha (.*)` goes back", cli("checkpoint verify orders totals", code=1).out)
    assert offered == "checkpoint rewind orders totals --to 3"
    cli(*shlex.split(offered), "--dry-run")
    cli("checkpoint verify orders sums")
    assert "it has sums, totals" in cli("checkpoint verify orders weekly", code=3).err


def test_contents_are_compared_on_demand(checkpoint: Path, cli: CommandLine) -> None:
    uri = checkpoint.as_uri()
    assert cli("checkpoint verify", uri, "--checksums").out.splitlines()[1] == (
        "  35 files were read, 2,333 bytes: 20 agree with a check sum, 15 have none and have the right form"
    )
    delta = checkpoint / "state/0/1/left/4.delta"
    delta.write_bytes(delta.read_bytes()[:-30] + b"?" + delta.read_bytes()[-29:])
    cli("checkpoint verify", uri)  # its name and length are as before
    (row,) = cli("checkpoint verify", uri, "--checksums", "--json", code=1).json
    assert row["contents"]["summed"] == 19
    assert {each["missing"] for each in row["batches"] if each["condition"] == "damaged"} == {"state/0/1/left/4.delta"}


def test_what_spark_takes_although_nobody_wrote_it_is_altered(checkpoint: Path, cli: CommandLine) -> None:
    offsets = checkpoint / "offsets/4"
    (checkpoint / "offsets/.4.crc").write_bytes(hadoop_sums(offsets.read_bytes()))
    offsets.write_bytes(offsets.read_bytes().replace(b"4000", b"4001"))
    said = cli("checkpoint verify", checkpoint.as_uri(), code=1).out.splitlines()
    assert said[-2].startswith("  batch 4 is altered. offsets/4: It is altered. It is not what was written")
    assert said[-1].startswith("  it goes on with what is there: put the file back")


def test_what_spark_repairs_is_named_and_is_no_error(tmp_path: Path, cli: CommandLine) -> None:
    place = until_batch(ROCKSDB, 4).write_to(tmp_path / "sums")
    (place / "state/0/1/left/3.zip").write_bytes(b"")
    said = cli("checkpoint verify", place.as_uri())
    assert "batch 4 is restorable from an older version. state/0/1/left/3.zip: It is" in said.out
