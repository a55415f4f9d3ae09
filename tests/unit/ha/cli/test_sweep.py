"""``ha sweep``: of a job at rest, beside a leader, of a directory by URI, and back."""

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.cli.commands import exit_code
from ha.leadership.leadership import Leadership
from ha.spark import adopt
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch

pytestmark = pytest.mark.usefixtures("quick")

UUID = "00000000-0000-4000-8000-00000000000"
TEMPORARY = f"state/0/0/left/.5.changelog.{UUID}7.TID7.tmp"
TABLE = f"state/0/0/left/SSTs/000001-{UUID}1.sst"
VERSION = f"state/0/0/left/5_{UUID}2.changelog"
ORPHANS = {TEMPORARY, TABLE, VERSION}


def written(place: Path) -> Path:
    until_batch(ROCKSDB_IDS, 5).write_to(place)
    return place


def litter(place: Path) -> None:
    for path in ORPHANS:
        (place / path).write_bytes(b"12345")


def tree(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def home(leadership: Leadership) -> Path:
    return Path(urlsplit(leadership.path("spark/sums")).path)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The directory of a job at rest, whose query "sums" has litter in its checkpoint; returns the job's."""
    with ha.lead("orders") as leadership:
        adopt(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
        place = home(leadership)
    litter(place)
    return place.parents[2]


def checkpoint(job: Path) -> Path:
    (found,) = job.glob("0*/spark/sums")
    return found


def test_a_job_at_rest_is_swept_and_put_back(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(checkpoint(job))
    assert exit_code(["sweep", "orders", "--dry-run"]) == 0
    assert "nothing was moved" in capsys.readouterr().out
    assert tree(checkpoint(job)) == before
    assert exit_code(["sweep", "orders"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("sums: 3 files, 15 bytes: 1 temporary, 1 version, 1 table\nmoved into the trash (")
    assert tree(checkpoint(job)) == before - ORPHANS
    assert exit_code(["verify", "orders"]) == 0
    capsys.readouterr()
    assert exit_code(["trash", "list", "orders"]) == 0
    assert "spark/sums/..." in capsys.readouterr().out
    assert exit_code(["sweep", "orders", "--undo"]) == 0
    assert "3 entries are back" in capsys.readouterr().out
    assert tree(checkpoint(job)) == before
    assert exit_code(["sweep", "orders", "--undo"]) == 1
    assert "there is nothing to put back" in capsys.readouterr().err


def test_what_has_a_successor_stays_in_the_trash(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "orders"]) == 0
    (checkpoint(job) / TABLE).write_bytes(b"another")
    assert exit_code(["sweep", "orders", "--undo"]) == 0
    said = capsys.readouterr().out
    assert "2 entries are back" in said
    assert f"spark/sums/{TABLE} stays in the trash" in said
    assert (checkpoint(job) / TABLE).read_bytes() == b"another"


def test_beside_a_leader_only_what_is_older_goes(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders"):
        place = checkpoint(job)
        assert exit_code(["sweep", "orders", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["queries"]
        assert (row["files"], row["waiting"], row["waiting_bytes"]) == (0, 3, 15)
        assert tree(place) >= ORPHANS
        line = max(path.stat().st_mtime for path in place.parents[1].glob("history/0000000001-*"))
        for path in (TABLE, VERSION):
            os.utime(place / path, (line - 61, line - 61))
        os.utime(place / TEMPORARY, (line - 60, line - 60))
        assert exit_code(["sweep", "orders", "--remove", "sums"]) == 1
        assert "is led: stop it" in capsys.readouterr().err
        assert exit_code(["sweep", "orders"]) == 0
        assert "1 more, 5 bytes, may be younger" in capsys.readouterr().out
        assert tree(place) & ORPHANS == {TEMPORARY}


def test_copies_and_revived_directories_go_as_well(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    present = checkpoint(job).parents[1]
    (present / "adopting/totals/abc/tree").mkdir(parents=True)
    old = job / f"0000000000-{UUID}3"
    (old / "spark/sums/state").mkdir(parents=True)
    other = job / f"0000009999-{UUID}3"  # a higher epoch: made by hand
    other.mkdir()
    assert exit_code(["sweep", "orders", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["copies"], said["revived"]) == (["totals"], [old.name])
    assert not old.exists()
    assert other.exists()
    present = checkpoint(job).parents[1]
    assert not (present / "adopting/totals").exists()
    assert exit_code(["sweep", "orders", "--undo"]) == 0
    assert (old / "spark/sums/state").is_dir()
    assert list(job.glob("0*/adopting/totals/abc"))


def test_a_removed_query_goes_as_a_whole(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "orders", "--remove", "weekly"]) == 1
    assert "There is no checkpoint of a query 'weekly': there are sums." in capsys.readouterr().err
    assert exit_code(["sweep", "orders", "--remove", "sums"]) == 0
    assert "`ha trash restore orders --query sums` brings it back" in capsys.readouterr().out
    assert not list(job.glob("0*/spark/sums"))
    assert exit_code(["trash", "restore", "orders", "--query", "sums"]) == 0
    assert tree(checkpoint(job)) >= ORPHANS


def test_a_damaged_checkpoint_is_not_swept(
    job: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ha.checkpoints.verify.AGAIN_S", 0.0)
    (checkpoint(job) / "offsets/5").unlink()
    assert exit_code(["sweep", "orders"]) == 0
    assert "sums: nothing is swept. Batch 5 is damaged" in capsys.readouterr().out
    assert tree(checkpoint(job)) >= ORPHANS


def test_a_directory_is_swept_by_its_uri(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = written(tmp_path / "query")
    litter(place)
    before = tree(place)
    assert exit_code(["sweep", place.as_uri()]) == 0
    assert "query: 0 files" in capsys.readouterr().out
    assert exit_code(["sweep", place.as_uri(), "--older-than", "0"]) == 0
    assert tree(place) == before - ORPHANS
    assert len(tree(tmp_path / "_swept-query")) == 3
    assert exit_code(["sweep", place.as_uri(), "--undo"]) == 0
    assert tree(place) == before
    assert exit_code(["sweep", place.as_uri(), "--remove", "sums"]) == 2


def test_what_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "nowhere"]) == 3
    assert exit_code(["sweep", (tmp_path / "nothing").as_uri()]) == 1
    assert "nothing" in capsys.readouterr().err


def test_only_what_has_been_in_the_trash_for_long_is_deleted(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "orders"]) == 0
    (old,) = job.glob("0*/trash/*")
    litter(checkpoint(job))
    assert exit_code(["sweep", "orders"]) == 0
    (old,) = job.glob(f"0*/trash/{old.name}")
    at = old.stat().st_mtime - 86_401
    os.utime(old, (at, at))
    capsys.readouterr()
    assert exit_code(["trash", "empty", "orders", "--older-than", "2"]) == 0
    assert "deleted nothing" in capsys.readouterr().out
    assert exit_code(["trash", "empty", "orders", "--older-than", "1"]) == 0
    assert f"deleted {old.name}" in capsys.readouterr().out
    assert len(list(job.glob("0*/trash/*"))) == 1
    assert exit_code(["trash", "empty", "orders"]) == 0
    assert not list(job.glob("0*/trash/*"))
