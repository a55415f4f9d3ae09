"""Tests of the command and its catalogue, with fast made-up benchmarks."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as catalogue
from benchmarks import __main__ as command
from benchmarks.context import QUICK_ROUNDS, USUAL_ROUNDS, Context
from ha.drill.runner import alone

MODULE = '''
"""A benchmark."""
from tests.unit.benchmarks.results import result
TITLE = "The {name}"
def run(context):
    (context.folder / "file").touch()
    context.say("Working")
    {does}
    return result(context.rounds or 1)
'''


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, does in (("good_one", ""), ("bad_one", 'raise RuntimeError("it broke")')):
        (tmp_path / f"{name}.py").write_text(MODULE.format(name=name, does=does))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(catalogue, "MODULES", ("bad_one", "good_one"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_module_of_the_catalogue_is_there_and_is_called_what_it_says() -> None:
    for name, found in zip(catalogue.names(), catalogue.find(), strict=True):
        assert found.name == name
        assert found.title
        assert callable(found.run)


def test_the_list_is_shown_without_running_anything() -> None:
    shown = CliRunner().invoke(command.main, ["--list"])
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.output.splitlines()] == catalogue.names()


def test_an_unknown_name_is_wrong_usage() -> None:
    shown = CliRunner().invoke(command.main, ["lockup"])
    assert shown.exit_code == 2
    assert "There is no benchmark 'lockup'" in shown.output


def test_a_folder_that_another_run_is_using_is_left_alone(made: Path) -> None:
    folder = made / "build" / "benchmarks" / "work" / "good_one"
    with alone(folder.parent):
        folder.mkdir()
        (folder / "theirs").touch()
        shown = CliRunner().invoke(command.main, ["good_one"])
    assert shown.exit_code == 1
    assert f"Another command is busy in {folder.parent}" in shown.output
    assert (folder / "theirs").exists()
    assert CliRunner().invoke(command.main, ["good_one"]).exit_code == 0


def test_one_is_run_and_reported(made: Path) -> None:
    shown = CliRunner().invoke(command.main, ["good_one", "--rounds", "5"])
    assert shown.exit_code == 0, shown.output
    entry = json.loads((made / "build" / "benchmarks" / "good_one.json").read_text())
    assert entry["result"]["targets"][0]["measured"] == 5
    assert entry["machine"]["cores"] >= 1
    assert entry["machine"]["packages"]["kazoo"] == "2.11.0"
    assert not (made / "docs").exists()


def test_one_that_fails_does_not_take_the_others_figures_along(made: Path) -> None:
    shown = CliRunner().invoke(command.main, ["--report", "here", "--docs"])
    assert shown.exit_code == 1
    assert [path.name for path in (made / "here").glob("*.json")] == ["good_one.json"]
    assert (made / "docs" / "benchmarks" / "benchmarks.md").exists()


@pytest.mark.parametrize(
    ("quick", "rounds", "repeats"), [(False, None, USUAL_ROUNDS), (True, None, QUICK_ROUNDS), (True, 5, 5)]
)
def test_rounds(tmp_path: Path, quick: bool, rounds: int | None, repeats: int) -> None:
    assert Context(quick, rounds, lambda _: None, tmp_path).repeats() == repeats
