"""Adopting: a job takes in a checkpoint directory whole, once and under its fence, whatever happens on the way."""

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from ha.spark.checkpoint_tools.copying import CopyProgress
from ha.spark.tools import import_checkpoint
from leader.errors import Fenced, InvalidName
from store.errors import AlreadyExists, Conflict, Invalid, NotFound
from tests.patience import PATIENCE_S
from tests.unit.ha.spark.checkpoint_tools.place import QUERY, Place, checkpoint

FILES = checkpoint(3)


class Died(BaseException):
    """Ends a copy as the death of its process would: nothing catches it."""


def dies_after(files: int) -> Callable[[CopyProgress], None]:
    def told(now: CopyProgress) -> None:
        if now.files_done - now.kept >= files:
            raise Died

    return told


def test_a_checkpoint_is_adopted_with_all_that_it_has(place: Place) -> None:
    place.write("elsewhere", FILES)
    with place.leading() as leadership:
        copied = import_checkpoint(leadership, QUERY, place.source)
        assert place.adopted(leadership) == FILES
        assert (copied.files, copied.bytes, copied.kept) == (len(FILES), sum(map(len, FILES.values())), 0)
        assert copied.batch == 3
        assert place.names(f"{place.below(leadership.directory)}/importing") == set()
    assert place.read("elsewhere") == FILES


def test_an_interrupted_copy_shows_nothing_and_the_next_leader_goes_on_with_it(near: Place) -> None:
    near.write("elsewhere", FILES)
    with near.leading() as leadership:
        with pytest.raises(Died):
            import_checkpoint(leadership, QUERY, near.source, told=dies_after(3))
        assert leadership.names("spark") == []
    with near.leading() as leadership:
        copied = import_checkpoint(leadership, QUERY, near.source)
        assert 3 <= copied.kept < len(FILES)
        assert near.adopted(leadership) == FILES


def test_a_checkpoint_that_is_there_is_kept_unless_it_may_be_replaced(near: Place) -> None:
    near.write("elsewhere", FILES)
    near.write("other", checkpoint(5))
    with near.leading() as leadership:
        import_checkpoint(leadership, QUERY, near.source)
        with pytest.raises(AlreadyExists, match="has a checkpoint already"):
            import_checkpoint(leadership, QUERY, f"{near.files.uri}/other")
        assert near.adopted(leadership) == FILES
        replaced = import_checkpoint(leadership, QUERY, f"{near.files.uri}/other", replace=True).replaced
        assert near.adopted(leadership) == checkpoint(5)
        assert [(each.name, each.folders, each.restorable) for each in leadership.cleanup.trash()] == [
            (replaced, (f"spark/{QUERY}",), True)
        ]
    with near.leading() as leadership:
        assert leadership.queries.restore(QUERY) == replaced
        assert near.adopted(leadership) == FILES
        leadership.queries.restore(QUERY)
        assert near.adopted(leadership) == checkpoint(5), "what was there went into the trash in turn"


def test_other_directories_are_refused(local: Place) -> None:
    local.write("elsewhere", {"part-0.parquet": b"rows"})
    with local.leading() as leadership:
        with pytest.raises(Invalid, match="is not the checkpoint of a streaming query"):
            import_checkpoint(leadership, QUERY, local.source)
        with pytest.raises(Invalid, match="There is nothing at"):
            import_checkpoint(leadership, QUERY, f"{local.files.uri}/gone")
        with pytest.raises(Invalid, match="has no known scheme"):
            import_checkpoint(leadership, QUERY, "s3a://bucket/checkpoint")
        with pytest.raises(InvalidName):
            import_checkpoint(leadership, "a query", local.source)
        with pytest.raises(NotFound, match="holds no checkpoint of query"):
            leadership.queries.restore(QUERY)
        assert leadership.names("spark") == []


def test_a_directory_that_is_written_to_meanwhile_is_not_adopted(local: Place) -> None:
    local.write("elsewhere", FILES)
    written: list[str] = []

    def told(now: CopyProgress) -> None:
        if now.files_done == now.files and not written:
            written.append("offsets/9")
            local.write("elsewhere", {"notes": b"more"})

    with local.leading() as leadership:
        with pytest.raises(Conflict, match="stop its query"):
            import_checkpoint(leadership, QUERY, local.source, told=told)
        assert leadership.names("spark") == []
        copied = import_checkpoint(leadership, QUERY, local.source)
        assert copied.kept == len(FILES)
        assert local.adopted(leadership) == {**FILES, "notes": b"more"}


