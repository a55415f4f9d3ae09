"""Made-up drills, in the format of real ones: input for reports."""

import msgspec

from ha.drill.outcome import Check, DrillOutcome, Report, Span
from ha.history.events import Believed, Completed, Ended, Event, Fault, Granted, LookedUp, Stored

JOB = "orders"
BEGAN = 51_234.5
"""Boot-clock seconds at which all drills begin."""

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"

EVENTS: list[Event] = [
    Granted(BEGAN + 1, JOB, "contender-a", 1, A, "first"),
    Believed(BEGAN + 1, JOB, "contender-a", BEGAN + 7, BEGAN + 8),
    Stored(BEGAN + 2, JOB, "rename", f"0000000001-{A}/lease/1", f"0000000001-{A}/lease/2", "contender-a"),
    Completed(BEGAN + 3, JOB, BEGAN + 3.1, "contender-a", 1, "words", 0),
    LookedUp(BEGAN + 4, JOB, BEGAN + 4.1, 2.0, "reader-1", "leader", 1, A, {"rest": "a:8080"}, "snapshot"),
    Fault(BEGAN + 5, "", "broken"),
    Ended(BEGAN + 5, "", "contender-a"),
    Granted(BEGAN + 6, JOB, "contender-b", 2, B, "crash"),
    Completed(BEGAN + 8, JOB, BEGAN + 8.1, "contender-b", 2, "words", 1),
    Completed(BEGAN + 9, JOB, BEGAN + 9.1, "contender-b", 2, "words", 2),
]

PLAIN = DrillOutcome(drill="kill", title="Kill it.", group="kills", environment="sandbox", status="passed")


def outcome(drill: str = "kill", *, twice: float = 0.0, provider: str = "hybrid-ha") -> DrillOutcome:
    """A drill in which two led for ``twice`` seconds."""
    detail = f"Two believed to lead for {twice:.1f} s."
    return msgspec.structs.replace(
        PLAIN,
        drill=drill,
        provider=provider,
        status="failed" if twice else "passed",
        checks=[
            Check("one leader at a time", not twice, detail),
            Check("every word is counted once", not twice, "340 wrong." if twice else "none wrong."),
            Check("lookups succeed", True, "0 of 9 failed."),
        ],
        measures={"leader_changes": 1.0, "takeover_seconds": 1.4, "takeover_bound_seconds": 7.0, "lookups": 9.0},
        faults=[Span(drill, BEGAN + 5, BEGAN + 6)],
    )


def skipped(drill: str, reason: str) -> DrillOutcome:
    return msgspec.structs.replace(PLAIN, drill=drill, status="skipped", reason=reason)


def report(*outcomes: DrillOutcome) -> Report:
    machine, settings = {"cores": "2", "memory": "7.8 GB"}, {"session_timeout": 6.0, "long_ttl": 60.0}
    return Report(
        version="0.1.0", when="2025-06-03T14:05:11Z", machine=machine, settings=settings, outcomes=list(outcomes)
    )
