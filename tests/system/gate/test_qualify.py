"""Qualification: a stage has passed if something was run, and all of it passed."""

from pathlib import Path

import pytest

from tests.gate import qualify
from tests.stages import STAGES, Stage


def test_a_stage_without_a_test_has_not_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of `timed` have a marker, and no name; it had passed without one of them."""
    monkeypatch.setattr(qualify, "new_folder", lambda: tmp_path)
    monkeypatch.setattr(qualify, "collect", lambda *_: [])
    monkeypatch.setitem(STAGES, "timed", Stage("what has a marker", ()))
    found = qualify.stage("timed", "0" * 40, tmp_path)
    assert (found["passed"], found["why"]) == (False, "No test is in this stage.")
    monkeypatch.setitem(STAGES, "timed", Stage("commands alone", (), first=("true",)))
    assert qualify.stage("timed", "0" * 40, tmp_path)["passed"]
