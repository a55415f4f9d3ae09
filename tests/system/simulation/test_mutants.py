"""Foreign mutants: their table fits the protocol as it is. The hunt itself is a tool, too long for every test run."""

import pytest

from tests.system.simulation.mutants import MUTANTS, ROOT, Mutant, hunted


def test_each_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_the_right_line_stands_there_once(mutant: Mutant) -> None:
    text = (ROOT / mutant.path).read_text(encoding="utf-8")
    assert text.count(mutant.right) == 1, "the protocol has changed: change the table"
    compile(text.replace(mutant.right, mutant.wrong), mutant.path, "exec")


def test_a_hunt_plants_the_wrong_line_and_catches_it() -> None:
    mutant = next(each for each in MUTANTS if each.name == "is_leader() knows no margin")
    catch = hunted(mutant, within=20)
    assert catch.seed is not None
    assert "S1" in catch.broke
