"""What a check finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that a history breaks.

    Attributes:
        guarantee: such as ``S1``; docs/protocol.md lists them.
        at: when, in the history's own time.
        sentence: what happened, for a person.
    """

    guarantee: str
    at: float
    sentence: str
