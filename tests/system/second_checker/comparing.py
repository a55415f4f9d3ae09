"""Comparing: both checkers judge histories of the simulator, as they are and with drawn mistakes in them."""

from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

import msgspec

from ha.history import events
from ha.history.checker import check
from ha.history.events import Event
from tests.system.second_checker.check import check_again
from tests.system.simulation import run
from tests.system.simulation.drawing import draw

JUDGED_BY_BOTH = frozenset({"S1", "S2", "S3", "S4", "S5", "R1", "R2"})


@dataclass
class Compared:
    """The histories of one seed."""

    seed: int
    histories: int = 0
    broken: int = 0
    differences: list[str] = field(default_factory=list)


def verdicts(history: list[Event]) -> tuple[set[str], set[str]]:
    """Return the guarantees that a history breaks, by the first checker and by the second."""
    first = {each.guarantee for each in check(history)}
    return first, {each.guarantee for each in check_again(history)} & JUDGED_BY_BOTH


def compare(seed: int, mistakes: int) -> Compared:
    """Compare verdicts on the history of a seed, and on copies of it with one mistake each."""
    compared = Compared(seed)
    history = history_of(seed)
    _compare(compared, history, "as it is")
    for number in range(mistakes):
        dice = Random(f"{seed} {number}")  # noqa: S311  # replayed, not secret
        _compare(compared, *mistaken(history, dice))
    return compared


def history_of(seed: int) -> list[Event]:
    """Simulate, and return what the simulator gives its checker to judge."""
    given: list[Event] = []

    def check_nothing(history: list[Event]) -> list[events.Violation]:
        given.extend(history)
        return []

    with patch.object(run, "check", check_nothing):
        run.simulate(draw(seed))
    return given


def _compare(compared: Compared, history: list[Event], what: str) -> None:
    first, second = verdicts(history)
    compared.histories += 1
    compared.broken += bool(first | second)
    if first != second:
        compared.differences.append(f"seed {compared.seed}, {what}: first {sorted(first)}, second {sorted(second)}")


TIMES = {"at", "ended"}
NOT_MISTAKEN = {"job", *TIMES, "operation", "path", "target"}
"""A history with another time is in another order, and one whose store did the impossible says nothing."""


def mistaken(history: list[Event], dice: Random) -> tuple[list[Event], str]:
    """Return a copy with one event left out, told twice or late, or with one part of it wrong; of changes the last."""
    kinds = sorted({type(each).__name__ for each in history if not isinstance(each, events.Fault | events.Copied)})
    kind = dice.choice(kinds)
    at = dice.choice([n for n, each in enumerate(history) if type(each).__name__ == kind])
    event, changed = history[at], list(history)
    how = dice.choice(("left out", "twice", "late", "wrong", "wrong", "wrong"))
    if isinstance(event, events.Stored):  # others build on each change: without it they cannot be
        how = "wrong"
    if how == "left out":
        del changed[at]
    elif how == "twice":
        changed.insert(at, event)
    elif how == "late":
        to = min(at + dice.randint(1, 200), len(history) - 1)
        del changed[at]
        late = {name: getattr(event, name) + history[to].at - event.at for name in TIMES & set(event.__struct_fields__)}
        changed.insert(to, msgspec.structs.replace(event, **late))
        changed.sort(key=lambda each: getattr(each, "ended", each.at))
    else:
        others = [each for each in history if type(each) is type(event) and each.job == event.job]
        name = dice.choice([each for each in event.__struct_fields__ if each not in NOT_MISTAKEN])
        value = getattr(dice.choice(others), name)
        if isinstance(value, int) and not isinstance(value, bool):
            value = max(0, value + dice.randint(-2, 2))
        changed[at] = msgspec.structs.replace(event, **{name: value})
        how = f"{name} is {value!r}"
    return changed, f"{kind} {at} {how}"
