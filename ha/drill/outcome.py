"""Outcomes of drills: the data behind a report."""

from typing import Literal

import msgspec

Status = Literal["passed", "failed", "skipped"]


class Check(msgspec.Struct, frozen=True):
    """One thing that had to be true.

    Attributes:
        name: a few words, the same for all drills.
        passed: whether it was true.
        detail: one sentence with figures.
    """

    name: str
    passed: bool
    detail: str


class Span(msgspec.Struct, frozen=True):
    """A fault: what was broken, from when to when, in boot-clock seconds of the host."""

    what: str
    begins: float
    ends: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one drill.

    Attributes:
        drill: its name.
        title: what it does, in one sentence.
        group: the kind of fault: ``kills``, ``network``, ``zookeeper``, ``hdfs``, ``both``, ``pauses``, ``machine``,
            ``upgrade``, ``agent``, ``hangs``, ``crashes``, ``queries``, ``requests``.
        environment: ``sandbox`` or ``containers``.
        provider: what kept the job available: ``hybrid-ha``, or a baseline such as ``kazoo``.
        status: ``skipped`` drills were not run; ``reason`` says why.
        reason: why it was skipped, or could not be carried out; empty otherwise.
        began: boot-clock seconds of the host.
        seconds: its whole duration.
        checks: what had to be true.
        measures: figures by name; a name ends in its unit (``takeover_seconds``), counts have none.
        faults: what was broken.
        events: Parquet file with its history, relative to the report; empty if there is none.
    """

    drill: str
    title: str
    group: str
    environment: str
    provider: str = "hybrid-ha"
    status: Status
    reason: str = ""
    began: float = 0.0
    seconds: float = 0.0
    checks: list[Check] = []
    measures: dict[str, float] = {}
    faults: list[Span] = []
    events: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of several drills.

    Attributes:
        version: of this distribution.
        when: wall-clock time in ISO format; for display only.
        machine: cores, memory, kernel and versions, which help to compare figures.
        settings: the durations of the protocol, in seconds, by name.
        outcomes: in the order in which they ran.
    """

    version: str
    when: str
    machine: dict[str, str]
    settings: dict[str, float]
    outcomes: list[Outcome]
