"""Queries that are not guarded: told once, counted by an entry of the leader directory, forgotten by the next run."""

import logging
import uuid
from pathlib import Path

import pytest

from ha.hook.guarding import AGAIN
from ha.hook.query_rules import note, noted
from ha.leadership.leadership import Leadership
from ha.spark.stored.unguarded import Unguarded
from leader.layout.names import unguarded_in


def shown(leadership: Leadership) -> tuple[int, int]:
    return unguarded_in(each.name for each in leadership.own.list())


def test_what_a_driver_tells_is_shown_and_kept_for_the_metrics(
    leadership: Leadership, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unguarded = Unguarded(leadership.own, lambda: tmp_path / "told")
    unguarded.look([])
    assert shown(leadership) == (0, 0)
    with caplog.at_level(logging.WARNING, "ha"):
        unguarded.tell("", "not guarded: it has no name.")
        unguarded.tell("a", "not guarded: its checkpoint is elsewhere.")
    assert "orders: A query without a name is not guarded: it has no name." in caplog.text
    unguarded.look([])
    assert shown(leadership) == (2, 0)
    assert noted(tmp_path / "told") == {
        "": "not guarded: it has no name.",
        "a": "not guarded: its checkpoint is elsewhere.",
    }


def test_what_a_program_without_ha_has_told_is_shown_until_its_next_run(leadership: Leadership, tmp_path: Path) -> None:
    files = [tmp_path / "1"]
    unguarded = Unguarded(leadership.own, lambda: files[-1])
    note(files[-1], "a", "not guarded: elsewhere")
    unguarded.look(["b", str(uuid.uuid4())])
    assert shown(leadership) == (1, 0), "what was there before is no query of this program"
    files.append(tmp_path / "2")
    unguarded.look(["b"])
    assert shown(leadership) == (0, 0)


def test_a_checkpoint_without_a_name_is_the_one_of_which_was_told(leadership: Leadership, tmp_path: Path) -> None:
    unguarded = Unguarded(leadership.own, lambda: tmp_path / "told")
    unguarded.look([])
    note(tmp_path / "told", "orders", "not guarded: its rows are in its driver's memory")
    unguarded.look([str(uuid.uuid4())])
    assert (shown(leadership), set(noted(tmp_path / "told"))) == ((1, 0), {"orders"})


def test_a_leader_forgets_what_the_one_before_has_shown(leadership: Leadership) -> None:
    leadership.own.make_folder("unguarded=7~1")
    Unguarded(leadership.own, lambda: None).look([])
    assert shown(leadership) == (0, 0)


@pytest.mark.parametrize("name", ["03b1fcd5-4abb-4a4b-9cf6-3f1f0e2a7c11", "orders v2", "größe"])
def test_unknown_checkpoints_are_told(leadership: Leadership, name: str, caplog: pytest.LogCaptureFixture) -> None:
    unguarded = Unguarded(leadership.own, lambda: None)
    unguarded.look(["good"])
    with caplog.at_level(logging.WARNING, "ha"):
        for _ in range(2):
            unguarded.look(["good", name])
    assert caplog.text.count("is not guarded") == 1
    assert shown(leadership) == (1, 0)


def test_a_file_that_is_damaged_or_missing_says_nothing(tmp_path: Path) -> None:
    assert noted(tmp_path / "none") == {}
    (tmp_path / "half").write_text('["a", "b"]\n["c"')
    assert noted(tmp_path / "half") == {}


@pytest.mark.parametrize("file", ["told", None])
def test_what_repeats_rows_is_counted_apart_and_taken_back(
    leadership: Leadership, tmp_path: Path, file: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    unguarded = Unguarded(leadership.own, lambda: tmp_path / file if file else None)
    unguarded.tell("a", "not guarded: elsewhere")
    unguarded.tell("b", AGAIN)
    unguarded.look([])
    assert shown(leadership) == (1, 1)
    with caplog.at_level(logging.INFO, "ha"):
        unguarded.tell("b", "")
        unguarded.tell("c", "")
    unguarded.look([])
    assert shown(leadership) == (1, 0)
    assert "The query 'b' is exactly once after all" in caplog.text
    assert "'c'" not in caplog.text
