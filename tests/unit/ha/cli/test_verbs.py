"""The verbs: loaded when they are used, and never suggested if they change something."""

from itertools import chain

import click
import pytest

from ha.cli import app, exit_code
from ha.cli.verbs import SECTIONS, VERBS
from tests.unit.test_architecture import loaded_by

CHANGING = {name for name, verb in VERBS.items() if verb.changes}


def refusal(*arguments: str) -> str:
    with pytest.raises(click.UsageError) as caught:
        app.main(list(arguments), prog_name="ha", standalone_mode=False)
    return caught.value.format_message()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("version", "Did you mean `ha --version`?"),
        ("help", "Did you mean `ha --help`?"),
        ("ledaer", "Did you mean `ha leader`?"),
        ("chekpoints", "Did you mean `ha checkpoints`?"),
        ("resgn", "`ha --help` lists all commands."),
        ("switchove", "`ha --help` lists all commands."),
        ("zzz", "`ha --help` lists all commands."),
    ],
)
def test_an_unknown_verb_is_refused_with_what_was_meant(given: str, said: str) -> None:
    assert refusal(given) == f"There is no command {given!r}. {said}"


@pytest.mark.parametrize("name", sorted(VERBS))
def test_no_suggestion_names_a_verb_that_changes_something(name: str) -> None:
    misspelt = [name[:-1], name + "s", name[1:], name[0] + name[2:], name + name[-1]]
    said = [refusal(each) for each in misspelt if each not in VERBS]
    assert not [each for each in said for verb in CHANGING if f"`ha {verb}`" in each]


def test_the_verbs_that_change_something() -> None:
    lookups = {"leader", "watch", "checkpoint", "checkpoints"}
    reading = lookups | {
        "status",
        "list",
        "history",
        "exceptions",
        "queries",
        "inspect",
        "state",
        "verify",
        "check",
        "config",
        "groups",
    }
    assert set(VERBS) - CHANGING == reading, "say in VERBS whether the new verb changes something, and list it here"


@pytest.mark.parametrize("name", sorted(VERBS))
def test_the_list_of_verbs_says_what_their_own_help_says(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert (command.name, command.get_short_help_str(1000)) == (name, VERBS[name].short)


def test_help_shows_each_verb_once_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(chain(*SECTIONS.values())) == sorted(VERBS), "put the new verb into one of the SECTIONS"
    assert exit_code(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert not [name for name, verb in VERBS.items() if f" {name} {verb.short}" not in said]


def test_the_shell_completes_verbs() -> None:
    found = app.shell_complete(click.Context(app, info_name="ha"), "che")
    assert [each.value for each in found] == ["check", "checkpoint", "checkpoints"]
    assert found[0].help == VERBS["check"].short


STARTS = (
    "from ha.cli import exit_code",
    "from ha.cli import exit_code; exit_code(['--help'])",
    "import click; from ha.cli import app; app.shell_complete(click.Context(app), '')",
)


@pytest.mark.parametrize("statement", STARTS)
def test_help_loads_neither_a_verb_nor_what_verbs_need(statement: str) -> None:
    loaded = {name for name in loaded_by(statement) if all(part.isidentifier() for part in name.split("."))}
    assert not loaded & {verb.module for verb in VERBS.values()}
    tops = {name.partition(".")[0] for name in loaded}
    assert not tops & {"rich", "asyncio", "kazoo", "hdfs_native", "starlette", "pyspark", "prometheus_client", "json"}
    ours = {name for name in loaded if name.partition(".")[0] in {"ha", "leader", "store"}}
    assert len(ours) <= 10, f"start-up loads {sorted(ours)}"


SERVE = {"run", "daemon", "agent"}
"""They print a log, which has a format for machines, and no result."""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> dict[str, click.Command]:
    """Return each command below this one, by its path."""
    if not isinstance(command, click.Group):
        return {" ".join(path): command}
    context = click.Context(command)
    below = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {
        path_: found for name, each in below.items() if each for path_, found in commands(each, (*path, name)).items()
    }


def test_every_verb_that_prints_a_result_prints_json() -> None:
    silent = {
        path for path, each in commands(app).items() if not any("--json" in option.opts for option in each.params)
    }
    assert silent == SERVE
