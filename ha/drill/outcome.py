"""What came of drills: the data behind a report."""

from typing import Literal

import msgspec

Status = Literal["passed", "failed", "skipped"]


class Check(msgspec.Struct, frozen=True):
    """One thing that had to be true.

    Attributes:
        name: in a few words, the same for all drills.
        passed: whether it was.
        detail: in one sentence, with figures.
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
    """What came of one drill.

    Attributes:
        drill: its name.
        title: what it does, in one sentence.
        group: the kind of fault: ``kills``, ``network``, ``zookeeper``, ``hdfs``, ``both``, ``pauses``, ``machine``,
            ``upgrade``, ``agent``.
        ground: where it ran: ``sandbox`` or ``containers``.
        guard: who guarded the job: ``hybrid-ha``, ``kazoo`` (its Election) or ``curator`` (its LeaderLatch).
        status: skipped drills were not run; ``reason`` says why.
        reason: why it was skipped, or what kept it from being carried out; empty otherwise.
        began: boot-clock seconds of the host.
        seconds: how long it took in all.
        checks: what had to be true.
        measures: figures by name; names end in their unit (``takeover_seconds``), counts have none.
        faults: what was broken.
        events: name of the Parquet file with its history, beside the report; empty if there is none.
    """

    drill: str
    title: str
    group: str
    ground: str
    guard: str = "hybrid-ha"
    status: Status
    reason: str = ""
    began: float = 0.0
    seconds: float = 0.0
    checks: list[Check] = []
    measures: dict[str, float] = {}
    faults: list[Span] = []
    events: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of several.

    Attributes:
        version: of this distribution.
        when: wall-clock time in ISO format; for display only.
        machine: cores, memory, kernel, versions: whatever helps to compare figures.
        settings: the durations of the protocol, in seconds, by name.
        outcomes: in the order in which they ran.
    """

    version: str
    when: str
    machine: dict[str, str]
    settings: dict[str, float]
    outcomes: list[Outcome]
