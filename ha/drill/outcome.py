"""Outcomes of drills: the data behind a report."""

import re
from typing import Literal, NamedTuple

import msgspec

Status = Literal["passed", "failed", "skipped"]


class Check(msgspec.Struct, frozen=True):
    """One thing that had to be true: its name in a few words, the same for all drills, and a sentence with figures."""

    name: str
    passed: bool
    detail: str


class Span(msgspec.Struct, frozen=True):
    """A fault: what was broken, from when to when, in boot-clock seconds of the host."""

    what: str
    begins: float
    ends: float


class DrillOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one drill."""

    drill: str
    title: str
    group: str
    environment: str
    provider: str = "hybrid-ha"  # what kept the job available: hybrid-ha, or a baseline such as kazoo
    status: Status
    reason: str = ""  # why it was skipped, or could not be carried out
    began: float = 0.0  # boot-clock seconds of the host
    seconds: float = 0.0
    checks: list[Check] = []
    measures: dict[str, float] = {}  # a name ends in its unit (takeover_seconds), counts have none
    faults: list[Span] = []
    events: str = ""  # file with its history, relative to the report; empty if there is none


class Key(NamedTuple):
    """The key of an outcome within one report; a plain tuple of the three is as good."""

    drill: str
    environment: str
    provider: str

    @classmethod
    def of(cls, outcome: DrillOutcome) -> "Key":
        return cls(outcome.drill, outcome.environment, outcome.provider)

    @property
    def stem(self) -> str:
        """A name for files and anchors, in ASCII: it names no other folder."""
        return re.sub(r"[^A-Za-z0-9_.-]+", "-", "-".join(self)).strip("-.")

    @property
    def events(self) -> str:
        """Path of its history, relative to the report's folder."""
        return f"events/{self.stem}.jsonl"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of several drills, in the order in which they ran, with facts that help to compare figures.

    ``when`` is wall-clock time in ISO format, for display only; ``settings`` are durations in seconds.
    """

    version: str
    when: str
    machine: dict[str, str]
    settings: dict[str, float]
    outcomes: list[DrillOutcome]
