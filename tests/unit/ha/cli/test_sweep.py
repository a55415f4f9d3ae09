"""``ha checkpoint sweep``: of a job at rest, beside a leader, of a directory by URI, and back."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.leadership.leadership import Leadership
from ha.spark.tools import import_checkpoint
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.command_line import CommandLine

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
        import_checkpoint(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
        place = home(leadership)
    litter(place)
    return place.parents[2]


def checkpoint(job: Path) -> Path:
    (found,) = job.glob("0*/spark/sums")
    return found


def test_a_job_at_rest_is_swept_and_put_back(job: Path, cli: CommandLine) -> None:
    before = tree(checkpoint(job))
    assert "nothing was moved" in cli("checkpoint sweep orders --dry-run").out
    assert tree(checkpoint(job)) == before
    said = cli("checkpoint sweep orders").out
    assert said.startswith("sums: 3 files, 15 bytes: 1 temporary, 1 version, 1 table\nmoved into the trash (")
    assert tree(checkpoint(job)) == before - ORPHANS
    cli("checkpoint verify orders")
    assert "spark/sums/..." in cli("trash list orders").out
    assert "3 entries are back" in cli("checkpoint sweep orders --undo").out
    assert tree(checkpoint(job)) == before
    assert "there is nothing to put back" in cli("checkpoint sweep orders --undo", code=1).err


def test_what_has_a_successor_stays_in_the_trash(job: Path, cli: CommandLine) -> None:
    cli("checkpoint sweep orders")
    (checkpoint(job) / TABLE).write_bytes(b"another")
    said = cli("checkpoint sweep orders --undo").out
    assert "2 entries are back" in said
    assert f"spark/sums/{TABLE} stays in the trash" in said
    assert (checkpoint(job) / TABLE).read_bytes() == b"another"


def test_beside_a_leader_only_what_is_older_goes(job: Path, cli: CommandLine) -> None:
    with ha.lead("orders"):
        place = checkpoint(job)
        (row,) = cli("checkpoint sweep orders --json").json["queries"]
        assert (row["files"], row["waiting"], row["waiting_bytes"]) == (0, 3, 15)
        assert tree(place) >= ORPHANS
        line = max(path.stat().st_mtime for path in place.parents[1].glob("history/0000000001-*"))
        for path in (TABLE, VERSION):
            os.utime(place / path, (line - 61, line - 61))
        os.utime(place / TEMPORARY, (line - 60, line - 60))
        assert "is led: stop it" in cli("checkpoint sweep orders --remove sums", code=1).err
        assert "1 more, 5 bytes, may be younger" in cli("checkpoint sweep orders").out
        assert tree(place) & ORPHANS == {TEMPORARY}


def test_copies_and_revived_directories_go_as_well(job: Path, cli: CommandLine) -> None:
    present = checkpoint(job).parents[1]
    (present / "importing/totals/abc/tree").mkdir(parents=True)
    old = job / f"0000000000-{UUID}3"
    (old / "spark/sums/state").mkdir(parents=True)
    other = job / f"0000009999-{UUID}3"  # a higher epoch: made by hand
    other.mkdir()
    said = cli("checkpoint sweep orders --json").json
    assert (said["copies"], said["revived"]) == (["totals"], [old.name])
    assert not old.exists()
    assert other.exists()
    present = checkpoint(job).parents[1]
    assert not (present / "importing/totals").exists()
    cli("checkpoint sweep orders --undo")
    assert (old / "spark/sums/state").is_dir()
    assert list(job.glob("0*/importing/totals/abc"))


def test_a_removed_query_goes_as_a_whole(job: Path, cli: CommandLine) -> None:
    assert "`ha trash restore orders --query sums` brings it back" in cli("checkpoint sweep orders --remove sums").out
    assert not list(job.glob("0*/spark/sums"))
    cli("trash restore orders --query sums")
    assert tree(checkpoint(job)) >= ORPHANS


def test_a_damaged_checkpoint_is_not_swept(job: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ha.checkpoints.verify.AGAIN_S", 0.0)
    (checkpoint(job) / "offsets/5").unlink()
    assert "sums: nothing is swept. Batch 5 is damaged" in cli("checkpoint sweep orders").out
    assert tree(checkpoint(job)) >= ORPHANS


def test_a_directory_is_swept_by_its_uri(tmp_path: Path, cli: CommandLine) -> None:
    place = written(tmp_path / "query")
    litter(place)
    before = tree(place)
    assert "query: 0 files" in cli("checkpoint sweep", place.as_uri()).out
    cli("checkpoint sweep", place.as_uri(), "--older-than", "0")
    assert tree(place) == before - ORPHANS
    assert len(tree(tmp_path / "_swept-query")) == 3
    cli("checkpoint sweep", place.as_uri(), "--undo")
    assert tree(place) == before
    cli("checkpoint sweep", place.as_uri(), "--remove", "sums", code=2)


def test_only_what_has_been_in_the_trash_for_long_is_deleted(job: Path, cli: CommandLine) -> None:
    cli("checkpoint sweep orders")
    (old,) = job.glob("0*/trash/*")
    litter(checkpoint(job))
    cli("checkpoint sweep orders")
    (old,) = job.glob(f"0*/trash/{old.name}")
    at = old.stat().st_mtime - 86_401
    os.utime(old, (at, at))
    assert "deleted nothing" in cli("trash empty orders --yes --older-than 2").out
    assert f"deleted {old.name}" in cli("trash empty orders --yes --older-than 1").out
    assert len(list(job.glob("0*/trash/*"))) == 1
    cli("trash empty orders --yes")
    assert not list(job.glob("0*/trash/*"))
