"""Rewinding: a query goes back to a batch with its outputs, whole or not at all, and back again."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.leadership.fenced_rename import FencedRename
from ha.outputs.folder import OutputFolder
from ha.outputs.lines import Line
from ha.outputs.setting_aside import SettingAside
from ha.spark import Output, checkpoint_location
from ha.spark.checkpoint_tools.rewinding import Rewinding
from ha.spark.rewind import completing
from ha.spark.rewind.completing import RewindPlan, complete, settle
from ha.spark.rewind.published import ASIDE, KEEP, PublishedBatches
from leader.errors import ForeignBatch, NoLeader
from leader.job.cleanup import Cleanup
from leader.job.status import Status
from store.errors import AlreadyExists, Conflict, ConnectionLost, Invalid, NotFound, StoreError
from store.local import LocalFiles
from tests.system.spark.batches import batch, found, line_of, shifts_in
from tests.unit.ha.checkpoints.led_spark import LedSpark
from tests.unit.ha.checkpoints.simulated_spark import FORMATS
from tests.unit.ha.checkpoints.test_closure import closed
from tests.unit.ha.spark.checkpoint_tools.place import JOB, QUERY, LedJob, Place, checkpoint, led
from tests.unit.ha.spark.checkpoint_tools.test_exporting import after

State = tuple[dict[str, bytes], dict[str, str], set[str]]
"""Of the query: its checkpoint, what readers see, and where numbers are shifted."""


class Job(LedJob):
    """A job with a query, led by this process; its query runs when a method is called."""

    def output(self, name: str = "clean") -> Output:
        return Output(self.leadership, (self.root / "out" / name).as_uri(), name, partition_by=["day"])

    def commit(self, newest: int, query: str = QUERY) -> None:
        home = self.home / "spark" / query
        shutil.rmtree(home, ignore_errors=True)
        self.place.write(self.place.below(self.leadership.path(f"spark/{query}")), checkpoint(newest))

    def publish(self, batches: range, rows: str, name: str = "clean") -> list[bool]:
        line = Line("aa", "sums") if name == "sums" else line_of(self.leadership, QUERY)
        with self.output(name) as output:
            days = [{f"day={day}": f"{rows}{each}" for day in (1, 2)} for each in batches]
            return [output.write(batch(day, line=line), each) for day, each in zip(days, batches, strict=True)]

    @property
    def rewinding(self) -> Rewinding:
        return Rewinding(self.files, JOB, QUERY, self.leadership.own.leader)

    def rewind(self, to: int, choice: str) -> RewindPlan:
        return self.rewinding.rewind(self.leadership, to, choice)

    def undo(self) -> RewindPlan:
        return self.rewinding.undo(self.leadership)

    @property
    def state(self) -> State:
        files = self.home / "spark" / QUERY
        there = {str(each.relative_to(files)): each.read_bytes() for each in files.rglob("*") if each.is_file()}
        shifts = shifts_in(self.home, "*")
        return {name: data for name, data in there.items() if ".crc" not in name}, self.seen, shifts

    @property
    def seen(self) -> dict[str, str]:
        return {
            path.removeprefix("day=1/"): rows for path, rows in found(self.root, "clean").items() if "day=1" in path
        }


def numbered(rows: str, batches: range, shift: int = 0) -> dict[str, str]:
    return {f"batch={each + shift}": f"{rows}{each}" for each in batches}


@pytest.fixture
def job(local: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    """The query has committed batch 5, and its output has published batch 6, which it has begun."""
    with led(Job, local, tmp_path, monkeypatch) as made:
        made.commit(5)
        made.publish(range(7), "old")
        yield made


@pytest.mark.slow
def test_without_a_rewind_a_replay_is_dropped(job: Job) -> None:
    """The reason for a rewind: an output refuses what comes by any other way."""
    with pytest.raises(ForeignBatch, match=r"batch 4 of query 'daily' .* batches after it, up to 6; its"):
        job.publish(range(4, 8), "new")
    assert job.publish(range(6, 8), "new") == [False, True]
    assert job.seen == {**numbered("old", range(7)), "batch=7": "new7"}


def test_batches_go_aside_and_the_replay_has_their_numbers(job: Job) -> None:
    outlook = job.rewinding.look(3)
    assert (outlook.batch, outlook.newest, outlook.begun) == (3, 5, True)
    (concerned,) = outlook.outputs
    assert (concerned.output, concerned.first, concerned.last, concerned.files) == ("clean", 4, 6, 6)
    plan = job.rewind(3, ASIDE)
    assert job.state == (after(3), numbered("old", range(4)), set())
    assert job.publish(range(4, 9), "new") == [True] * 5
    assert job.seen == {**numbered("old", range(4)), **numbered("new", range(4, 9))}
    (trashed,) = Cleanup(job.leadership.own).trash()
    assert (trashed.name, trashed.folders) == (plan.trash, (f"spark/{QUERY}",))


def test_batches_are_kept_and_the_replay_has_numbers_after_them(job: Job) -> None:
    job.rewind(3, KEEP)
    assert job.state == (after(3), numbered("old", range(7)), {"line=0~4~3"})
    assert job.publish(range(4, 6), "new") == [True, True]
    assert job.publish(range(5, 7), "again") == [False, True], "after a crash only what is not there"
    assert job.seen == {**numbered("old", range(7)), **numbered("new", range(4, 6), 3), "batch=9": "again6"}


def test_a_rewind_after_a_rewind(job: Job) -> None:
    job.rewind(3, KEEP)
    job.publish(range(4, 6), "new")  # 7 and 8
    job.commit(5)
    job.rewind(4, KEEP)
    assert job.publish(range(5, 6), "third") == [True]
    assert job.seen == {**numbered("old", range(7)), **numbered("new", range(4, 6), 3), "batch=9": "third5"}
    job.commit(5)
    job.rewind(4, ASIDE)
    assert job.seen == {**numbered("old", range(7)), "batch=7": "new4"}, "what went on after batch 4"
    assert job.publish(range(5, 6), "fourth") == [True]
    assert job.seen["batch=8"] == "fourth5"
    job.commit(5)
    job.rewind(3, ASIDE)
    assert job.state == (after(3), numbered("old", range(4)), set())
    assert job.publish(range(4, 5), "last") == [True]
    assert job.seen["batch=4"] == "last4"


@pytest.mark.parametrize("choice", [ASIDE, KEEP])
def test_a_rewind_is_undone_and_that_as_well(job: Job, choice: str) -> None:
    before = job.state
    job.rewind(3, choice)
    job.publish(range(4, 8), "new")
    job.commit(7)
    between = job.state
    outlook = job.rewinding.look_back()
    assert (outlook.batch, outlook.newest, [each.files for each in outlook.outputs]) == (5, 7, [8])
    job.undo()
    assert job.state == before
    assert job.publish(range(6, 8), "on") == [False, True], "batch 6 was decided"
    assert job.seen["batch=7"] == "on7"
    job.undo()
    assert job.state == between
    assert job.publish(range(7, 9), "on") == [False, True]
    job.undo()
    assert job.seen == {**numbered("old", range(7)), "batch=7": "on7"}


@pytest.mark.slow
@pytest.mark.parametrize("names", [["00000000", "ffffffff"], ["ffffffff", "00000000"]])
def test_of_two_rewinds_in_one_leadership_the_newer_one_is_undone(job: Job, names: list[str]) -> None:
    """Whatever the names of their folders in the trash are."""
    for to, name in zip((3, 4), names, strict=True):
        job.commit(5)
        before = job.state
        known = set(job.home.glob("trash/*"))
        trash = job.rewind(to, ASIDE).trash
        (folder,) = set(job.home.glob("trash/*")) - known
        plan = folder / f"rewound={QUERY}" / "plan"
        plan.write_bytes(plan.read_bytes().replace(trash.encode(), name.encode()))
        folder.rename(folder.with_name(name))
    job.undo()
    assert job.state == before


@pytest.mark.slow
def test_an_undo_takes_back_what_an_output_has_published_since_if_it_had_nothing_later_then(job: Job) -> None:
    """Found by a rescale, which always goes to the newest batch: the replay of batch 7 was dropped as known."""
    job.commit(6)
    before = job.state
    job.rewind(6, ASIDE)
    job.publish(range(7, 9), "new")
    job.commit(8)
    job.undo()
    assert job.state == before
    assert job.publish(range(7, 8), "old") == [True]


def test_what_is_decided_and_not_complete_follows_too(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    before = job.seen
    with job.output() as output, monkeypatch.context() as patch:
        patch.setattr(output._journal._moving, "move", lambda *_: (_ for _ in ()).throw(ConnectionLost("dead")))
        with pytest.raises(ConnectionLost):
            output.write(batch({"day=1": "half"}, line=line_of(job.leadership, QUERY)), 7)
    job.rewind(6 - 1, ASIDE)
    assert job.seen == numbered("old", range(6))
    job.undo()
    assert job.seen == before
    assert job.publish(range(7, 8), "new") == [False], "it is completed, and its rows are those that were decided"
    assert job.seen["batch=7"] == "half"


def test_what_readers_have_taken_away_is_no_obstacle(job: Job) -> None:
    shutil.rmtree(job.root / "out/clean/day=1/batch=5")
    job.rewind(3, ASIDE)
    assert job.seen == numbered("old", range(4))
    job.undo()
    assert job.seen == {**numbered("old", range(5)), "batch=6": "old6"}


def test_only_the_outputs_of_the_query_follow(job: Job) -> None:
    job.publish(range(7), "other", "sums")
    job.commit(3, "sums")
    assert [each.output for each in job.rewinding.look(3).outputs] == ["clean"]
    job.rewinding.rewind(job.leadership, 3, ASIDE)
    assert job.seen == numbered("old", range(4))
    assert len(found(job.root, "sums")) == 14


def test_what_cannot_be_put_back_is_left_alone(job: Job) -> None:
    before = job.state
    with pytest.raises(Invalid, match="Batch 6 of query 'daily' is not retained: take one from 0 to 5"):
        job.rewind(6, ASIDE)
    with pytest.raises(NotFound, match="nothing to undo"):
        job.undo()
    (job.home / f"spark/{QUERY}/state/0/0/3.delta").rename(job.root / "hole")
    with pytest.raises(Invalid, match=r"Batch 3 .* cannot be continued. state/0/0/3.delta: It is missing"):
        job.rewinding.look(3)
    with pytest.raises(Invalid, match="cannot be continued"):
        job.rewind(3, ASIDE)
    (job.root / "hole").rename(job.home / f"spark/{QUERY}/state/0/0/3.delta")
    (record,) = job.home.glob("out/clean-*/done/0/5/files=*")
    record.rmdir()
    with pytest.raises(Invalid, match="the record of batch 5 is missing or damaged: keep it, with --outputs keep"):
        job.rewind(3, ASIDE)
    assert job.state == before
    job.rewind(5, ASIDE)
    assert job.seen == numbered("old", range(6))


@pytest.mark.slow
def test_records_that_were_forgotten_are_missed(job: Job) -> None:
    (done,) = job.home.glob("out/clean-*/done/0")
    done.rename(done.parent / "1")
    for old in sorted((done.parent / "1").iterdir()):
        old.rename(old.parent / f"{1000 + int(old.name)}")
    with pytest.raises(Invalid, match="its records begin at batch 1000"):
        job.rewind(3, ASIDE)
    job.rewind(3, KEEP)
    assert job.publish(range(4, 5), "new") == [True]
    assert job.seen["batch=1007"] == "new4"


def test_an_undo_of_what_is_gone_is_refused(job: Job) -> None:
    job.rewind(3, ASIDE)
    (out,) = job.home.glob("out/clean-*")
    out.rename(job.root / "discarded")
    with pytest.raises(Conflict, match="Output 'clean' has been discarded"):
        job.undo()
    (job.root / "discarded").rename(out)
    Cleanup(job.leadership.own).empty()
    with pytest.raises(NotFound, match="the trash was emptied"):
        job.undo()


def test_a_batch_in_the_way_of_an_undo_is_named(job: Job) -> None:
    job.rewind(3, ASIDE)
    stranger = job.root / "out/clean/day=1/batch=5"
    stranger.mkdir()
    with pytest.raises(AlreadyExists, match="move that one away"):
        job.undo()
    stranger.rmdir()
    assert [plan.batch for plan in complete(job.leadership, job.leadership.own)] == [5]
    assert job.seen == numbered("old", range(7))


@pytest.mark.slow
def test_a_job_that_does_not_exist_has_nothing_to_put_back(job: Job) -> None:
    with pytest.raises(NoLeader):
        Rewinding(job.leadership.open_files(job.place.jobs), "nobody", QUERY)


def test_whoever_leads_next_completes_it_before_a_query_or_an_output(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("ha.spark.checkpoint_tools.replacing.complete", lambda *_: None)
        job.rewind(3, ASIDE)
    assert len(job.seen) == 7
    for begin in (lambda: checkpoint_location(job.leadership, QUERY), lambda: job.output().close()):
        before = copied(job)
        completing._settled.clear()  # as the next leader
        begin()
        assert (job.seen, job.state[0]) == (numbered("old", range(4)), after(3))
        put(job, before)


def test_a_job_that_is_cleaned_up_is_not_put_back_any_more(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("ha.spark.checkpoint_tools.replacing.complete", lambda *_: None)
        job.rewind(3, KEEP)
    job.leadership.status.change(Status.CREATED, Status.RUNNING)
    job.leadership.status.change(Status.RUNNING, Status.FINISHED)
    cleanup = Cleanup(job.leadership.own)
    cleanup.clean()
    assert complete(job.leadership, job.leadership.own) == []
    cleanup.restore()
    assert [plan.batch for plan in complete(job.leadership, job.leadership.own)] == [3]
    assert job.state[0] == after(3)
    with pytest.raises(NotFound, match="nothing to undo"):
        Rewinding(job.files, JOB, "other", job.leadership.own.leader).undo(job.leadership)


@pytest.mark.slow
def test_a_thousand_is_looked_at_only_if_it_has_a_later_batch(job: Job) -> None:
    (out,) = job.home.glob("out/clean-*")
    for each in (998, 999, 1000):
        shutil.copytree(out / "done/0/5", out / f"done/{each // 1000}/{each}")
    with closing(FencedRename(job.leadership, (job.root / "out/clean").as_uri())) as renames:
        aside = SettingAside(OutputFolder(renames, f"{renames.inside}/out/{out.name}", "clean"))
        assert sorted(aside._batches(998)) == [999, 1000]
        assert sorted(aside._batches(999)) == [1000]
        assert sorted(aside._batches(1000)) == []


@pytest.mark.parametrize(("to", "allowed"), [(998, False), (999, True)])
def test_records_have_to_begin_right_after_the_batch(job: Job, to: int, allowed: bool) -> None:
    (out,) = job.home.glob("out/clean-*")
    (out / "done/0").rename(out / "done/1")
    for old in sorted((out / "done/1").iterdir()):
        old.rename(old.parent / f"{1000 + int(old.name)}")
    published = PublishedBatches(lambda: job.leadership.own, QUERY)
    (later,) = published.after(to)
    assert (later.stays, later.ids[0]) == (to, 1000)
    if allowed:
        assert published.rewound(later, to, ASIDE).stays == to
    else:
        with pytest.raises(Invalid, match="its records begin at batch 1000"):
            published.rewound(later, to, ASIDE)


def test_a_batch_that_was_not_committed_gets_the_next_number_and_more_are_refused(job: Job) -> None:
    published = PublishedBatches(lambda: job.leadership.own, QUERY)
    (none,), (one,), (more,) = (published.after(each) for each in (6, 5, 3))
    for later, to, shifted in ((none, 6, False), (one, 5, True)):
        found = published.renumbered(later, to)
        assert (found.stays, any("~-1~" in each for each in found.lines)) == (6, shifted)
    with pytest.raises(Invalid, match="has published batches 4 to 6, which the query has not committed"):
        published.renumbered(more, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_each_restorable_batch_is_left_as_a_closure_that_restarts_and_comes_back_whole(job: Job, kind: str) -> None:
    simulated = LedSpark(kind, Random(7), retained=3)  # noqa: S311
    simulated.claim()
    for path in simulated.run():
        if path == "offsets/8":  # the next batch is under way
            break
    shutil.rmtree(job.home / "spark" / QUERY)
    simulated.write_to(job.home / "spark" / QUERY)
    whole = job.state
    assert whole[0] == simulated.files
    names = CheckpointFiles(simulated.sizes())
    found = {each: closed(simulated.files, each) for each in names.batches}
    assert sum(each.restorable for each in found.values()) >= 3
    for number, closure in found.items():
        if not closure.restorable:
            with pytest.raises(Invalid, match=f"Batch {number} of query"):
                job.rewind(number, ASIDE)
            continue
        job.rewind(number, ASIDE)
        left = job.state[0]
        assert left.keys() == closure.files.keys() | closure.rebuilt.keys()
        assert all(left[path] == simulated.files[path] for path in closure.files)
        assert closed(left, number).rebuilt == {}, "nothing is lacking any more"
        again = LedSpark(kind, Random(8), dict(left), lineages=dict(simulated.lineages))  # noqa: S311
        assert again.asked(number) <= left.keys(), "Spark's own way to that version"
        again.claim()
        assert next(path for path in again.run() if path.startswith("commits/")) == f"commits/{number + 1}"
        job.undo()
        assert job.state == whole
        Cleanup(job.leadership.own).empty()  # the next undo is of the next rewind, in the same epoch


def copied(job: Job) -> Path:
    kept = job.root / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(job.home, kept / "home")
    shutil.copytree(job.root / "out", kept / "out")
    return kept


def put(job: Job, kept: Path) -> None:
    for folder in ("spark", "out", "trash", "rewinding", "staged"):
        shutil.rmtree(job.home / folder, ignore_errors=True)
        if (kept / "home" / folder).exists():
            shutil.copytree(kept / "home" / folder, job.home / folder)
    shutil.rmtree(job.root / "out")
    shutil.copytree(kept / "out", job.root / "out")


OWN = ("rewinding", "spark", "out/", "trash", "staged", "batch=")


class Dying:
    """A store that executes so many changes for the rewind, and then no more; the last may still be executed."""

    def __init__(self, patch: pytest.MonkeyPatch, calls: int, *, executed: bool) -> None:
        self.left = calls
        for name in ("rename", "make_directory", "delete", "write"):
            patch.setattr(LocalFiles, name, self.dying(getattr(LocalFiles, name), executed))

    def dying(self, call: Callable[..., Any], executed: bool) -> Callable[..., Any]:
        def called(files: LocalFiles, path: str, *more: Any, **others: Any) -> Any:
            here = f"{path}{more}"
            copying = "/parts" in here or "/tree" in here  # adoptions try those
            if not copying and any(each in here for each in OWN):
                if self.left <= 0:
                    if self.left == 0 and executed:
                        self.left -= 1
                        call(files, path, *more, **others)
                    raise ConnectionLost("the process is dead")
                self.left -= 1
            return call(files, path, *more, **others)

        return called


@pytest.mark.slow
@pytest.mark.parametrize(("what", "executed"), [(ASIDE, False), (ASIDE, True), (KEEP, True), (f"undo {ASIDE}", True)])
def test_a_crash_leaves_old_or_new(job: Job, monkeypatch: pytest.MonkeyPatch, what: str, executed: bool) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    choice = what.removeprefix("undo ")
    if what.startswith("undo"):
        job.rewind(4, choice)
        job.publish(range(5, 7), "new")
        job.commit(5)
        change: Callable[[], object] = job.undo
    else:
        change = lambda: job.rewind(4, choice)  # noqa: E731
    before, kept = job.state, copied(job)
    shutil.copytree(kept, job.root / "first")
    change()
    new, calls, ended = job.state, 0, set()
    assert new != before
    while True:
        put(job, job.root / "first")
        with pytest.MonkeyPatch.context() as patch:
            Dying(patch, calls, executed=executed)
            try:
                change()
            except StoreError:
                pass
            else:
                break
        complete(job.leadership, job.leadership.own)
        assert job.state in (before, new), calls
        ended.add(job.state == new)
        if job.state == before and calls % 4 == 0:
            change()
            assert job.state == new, calls
        calls += 1
    assert calls > 12
    assert ended == {False, True}


@pytest.mark.slow
def test_a_rewind_is_completed_once_in_a_leadership(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "list", lambda *_: pytest.fail("it is listed"))
        settle(job.leadership)
