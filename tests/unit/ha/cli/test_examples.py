"""Examples: each verb has one at the end of its help, which the verb takes as it stands."""

import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ha.cli import app
from tests.unit.ha.cli.test_verbs import commands

COMMANDS = {name: each for name, each in commands(app).items() if not isinstance(each, click.Group)}


def example(verb: str) -> str:
    command = COMMANDS[verb]
    assert command.epilog is not None
    return command.epilog.removeprefix("Example: ")


def test_each_verb_has_one() -> None:
    assert all((each.epilog or "").startswith("Example: ") for each in COMMANDS.values())


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_verb_takes_it(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "orders.py").touch()
    (tmp_path / "build/history").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example(verb).removeprefix('eval "$(').removesuffix(')"'))
    length = len(verb.split())
    assert words[: length + 1] == ["ha", *verb.split()]
    COMMANDS[verb].make_context(verb, words[length + 1 :], ignore_unknown_options=False)


def test_the_help_ends_with_it() -> None:
    told = CliRunner().invoke(app, ["output", "verify", "--help"])
    assert told.output.rstrip().endswith("Example: ha output verify orders")
