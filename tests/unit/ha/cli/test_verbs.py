"""The verbs: in groups, loaded when they are used, and nine things on the first screen."""

import click
import pytest

from ha.cli import app
from ha.cli.verbs import GROUPS, RUN, VERBS
from tests.unit.ha.command_line import CommandLine
from tests.unit.test_architecture import loaded_by


def refusal(*arguments: str) -> str:
    with pytest.raises(click.UsageError) as caught:
        app.main(list(arguments), prog_name="ha", standalone_mode=False)
    return caught.value.format_message()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("version", "Did you mean `ha --version`?"),
        ("help", "Did you mean `ha --help`?"),
        ("leader", "Did you mean `ha job leader`?"),
        ("status", "Did you mean `ha replica status` or `ha host status`?"),
        ("zzz", "`ha --help` lists all commands."),
        ("job zzz", "`ha job --help` lists all commands."),
    ],
)
def test_an_unknown_verb_is_refused_with_what_was_meant(given: str, said: str) -> None:
    *_, last = words = given.split()
    assert refusal(*words) == f"There is no command {last!r}. {said}"


def test_the_first_screen_has_at_most_nine_things_and_24_lines(cli: CommandLine) -> None:
    assert len(app.list_commands(click.Context(app))) <= 9
    assert len(cli("--help").out.splitlines()) <= 24


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_of_a_group_has_each_of_its_verbs_with_a_whole_sentence(group: str, cli: CommandLine) -> None:
    said = " ".join(cli(group, "--help").out.split())
    names = [verb.partition(" ")[2] for verb in VERBS if verb.startswith(f"{group} ")]
    assert names
    assert not [name for name in names if f" {name} " not in said]
    assert said.count("...") == 1, "in the usage alone"


def test_the_first_screen_says_of_run_what_its_own_help_says() -> None:
    run = app.get_command(click.Context(app), "run")
    assert run is not None
    assert run.get_short_help_str(1000) == RUN


def test_the_shell_completes_verbs() -> None:
    context = click.Context(app, info_name="ha")
    assert [each.value for each in app.shell_complete(context, "s")] == ["savepoint"]
    group = app.get_command(context, "job")
    assert group is not None
    found = group.shell_complete(click.Context(group, parent=context, info_name="job"), "re")
    assert [each.value for each in found] == ["restart", "resume"]


STARTS = (
    "from ha.cli import exit_code",
    "from ha.cli import exit_code; exit_code(['--help'])",
    "import click; from ha.cli import app; app.shell_complete(click.Context(app), '')",
)


@pytest.mark.parametrize("statement", STARTS)
def test_help_loads_neither_a_verb_nor_what_verbs_need(statement: str) -> None:
    loaded = {name for name in loaded_by(statement) if all(part.isidentifier() for part in name.split("."))}
    assert not loaded & {f"ha.cli.{place.partition(':')[0]}" for place in VERBS.values()}
    tops = {name.partition(".")[0] for name in loaded}
    assert not tops & {"rich", "asyncio", "kazoo", "hdfs_native", "starlette", "pyspark", "prometheus_client", "json"}
    ours = {name for name in loaded if name.partition(".")[0] in {"ha", "leader", "store"}}
    assert len(ours) <= 11, f"start-up loads {sorted(ours)}"


SERVE = {"run", "host daemon", "host agent"}
"""They print a log, which has a format for machines, and no result."""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> dict[str, click.Command]:
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
