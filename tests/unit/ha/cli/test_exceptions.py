"""``ha exceptions``: what a leader has noted is shown, as text and as JSON."""

import json

import pytest

import ha
from ha.cli.commands import exit_code

pytestmark = pytest.mark.usefixtures("quick")


def test_the_failures_of_a_job_are_shown_from_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        assert exit_code(["exceptions", "orders"]) == 0
        assert capsys.readouterr().out == "orders: no failure is known\n"
        leadership.exceptions.add("ValueError", "no\x1bsuch column", query="daily", trace="a\nb")
        leadership.exceptions.add("exit-3", "the command has ended")
    assert exit_code(["exceptions", "orders", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["class"], first["query"], first["epoch"], first["trace"]) == ("ValueError", "daily", 1, "a\nb")
    assert (second["class"], second["query"], second["dump"]) == ("exit-3", None, None)
    assert exit_code(["exceptions", "orders"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{first['at']}  {first['host']}  1  daily  ValueError"
    assert lines[1:4] == ["    no\\x1bsuch column", "    a", "    b"]


def test_a_job_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["exceptions", "nowhere"]) == 3
    assert "nowhere" in capsys.readouterr().err


def test_how_many_are_kept_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_EXCEPTIONS_RETAINED", "1")
    with ha.lead("orders") as leadership:
        for each in "ab":
            leadership.exceptions.add("E", each)
        assert [each.message for each in leadership.exceptions.list()] == ["b"]
