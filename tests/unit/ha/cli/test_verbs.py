"""The verbs: in groups, loaded when they are used. Each has an example, and what messages offer can be pasted."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ha.cli.commands import GROUPS, RUN, VERBS, app
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


ROOT = Path(__file__).parents[4]
OFFERED = re.compile(r"`ha ([a-z][^`]*)`")

NAMES = {
    "run", "run --spark", "run --endpoint", "run --spark JOB -- COMMAND", "job exceptions", "job queries",
    "job preflight --json", "checkpoint rescale", "checkpoint import", "checkpoint verify --checksums",
}  # fmt: skip
"""A verb as such, which nobody is asked to type: "it was not started by `ha run`"."""

DOCUMENTING = {"setting", "seconds", "value_option", "flag_option"}
"""Functions whose texts are documentation."""

OPEN = {"COMMAND", "URI"}
"""What a message may leave open: the command line of a program, and another place."""


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts that are no documentation; a value that is put in is "1", which all arguments can be."""
    left: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left.add(id(node.value))
        elif isinstance(node, ast.keyword) and node.arg == "help":
            left.update(map(id, ast.walk(node.value)))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DOCUMENTING:
            left.update(map(id, ast.walk(node)))
        elif isinstance(node, ast.JoinedStr):
            if id(node) not in left:
                yield (
                    node.lineno,
                    "".join(str(each.value) if isinstance(each, ast.Constant) else "1" for each in node.values),
                )
            left.update(map(id, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left:
            yield node.lineno, re.sub(r"%[srd]|\{\}", "1", node.value)


def fault(words: list[str]) -> str:
    """Return why a command line cannot be pasted; empty if it can."""
    command: click.Command = app
    context = click.Context(app)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0]) if words else None
        if found is None:
            return "there is no such command"
        command, words = found, words[1:]
    if placeholder := next((each for each in words if re.fullmatch(r"[A-Z]{2,}", each) and each not in OPEN), ""):
        return f"{placeholder} is no value"
    try:
        command.make_context("ha", [*words])
    except click.UsageError as error:
        return error.format_message()
    return ""


@pytest.mark.parametrize("package", ["ha", "leader", "store", "pyspark_ha"])
def test_each_command_that_a_message_offers_can_be_pasted(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_CONFIG", "")
    wrong = []
    for path in sorted((ROOT / package).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        for line, text in messages(ast.parse(path.read_text(encoding="utf-8"))):
            offered = [each[1] for each in OFFERED.finditer(text) if each[1] not in NAMES]
            wrong += [f"{name}:{line}: `ha {each}`: {said}" for each in offered if (said := fault(each.split()))]
    assert wrong == []


def test_no_message_speaks_of_a_class_of_ours() -> None:
    """A class that is renamed by search and replace takes words of sentences with it."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "ha").rglob("*.py"))}
    classes = {each.name for tree in trees.values() for each in ast.walk(tree) if isinstance(each, ast.ClassDef)}
    ours = re.compile(rf"\b({'|'.join(name for name in classes if re.fullmatch(r'(?:[A-Z][a-z]+){2,}', name))})\b")
    said = [text for tree in trees.values() for _, text in messages(tree) if " " in text and ours.search(text)]
    said = [text for text in said if " | " not in text and "[" not in text]  # annotations
    assert said == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('f"`ha checkpoint rewind --to {batch}`"', "Missing argument 'JOB'."),
        ('f"`ha checkpoint rewind {job} {query} --to {batch}`"', ""),
        ('"`ha checkpoint verify %s`"', ""),
        ('"`ha checkpoint rewind JOB daily --to 7`"', "JOB is no value"),
        ('"`ha rewound`"', "there is no such command"),
    ],
)
def test_what_cannot_be_pasted_is_found(text: str, said: str) -> None:
    ((_, found),) = messages(ast.parse(f"say({text})"))
    assert fault(OFFERED.findall(found)[0].split()) == said
