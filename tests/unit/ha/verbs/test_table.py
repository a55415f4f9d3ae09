"""The table of verbs: the commands that it names exist, and its arguments are those that a request keeps."""

import re

import msgspec
import pytest

from ha.api.requests import bodies
from ha.cli import app
from ha.verbs.table import OF_LEADER, OF_PROCESS, VERBS, PartialArguments, RestartArguments, texts
from tests.unit.ha.cli.test_verbs import OFFERED, commands

COMMANDS = commands(app)


@pytest.mark.parametrize("name", VERBS)
def test_the_command_of_a_verb_and_that_which_undoes_it_exist(name: str) -> None:
    verb = VERBS[name]
    for line in (verb.command, *OFFERED.findall(verb.undo)):
        words, options = re.split(" --| {", line)[0], line.split()
        command = COMMANDS[words]
        known = {option for each in command.params for option in each.opts}
        assert {each for each in options if each.startswith("--")} <= known
    if verb.own_process:
        given = {each.encode_name for each in msgspec.structs.fields(verb.takes)} - {"query"}
        known = {option for each in COMMANDS[verb.command].params for option in each.opts}
        assert {f"--{each.replace('_', '-')}" for each in given} <= known
        assert verb.asks == ("--yes" in known)


def test_arguments_are_kept_as_texts_and_what_says_nothing_is_left_out() -> None:
    assert texts(RestartArguments(exclude=["b", "a"])) == {"exclude": "b,a"}
    assert texts(PartialArguments(to="hdfs://h/x", timeout=30.0, partial=True)) == {
        "to": "hdfs://h/x",
        "timeout": "30",
        "partial": "yes",
    }
    assert texts(PartialArguments()) == {}


def test_each_verb_has_a_body_that_says_how_it_is_undone() -> None:
    described = msgspec.json.schema_components([bodies(OF_LEADER), bodies(OF_PROCESS)])[1]
    bodies_ = {
        each["properties"]["verb"]["enum"][0]: each for each in described.values() if "verb" in each["properties"]
    }
    assert set(bodies_) == set(VERBS)
    assert all(" JOB" in each["description"] or "Nothing undoes" in each["description"] for each in bodies_.values())
