"""Notes of failures that a program leaves to its sidecar."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.program import failure_notes
from ha.program.failure_notes import Note
from tests.lacks import no_descriptor_free


def test_notes_of_a_folder_that_goes_meanwhile_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sidecar removes its folder at its end, perhaps while its last failures are being kept."""

    def gone(*_: object) -> Iterator[Path]:
        raise FileNotFoundError(tmp_path)

    monkeypatch.setattr(Path, "glob", gone)
    assert failure_notes.left(tmp_path) == {}


def test_notes_of_all_runs_are_kept_in_their_order_until_they_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, made = [Note("A", "one", "words", "at 1"), Note("B", "two"), Note("A", "one")], list[Path]()
    monkeypatch.delenv("HA_QUERIES", raising=False)
    assert failure_notes.make(notes[0]) is None
    failure_notes.drop(None)
    for age, (run, note) in enumerate(zip((1, 10, 1), notes, strict=True)):
        monkeypatch.setenv("HA_QUERIES", f"{tmp_path}/queries-{run}")
        made.append(failure_notes.make(note) or tmp_path)
        os.utime(made[-1], ns=(0, 1_000 - age))
    for name in ("queries-1.failure-0a", "queries-1.failure-0b.staged"):
        (tmp_path / name).write_bytes(b"half")
    assert list(failure_notes.left(tmp_path).items()) == list(zip(made, notes, strict=True))[::-1]
    for _ in range(2):
        failure_notes.drop(made[1])
    assert list(failure_notes.left(tmp_path).values()) == [notes[2], notes[0]]
    monkeypatch.setenv("HA_QUERIES", f"{tmp_path}/gone/queries-1")
    assert failure_notes.make(notes[0]) is None


def test_notes_that_the_host_has_no_descriptor_for_are_left_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HA_QUERIES", f"{tmp_path}/queries-1")
    failure_notes.make(note := Note("A", "one"))
    with no_descriptor_free():
        assert failure_notes.left(tmp_path) == {}
    assert list(failure_notes.left(tmp_path).values()) == [note]
