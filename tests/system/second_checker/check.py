"""The second checker: another hand's reading of the protocol, to be compared with ``ha.history.checker``."""

from collections.abc import Iterable

from ha.history.events import Event, Violation
from tests.system.second_checker.rules import RULES, VIEWS
from tests.system.second_checker.tables import tables


def check_again(history: Iterable[Event]) -> list[Violation]:
    """Return what a history breaks, by the time."""
    return sorted((violation for _, violation in broken(history)), key=lambda violation: violation.at)


def broken(history: Iterable[Event]) -> list[tuple[str, Violation]]:
    """Return the rule that each violation breaks, too."""
    base = tables(history)
    try:
        base.executescript(VIEWS)
        return [
            (name, Violation(guarantee, at, sentence))
            for name, (guarantee, query) in RULES.items()
            for at, sentence in base.execute(query)
        ]
    finally:
        base.close()
