"""Tests of the choice of edit log files: each transaction is in one of them."""

import os
import shutil
from pathlib import Path
from typing import cast
from unittest import mock

import pytest

from ha.sandbox import Sandbox, SandboxError
from ha.sandbox.hdfs import edit_segments, read_edits
from ha.sandbox.launcher import LaunchedProgram, Launcher
from ha.sandbox.state import State, new_state


def put(data: Path, server: str, name: str, at: int = 0) -> Path:
    folder = data / server / ("name/current" if server.startswith("namenode") else "edits/sandbox/current")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.touch()
    os.utime(path, (at, at))
    return path


@pytest.fixture
def single() -> State:
    return new_state("me", 1, 1)


@pytest.fixture
def twins() -> State:
    return new_state("me", 1, 2)


def test_a_single_namenodes_segments_oldest_first(single: State, tmp_path: Path) -> None:
    last = put(tmp_path, "namenode-1", "edits_inprogress_0000000000000000212")
    second = put(tmp_path, "namenode-1", "edits_0000000000000000010-0000000000000000211")
    first = put(tmp_path, "namenode-1", "edits_0000000000000000001-0000000000000000009")
    for other in ("edits_inprogress_0000000000000000001.stale", "edits_1.trash", "fsimage_0", "edits_", "VERSION"):
        put(tmp_path, "namenode-1", other)
    assert edit_segments(single, tmp_path) == [first, second, last]


def test_of_two_namenodes_the_journal_counts_and_of_its_copies_the_finished_one(twins: State, tmp_path: Path) -> None:
    put(tmp_path, "namenode-1", "edits_inprogress_0000000000000000001", at=99)
    put(tmp_path, "journalnode-1", "edits_inprogress_0000000000000000001", at=9)
    finished = put(tmp_path, "journalnode-2", "edits_0000000000000000001-0000000000000000007", at=5)
    put(tmp_path, "journalnode-1", "edits_inprogress_0000000000000000008", at=6)
    newest = put(tmp_path, "journalnode-3", "edits_inprogress_0000000000000000008", at=8)
    assert edit_segments(twins, tmp_path) == [finished, newest]


class Printer:
    """Hadoop's printer, which says the segment's name; a NameNode finishes a segment while the first one is printed."""

    def __init__(self, open_one: Path, finished: Path) -> None:
        self._open_one, self._finished = open_one, finished

    def run(self, _: str, program: LaunchedProgram) -> None:
        if self._open_one.exists():
            self._open_one.rename(self._finished)
        segment, target = Path(program.arguments[1]), Path(program.arguments[3])
        assert segment.exists(), "or Hadoop fails"
        target.write_text(segment.name)


@pytest.fixture
def open_one(tmp_path: Path) -> Path:
    put(tmp_path, "namenode-1", "edits_0000000000000000001-0000000000000000004")
    return put(tmp_path, "namenode-1", "edits_inprogress_0000000000000000005")


FINISHED = "edits_0000000000000000005-0000000000000000009"


def test_a_segment_finished_while_others_are_read_is_read(single: State, tmp_path: Path, open_one: Path) -> None:
    """Seen: an hour's edit log takes minutes to read, and a NameNode finishes a segment every two."""
    printer = Printer(open_one, open_one.with_name(FINISHED))
    found = read_edits(single, tmp_path, cast("Launcher", printer))
    assert found == ["edits_0000000000000000001-0000000000000000004", open_one.name]


def test_a_segment_finished_before_its_copy_has_its_new_name(single: State, tmp_path: Path, open_one: Path) -> None:
    finished, really_copy = open_one.with_name(FINISHED), shutil.copy

    def copy(source: Path, folder: Path) -> str:
        if source == open_one:
            open_one.rename(finished)
        return really_copy(str(source), str(folder))

    with mock.patch("ha.sandbox.hdfs.shutil.copy", copy):
        found = read_edits(single, tmp_path, cast("Launcher", Printer(open_one, finished)))
    assert found == ["edits_0000000000000000001-0000000000000000004", FINISHED]


def test_before_the_first_start_there_is_none(single: State, tmp_path: Path) -> None:
    assert edit_segments(single, tmp_path) == []
    with pytest.raises(SandboxError, match="There is no sandbox in"):
        Sandbox(tmp_path / "none").edits()


@pytest.mark.hdfs
def test_the_real_one_is_xml(sandbox: Sandbox) -> None:
    documents = sandbox.edits()
    assert documents
    assert all(document.startswith("<?xml") and "<EDITS>" in document for document in documents)
    assert "OP_MKDIR" in documents[0]
