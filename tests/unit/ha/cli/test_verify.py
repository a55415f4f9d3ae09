"""``ha verify``: a job's queries, a directory by URI, and the exit code of damage."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.cli.commands import exit_code
from ha.spark import adopt
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint whose batches 0 to 4 are retained."""
    return until_batch(HDFS, 4).write_to(tmp_path / "elsewhere" / "sums")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look at what seems to be damaged follows at once: nothing changes meanwhile."""
    monkeypatch.setattr("ha.checkpoints.verify.AGAIN_S", 0.0)


def test_a_directory_is_verified_by_its_uri(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = checkpoint.as_uri()
    assert exit_code(["verify", uri]) == 0
    assert capsys.readouterr().out == f"{uri}: batches 0 to 4: 2 restorable with rebuilt files, 3 restorable\n"
    (checkpoint / "state/0/1/left/4.delta").unlink()
    assert exit_code(["verify", uri]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{uri}: batches 0 to 4: 2 restorable with rebuilt files, 1 restorable, 2 damaged"
    assert said[1:] == [f"  batch {n} is damaged. state/0/1/left/4.delta: It is missing." for n in (3, 4)]


def test_each_query_of_a_job_is_verified(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        adopt(leadership, "sums", checkpoint.as_uri())
        adopt(leadership, "totals", checkpoint.as_uri())
        place = Path(urlsplit(leadership.path("spark/totals")).path)
    (place / "offsets/4").unlink()
    assert exit_code(["verify", "orders", "--json"]) == 1
    sums, totals = json.loads(capsys.readouterr().out)
    assert (sums["query"], totals["query"]) == ("sums", "totals")
    assert {each["condition"] for each in sums["batches"]} <= {"restorable", "restorable with rebuilt files"}
    assert (totals["batches"][-1]["condition"], totals["batches"][-1]["missing"]) == ("damaged", "offsets/4")
    assert exit_code(["verify", "orders", "sums"]) == 0
    assert exit_code(["verify", "orders", "weekly"]) == 3
    assert "it has sums, totals" in capsys.readouterr().err


def test_what_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["verify", "nowhere"]) == 3
    assert exit_code(["verify", (tmp_path / "nothing").as_uri()]) == 2
    assert "There is no checkpoint at" in capsys.readouterr().err


def test_contents_are_compared_on_demand(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = checkpoint.as_uri()
    assert exit_code(["verify", uri, "--checksums"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        "  35 files were read, 2,323 bytes: 20 agree with a check sum, 15 have none and have the right form"
    )
    delta = checkpoint / "state/0/1/left/4.delta"
    delta.write_bytes(delta.read_bytes()[:-30] + b"?" + delta.read_bytes()[-29:])
    assert exit_code(["verify", uri]) == 0, "its name and length are as before"
    capsys.readouterr()
    assert exit_code(["verify", uri, "--checksums", "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["contents"]["summed"] == 19
    assert {each["missing"] for each in row["batches"] if each["condition"] == "damaged"} == {"state/0/1/left/4.delta"}
