"""``ha replica promote``: a replica becomes the job, cut to its newest closure; replicators and the old side end."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ha
from ha.spark.replication import promotion
from ha.spark.tools import import_checkpoint
from leader.errors import Fenced
from leader.job.admin import JobAdmin
from leader.job.status import JobStatus
from store.open import open_files
from tests.limits import killed
from tests.patience import PATIENCE_S
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.checkpoints.test_inputs import OLD, on_hdfs
from tests.unit.ha.cli.test_replicate import Sides, closure_of, sides
from tests.unit.ha.command_line import Said

__all__ = ["sides"]

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]


@pytest.fixture
def replicated(sides: Sides) -> Sides:
    sides.replicate("--once")
    return sides


def promote(sides: Sides, *more: str, code: int = 0) -> Said:
    return sides.cli(f"replica promote orders --yes --files {sides.there}", *more, code=code)


def job_files(sides: Sides, query: str = "daily", root: str = "there") -> dict[str, bytes]:
    (home,) = (sides.folder / root / "orders").glob(f"0*/spark/{query}")
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def status(root: str) -> ha.Status:
    with open_files(root) as files:
        return JobStatus(JobAdmin(files, None, 5.0).directory("orders")).read()


def test_the_job_goes_on_from_the_newest_closure(replicated: Sides) -> None:
    said = promote(replicated, "--json").json
    assert job_files(replicated) == closure_of(3)
    assert said["source"] == f"{replicated.here}/orders"
    (query,) = said["queries"]
    assert (query["query"], query["batch"], query["newest"]) == ("daily", 3, 3)


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_within_a_group_a_job_is_moved_and_not_promoted(
    replicated: Sides, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    config = replicated.folder / "group.toml"
    config.write_text(f'[groups.main]\nfiles = ["{replicated.here}/", "{replicated.there}"]\n')
    monkeypatch.setenv("HA_CONFIG", str(config))
    assert f"`ha job move orders --to {replicated.there}`" in promote(replicated, *more, code=1).err
    assert not (replicated.folder / "there/orders").exists()
    monkeypatch.delenv("HA_CONFIG")
    monkeypatch.setenv("HA_FILES", f"{replicated.here},{replicated.there}")
    promote(replicated, *more, code=1)
    monkeypatch.setenv("HA_FILES", f"{replicated.there},{replicated.folder.as_uri()}/third")
    promote(replicated, *more)  # the old side is another group


def test_what_an_interrupted_round_has_left_is_cut_off(replicated: Sides) -> None:
    (home,) = (replicated.folder / "there/orders.replica").glob("0*/spark/daily")
    state = "state/0/0/left"
    for path in ("offsets/4", f"{state}/5_0000.changelog", "sources/0/4"):
        (home / path).write_bytes(b"of the next batch")
    promote(replicated)
    assert job_files(replicated) == closure_of(3)


def test_dry_run_says_what_it_would_go_on_from(replicated: Sides) -> None:
    said = promote(replicated, "--dry-run").out
    assert "daily goes on after batch 3" in said
    assert "nothing was changed" in said
    assert not (replicated.folder / "there/orders").exists()
    replicated.commit(4)
    replicated.replicate("--once")  # nothing was marked


def test_an_input_that_stays_at_the_old_side_is_told_before_anything_changes(sides: Sides) -> None:
    place = on_hdfs(until_batch(ROCKSDB_IDS, 2)).write_to(sides.folder / "sums")
    with sides.leading(sides.here) as leadership:
        import_checkpoint(leadership, "sums", place.as_uri())
    sides.replicate("--once")
    said = promote(sides, "--dry-run", "--json")
    assert {each["query"]: each["inputs"] for each in said.json["queries"]} == {
        "daily": ["file:///in"],
        "sums": [f"{OLD}/out/clean"],
    }
    assert f"orders: sums has read files of {OLD}/out/clean, which is on another file system" in said.err
    assert "daily" not in said.err
    refused = promote(sides, "--old-files", "file:///nowhere/at/all", code=3)
    assert f"{OLD}/out/clean" in refused.err, "told although nothing was changed"


def test_the_replication_ends_and_can_begin_again(replicated: Sides) -> None:
    promote(replicated)
    replicated.commit(4)
    for once in (("--once",), ()):
        assert "was promoted: it runs there now, and must not run here" in replicated.replicate(*once, code=1).err
    assert ", promoted" in replicated.ha("status").out
    replicated.replicate("--once", "--again")
    assert replicated.replica() == closure_of(4)
    assert "has a checkpoint of query 'daily' already: add --replace" in promote(replicated, code=1).err
    promote(replicated, "--replace")
    assert job_files(replicated) == closure_of(4)
    replicated.cli("trash restore orders --query daily --files", replicated.there)
    assert job_files(replicated) == closure_of(3)


def test_a_second_promotion_has_nothing_to_do(sides: Sides) -> None:
    assert "There is no replica of job 'orders' here" in promote(sides, code=3).err
    sides.replicate("--once")
    promote(sides)
    assert "was promoted before" in promote(sides, code=1).err
    promote(sides, "--old-files", sides.here)  # the old side is back
    assert status(sides.here) is ha.Status.CANCELED
    assert job_files(sides) == closure_of(3)


def test_an_interrupted_promotion_goes_on(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    sides.commit(2, "weekly")
    sides.replicate("--once")
    move_in = promotion.move_in

    def dies(*of: object) -> str:
        if getattr(of[-1], "query", "") == "weekly":
            raise KeyboardInterrupt
        return move_in(*of)  # type: ignore[arg-type]

    monkeypatch.setattr(promotion, "move_in", dies)
    promote(sides, code=130)
    monkeypatch.undo()
    promote(sides)
    assert job_files(sides) == closure_of(3)
    assert job_files(sides, "weekly") == closure_of(2)


def test_the_old_side_must_not_run_again_and_this_side_may(replicated: Sides) -> None:
    assert f"{replicated.here} must not run again" in promote(replicated, "--old-files", replicated.here).out
    assert status(replicated.here) is ha.Status.CANCELED
    # ... and back: the old side has what it had, and is not fenced any more.
    there, replicated.here, replicated.there = replicated.here, replicated.there, replicated.here
    replicated.replicate("--once")
    replicated.cli(f"replica promote orders --yes --files {there} --replace --old-files {replicated.here}")
    assert (status(replicated.here), status(there)) == (ha.Status.CANCELED, ha.Status.CREATED)
    assert job_files(replicated, root="here") == closure_of(3)


def test_it_is_refused_while_the_old_side_leads_and_asks_before_anything_changes(replicated: Sides) -> None:
    with replicated.leading(replicated.here):
        leads = f" leads job 'orders' at {replicated.here}, in epoch "
        assert leads in promote(replicated, code=1).err
        assert leads in promote(replicated, "--dry-run").err
    said = replicated.cli(f"replica promote orders --files {replicated.there}", code=2)
    assert "daily goes on after batch 3" in said.out
    assert not (replicated.folder / "there/orders").exists()
    with replicated.leading(replicated.here):
        promote(replicated, "--force")
    assert job_files(replicated) == closure_of(3)


def test_an_old_side_that_does_not_answer_stops_the_promotion(replicated: Sides) -> None:
    promote(replicated, "--old-files", (replicated.folder / "nowhere").as_uri(), code=3)
    assert not (replicated.folder / "there/orders").exists()
    promote(replicated, "--old-files", replicated.there, code=1)


@pytest.mark.slow
def test_a_leader_at_the_old_side_that_is_silent_is_overruled(replicated: Sides) -> None:
    with replicated.leading(replicated.here):  # it takes no requests
        assert (
            "its leader has not answered in 2 s"
            in promote(replicated, "--old-files", replicated.here, "--timeout", "2").out
        )
        assert status(replicated.here) is ha.Status.CANCELED


def test_a_replicator_that_runs_gives_way(sides: Sides) -> None:
    command = [sys.executable, "-m", "ha.cli", "replica", "run", "orders", "--to", sides.there, "--files", sides.here]
    with killed(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)) as other:
        assert other.stdout is not None
        assert "daily is at batch 3" in other.stdout.readline()
        promote(sides, "--timeout", "60")
        _, said = other.communicate(timeout=PATIENCE_S)
    assert other.returncode == 1
    assert "was promoted" in said
    assert job_files(sides) == closure_of(3)


def test_a_replicator_that_takes_over_meanwhile_is_looked_past(
    replicated: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_outlook", "mark"):
        fenced = iter([Fenced("Epoch 1 is over.")])
        real = getattr(promotion, name)

        def first_fenced(*given: Any, fenced: Iterator[Fenced] = fenced, real: Callable[..., Any] = real) -> Any:
            for error in fenced:
                raise error
            return real(*given)

        monkeypatch.setattr(promotion, name, first_fenced)
    promote(replicated)
    assert job_files(replicated) == closure_of(3)