def test_a_file_that_has_changed_between_two_tries_is_copied_again(local: Place) -> None:
    local.write("elsewhere", FILES)
    with local.leading() as leadership:
        with pytest.raises(Died):
            import_checkpoint(leadership, QUERY, local.source, told=dies_after(len(FILES)))
        local.write("elsewhere", {"offsets/4": b'v1\n{}\n{"logOffset":4}'})
        local.direct.delete("elsewhere/state/0/0/5.delta")
        import_checkpoint(leadership, QUERY, local.source)
        assert local.adopted(leadership) == local.read("elsewhere")


def test_damaged_contents_are_refused_where_a_start_needs_them(local: Place) -> None:
    local.write("elsewhere", {**FILES, "state/0/0/5.delta": b"?", "state/0/0/9.delta": b"of no batch"})
    with local.leading() as leadership:
        copied = import_checkpoint(leadership, QUERY, local.source)
        assert copied.files == len(FILES) + 1, "what was begun is done again"
        local.write("elsewhere", {"state/0/0/4.delta": b"?"})
        with pytest.raises(Invalid, match=r"state/0/0/4.delta is damaged, and is not copied"):
            import_checkpoint(leadership, QUERY, local.source, replace=True)


def test_a_new_copy_is_not_mixed_with_an_abandoned_one(local: Place) -> None:
    local.write("elsewhere", FILES)
    local.write("other", checkpoint(3, more=" "))
    with local.leading() as leadership:
        with pytest.raises(Died):
            import_checkpoint(leadership, QUERY, local.source, told=dies_after(5))
        assert import_checkpoint(leadership, QUERY, f"{local.files.uri}/other").kept == 0
        assert local.adopted(leadership) == checkpoint(3, more=" ")


def test_an_adoption_with_a_lost_last_answer_is_found_complete(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    local.write("elsewhere", FILES)
    with local.leading() as leadership:
        with monkeypatch.context() as patch:  # dies between the last rename and the tidying up
            patch.setattr(
                "leader.job.fenced_directory.FencedDirectory.delete", lambda *_: dies_after(0)(CopyProgress())
            )
            with pytest.raises(Died):
                import_checkpoint(leadership, QUERY, local.source)
        assert import_checkpoint(leadership, QUERY, local.source).kept == len(FILES)
        assert local.adopted(leadership) == FILES
        with pytest.raises(AlreadyExists):
            import_checkpoint(leadership, QUERY, local.source)


def test_a_leader_that_is_fenced_meanwhile_shows_nothing(local: Place) -> None:
    local.write("elsewhere", FILES)
    with local.leading() as leadership:
        home = local.below(leadership.directory)
        successor = home.replace(f"{leadership.epoch:010d}-", f"{leadership.epoch + 1:010d}-")

        def told(now: CopyProgress) -> None:
            if now.files_done == now.files:
                local.direct.rename(home, successor)

        with pytest.raises(Fenced):
            import_checkpoint(leadership, QUERY, local.source, told=told)
        assert local.names(f"{successor}/spark") == set()
        assert not local.names("jobs/orders") - {successor.rpartition("/")[2]}


def test_nothing_is_adopted_into_a_job_that_is_being_cleaned_up(local: Place) -> None:
    local.write("elsewhere", FILES)
    with local.leading() as leadership:
        home = local.below(leadership.directory)
        local.direct.rename(f"{home}/status=CREATED", f"{home}/status=FINISHED~cleaning-0badcafe~2")
        with pytest.raises(Conflict, match="is being cleaned up"):
            import_checkpoint(leadership, QUERY, local.source)


def test_a_large_file_is_copied_in_pieces(place: Place) -> None:
    large = bytes(range(256)) * (9 << 12) + b"the end"
    place.write("elsewhere", {**FILES, "state/0/0/1.snapshot": large, "notes": b""})
    counted: list[int] = []
    with place.leading() as leadership:
        copied = import_checkpoint(leadership, QUERY, place.source, told=lambda now: counted.append(now.bytes_done))
        assert place.adopted(leadership)["state/0/0/1.snapshot"] == large
    assert max(counted) == copied.bytes
    assert len(set(counted)) >= 3, "more than one step for the large one"


KILLED = """
import os, signal, sys
import ha
from ha.spark.tools import import_checkpoint

def told(now):
    if now.files_done >= 3:
        os.kill(os.getpid(), signal.SIGKILL)

with ha.lead("orders", files=sys.argv[1], zookeeper="") as leadership:
    import_checkpoint(leadership, "daily", sys.argv[2], told=told)
"""


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_copies_leaves_the_rest_to_the_next(near: Place) -> None:
    near.write("elsewhere", FILES)
    killed = subprocess.run([sys.executable, "-c", KILLED, near.jobs, near.source], timeout=PATIENCE_S, check=False)
    assert killed.returncode == -signal.SIGKILL
    with near.leading() as leadership:
        assert leadership.epoch == 2
        assert leadership.names("spark") == []
        assert import_checkpoint(leadership, QUERY, near.source).kept >= 3
        assert near.adopted(leadership) == FILES
