"""Poll interval: when a standby looks for the next renewal. It is more exact than steady polls, with half the looks."""

import random

import pytest

from leader.election.rival import EARLY_DRIFTS, MAX_VAIN_LOOKS, PollInterval
from leader.timing import Timing

TIMING = Timing()
EVERY = TIMING.renewal


def follow(
    first: float, looks: int, rate: float = 1.0, answer: float = 0.002, shift: float = 0.0
) -> list[tuple[float, float]]:
    """Look at a lease that is renewed at 0, 2, 4 ...; return the time of each look, and the age of the renewal.

    From the sixtieth second on it is renewed that much earlier.
    """
    rhythm, at, seen, found = PollInterval(TIMING), first, -1, []
    for _ in range(looks):
        at += answer
        moved = shift if at > 60 else 0.0
        number = int((at + moved) // EVERY)
        rhythm.looked(at * rate, renewed=number != seen)
        found.append((at, at + moved - number * EVERY if number != seen else 0.0))
        seen = number
        at += rhythm.seconds() / rate
    return found


@pytest.mark.parametrize("rate", [1 - TIMING.drift, 1.0, 1 + TIMING.drift])
@pytest.mark.parametrize("seed", range(20))
def test_a_renewal_is_seen_sooner_than_by_looking_all_the_time(seed: int, rate: float) -> None:
    looks = follow(random.Random(seed).uniform(0, EVERY), 200, rate)  # noqa: S311
    settled = [age for at, age in looks if at > 2 * EVERY]
    assert max(settled) <= TIMING.retry / rate + 0.01


@pytest.mark.parametrize("rate", [1 - TIMING.drift, 1.0, 1 + TIMING.drift])
def test_it_looks_about_twice_for_each_renewal(rate: float) -> None:
    looks = follow(0.3, 200, rate)
    assert 2.0 <= len(looks) / (looks[-1][0] / EVERY) <= 2.4


def test_it_knows_nothing_until_two_looks_were_close_to_each_other() -> None:
    rhythm = PollInterval(TIMING)
    rhythm.looked(0.0, renewed=True)
    assert rhythm.seconds() == TIMING.poll
    rhythm.looked(20.0, renewed=True)
    assert rhythm.seconds() == TIMING.poll, "it may have been renewed long ago"
    rhythm.looked(20.0 + TIMING.poll, renewed=True)
    assert rhythm.seconds() == pytest.approx(EVERY * (1 - EARLY_DRIFTS * TIMING.drift) - TIMING.retry)


def test_a_renewal_that_does_not_come_is_looked_for_quickly_and_then_as_always() -> None:
    rhythm = PollInterval(TIMING)
    for at in (0.0, TIMING.poll):
        rhythm.looked(at, renewed=True)
    pauses = []
    for step in range(MAX_VAIN_LOOKS + 2):
        rhythm.looked(2.2 + step / 4, renewed=False)
        pauses.append(rhythm.seconds())
    assert pauses == [TIMING.retry] * MAX_VAIN_LOOKS + [TIMING.poll] * 2


def test_an_early_look_that_finds_a_renewal_shows_that_the_interval_has_changed() -> None:
    rhythm = PollInterval(TIMING)
    for at in (0.0, TIMING.poll, TIMING.poll + 0.9 * EVERY):
        rhythm.looked(at, renewed=True)
    assert rhythm.seconds() == TIMING.poll


@pytest.mark.parametrize("shift", [0.3, 0.7, 1.2, 1.9])
def test_a_new_renewal_interval_is_learnt_within_two_renewals(shift: float) -> None:
    looks = follow(0.3, 200, shift=shift)
    assert max(age for at, age in looks if at > 60 + 2 * EVERY) <= TIMING.poll + 0.01
