"""A checker that has never caught anything proves nothing: each mutant of the protocol must be caught."""

import os
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.simulation.canaries import CANARIES, Canary
from tests.simulation.plan import draw
from tests.simulation.run import simulate

Catch = tuple[int, str]


def hunt(number: int) -> Catch | None:
    """The first seed in which the mutant breaks what it must, and the guarantee; None if no seed shows it."""
    with CANARIES[number] as canary:
        for seed in range(canary.within):
            for violation in simulate(draw(seed)).violations:
                if violation.guarantee in canary.breaks:
                    return seed, violation.guarantee
    return None


@pytest.fixture(scope="module")
def catches() -> dict[str, Catch | None]:
    """What was caught, by the mutant's name; all of them are hunted on all cores."""
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = list(pool.map(hunt, range(len(CANARIES))))
    return {canary.name: catch for canary, catch in zip(CANARIES, found, strict=True)}


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    assert len({canary.name for canary in CANARIES}) == len(CANARIES) >= 12


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name.replace(" ", "-"))
def test_a_mutant_is_caught(
    canary: Canary, catches: dict[str, Catch | None], capsys: pytest.CaptureFixture[str]
) -> None:
    catch = catches[canary.name]
    assert catch is not None, f"Among {canary.within} seeds none has caught this mutant: {canary.name}."
    with capsys.disabled():
        sys.stdout.write(f"\n  {canary.name}: caught with seed {catch[0]} of {canary.within} ({catch[1]}) ")
