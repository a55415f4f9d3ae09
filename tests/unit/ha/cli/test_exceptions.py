"""``ha job exceptions``: what a leader has noted is shown, as text and as JSON."""

import pytest

import ha
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")


def test_the_failures_of_a_job_are_shown_from_anywhere(cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        assert cli("job exceptions orders").out == "orders: no failure is known\n"
        leadership.exceptions.add("ValueError", "no\x1bsuch column", query="daily", trace="a\nb")
        leadership.exceptions.add("exit-3", "the command has ended")
    first, second = cli("job exceptions orders --json").json
    assert (first["class"], first["query"], first["epoch"], first["trace"]) == ("ValueError", "daily", 1, "a\nb")
    assert (second["class"], second["query"], second["dump"]) == ("exit-3", None, None)
    lines = cli("job exceptions orders").out.splitlines()
    assert lines[0] == f"{first['at']}  {first['host']}  1  daily  ValueError"
    assert lines[1:4] == ["    no\\x1bsuch column", "    a", "    b"]
