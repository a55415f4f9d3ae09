"""Offered commands: each that a message shows can be pasted as it is, with what the message knows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ha.cli.commands import app

ROOT = Path(__file__).parents[4]
OFFERED = re.compile(r"`ha ([a-z][^`]*)`")

NAMES = {
    "run", "run --spark", "run --endpoint", "run --spark JOB -- COMMAND", "job exceptions", "job queries",
    "job preflight --json", "checkpoint rescale", "checkpoint import", "checkpoint verify --checksums",
}  # fmt: skip
"""A verb as such, which nobody is asked to type: "it was not started by `ha run`"."""

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
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"setting", "seconds"}:
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
