"""``ha promote``: a replica becomes the job, cut to its newest closure; no replicator goes on, nor the old side."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ha
from ha.cli.commands import exit_code
from ha.spark import adopt
from ha.spark.replication import marks, promoting
from leader.errors import Fenced
from leader.job.admin import JobAdmin
from leader.job.status import JobStatus
from store.open import open_files
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.checkpoints.test_inputs import OLD, on_hdfs
from tests.unit.ha.cli.test_replicate import Sides, closure_of, sides

__all__ = ["sides"]

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]


def promote(sides: Sides, *more: str) -> int:
    return exit_code(["promote", "orders", "--files", sides.there, *more])


def job_files(sides: Sides, query: str = "daily", root: str = "there") -> dict[str, bytes]:
    (home,) = (sides.folder / root / "orders").glob(f"0*/spark/{query}")
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def status(root: str) -> ha.Status:
    with open_files(root) as files:
        return JobStatus(JobAdmin(files, None, 5.0).directory("orders")).read()


def test_the_job_goes_on_from_the_newest_closure(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert sides.replicate("--once") == 0
    assert promote(sides, "--json") == 0
    assert job_files(sides) == closure_of(3)
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["source"] == f"{sides.here}/orders"
    (query,) = said["queries"]
    assert (query["query"], query["batch"], query["newest"]) == ("daily", 3, 3)


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_within_a_group_a_job_is_moved_and_not_promoted(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    assert sides.replicate("--once") == 0
    config = sides.folder / "group.toml"
    config.write_text(f'[groups.main]\nfiles = ["{sides.here}/", "{sides.there}"]\n')
    monkeypatch.setenv("HA_CONFIG", str(config))
    assert promote(sides, *more) == 1
    assert f"`ha move orders --to {sides.there}`" in capsys.readouterr().err
    assert not (sides.folder / "there/orders").exists()
    monkeypatch.delenv("HA_CONFIG")
    monkeypatch.setenv("HA_FILES", f"{sides.here},{sides.there}")
    assert promote(sides, *more) == 1
    monkeypatch.setenv("HA_FILES", f"{sides.there},{sides.folder.as_uri()}/third")
    assert promote(sides, *more) == 0, "the old side is another group"


def test_what_an_interrupted_round_has_left_is_cut_off(sides: Sides) -> None:
    assert sides.replicate("--once") == 0
    (home,) = (sides.folder / "there/orders.replica").glob("0*/spark/daily")
    state = "state/0/0/left"
    for path in ("offsets/4", f"{state}/5_0000.changelog", "sources/0/4"):
        (home / path).write_bytes(b"of the next batch")
    assert promote(sides) == 0
    assert job_files(sides) == closure_of(3)


def test_dry_run_says_what_it_would_go_on_from(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert sides.replicate("--once") == 0
    capsys.readouterr()
    assert promote(sides, "--dry-run") == 0
    said = capsys.readouterr().out
    assert "daily goes on after batch 3" in said
    assert "nothing was changed" in said
    assert not (sides.folder / "there/orders").exists()
    sides.commit(4)
    assert sides.replicate("--once") == 0, "nothing was marked"


def test_an_input_that_stays_at_the_old_side_is_told_before_anything_changes(
    sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    place = on_hdfs(until_batch(ROCKSDB_IDS, 2)).write_to(sides.folder / "sums")
    with sides.leading(sides.here) as leadership:
        adopt(leadership, "sums", place.as_uri())
    assert sides.replicate("--once") == 0
    capsys.readouterr()
    assert promote(sides, "--dry-run", "--json") == 0
    said = capsys.readouterr()
    assert {each["query"]: each["inputs"] for each in json.loads(said.out)["queries"]} == {
        "daily": ["file:///in"],
        "sums": [f"{OLD}/out/clean"],
    }
    assert f"orders: sums has read files of {OLD}/out/clean, which is on another file system" in said.err
    assert "daily" not in said.err
    assert promote(sides, "--old-files", "file:///nowhere/at/all") != 0
    assert f"{OLD}/out/clean" in capsys.readouterr().err, "told although nothing was changed"


def test_the_replication_ends_and_can_begin_again(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert sides.replicate("--once") == 0
    assert promote(sides) == 0
    sides.commit(4)
    assert sides.replicate("--once") == 1
    assert sides.replicate() == 1, "nor does one that goes on for ever"
    assert "was promoted: it runs there now, and must not run here" in capsys.readouterr().err
    assert sides.replicate("--status") == 0
    assert ", promoted" in capsys.readouterr().out
    assert sides.replicate("--once", "--again") == 0
    assert sides.replica() == closure_of(4)
    assert promote(sides) == 1
    assert "has a checkpoint of query 'daily' already: add --replace" in capsys.readouterr().err
    assert promote(sides, "--replace") == 0
    assert job_files(sides) == closure_of(4)
    assert exit_code(["trash", "restore", "orders", "--query", "daily", "--files", sides.there]) == 0
    assert job_files(sides) == closure_of(3)


def test_a_second_promotion_has_nothing_to_do(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert promote(sides) == 3
    assert "There is no replica of job 'orders' here" in capsys.readouterr().err
    assert sides.replicate("--once") == 0
    assert promote(sides) == 0
    assert promote(sides) == 1
    assert "was promoted before" in capsys.readouterr().err
    assert promote(sides, "--old-files", sides.here) == 0, "the old side is back"
    assert status(sides.here) is ha.Status.CANCELED
    assert job_files(sides) == closure_of(3)


def test_an_interrupted_promotion_goes_on(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    sides.commit(2, "weekly")
    assert sides.replicate("--once") == 0
    move_in = promoting.move_in

    def dies(*of: object) -> str:
        if getattr(of[-1], "query", "") == "weekly":
            raise KeyboardInterrupt
        return move_in(*of)  # type: ignore[arg-type]

    monkeypatch.setattr(promoting, "move_in", dies)
    assert promote(sides) == 130
    monkeypatch.undo()
    assert promote(sides) == 0
    assert job_files(sides) == closure_of(3)
    assert job_files(sides, "weekly") == closure_of(2)


def test_the_old_side_must_not_run_again_and_this_side_may(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert sides.replicate("--once") == 0
    assert promote(sides, "--old-files", sides.here) == 0
    assert f"{sides.here} must not run again" in capsys.readouterr().out
    assert status(sides.here) is ha.Status.CANCELED
    # ... and back: the old side has what it had, and is not fenced any more.
    there, sides.here, sides.there = sides.here, sides.there, sides.here
    assert sides.replicate("--once") == 0
    assert exit_code(["promote", "orders", "--files", there, "--replace", "--old-files", sides.here]) == 0
    assert (status(sides.here), status(there)) == (ha.Status.CANCELED, ha.Status.CREATED)
    assert job_files(sides, root="here") == closure_of(3)


def test_an_old_side_that_does_not_answer_stops_the_promotion(sides: Sides) -> None:
    assert sides.replicate("--once") == 0
    assert promote(sides, "--old-files", (sides.folder / "nowhere").as_uri()) == 3
    assert not (sides.folder / "there/orders").exists()
    assert promote(sides, "--old-files", sides.there) == 1


@pytest.mark.slow
def test_a_leader_at_the_old_side_that_is_silent_is_overruled(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert sides.replicate("--once") == 0
    with sides.leading(sides.here):  # it takes no requests
        assert promote(sides, "--old-files", sides.here, "--timeout", "2") == 0
        assert "its leader has not answered in 2 s" in capsys.readouterr().out
        assert status(sides.here) is ha.Status.CANCELED


def test_a_replicator_that_runs_gives_way(sides: Sides) -> None:
    command = [sys.executable, "-m", "ha.cli", "replicate", "orders", "--to", sides.there, "--files", sides.here]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert "daily is at batch 3" in other.stdout.readline()
        assert promote(sides, "--timeout", "60") == 0
        _, said = other.communicate(timeout=60)
    assert other.returncode == 1
    assert "was promoted" in said
    assert job_files(sides) == closure_of(3)


def test_a_replicator_that_takes_over_meanwhile_is_looked_past(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sides.replicate("--once") == 0
    for module, name in ((promoting, "look"), (marks, "mark")):
        fenced = iter([Fenced("Epoch 1 is over.")])
        real = getattr(module, name)

        def first_fenced(*given: Any, fenced: Iterator[Fenced] = fenced, real: Callable[..., Any] = real) -> Any:
            for error in fenced:
                raise error
            return real(*given)

        monkeypatch.setattr(module, name, first_fenced)
    assert promote(sides) == 0
    assert job_files(sides) == closure_of(3)
