"""Whether a history keeps the promises that can be seen in it: S1 to S5, R1 and R2.

R3, R4, L1 and L2 are about what must happen while stores and networks are well; only who breaks them knows when they
were, so the simulator and the drills check those themselves.
"""

from collections.abc import Iterator, Sequence

from ha.history.beliefs import check_beliefs
from ha.history.counting import check_checkpoints
from ha.history.epochs import check_epochs
from ha.history.events import Event
from ha.history.lookups import check_lookups
from ha.history.violation import Violation

GUARANTEES = ("S1", "S2", "S3", "S4", "S5", "R1", "R2")


def check(events: Sequence[Event], *, tolerance: float = 0.0) -> list[Violation]:
    """Return every violation, in the order of time.

    Args:
        events: in the order in which they happened.
        tolerance: seconds by which the file system's times may be off against the processes': none in a simulation.
    """
    jobs = sorted({event.job for event in events} - {""})
    found = [
        violation
        for job in jobs
        for violation in _check_job([each for each in events if each.job == job], job, tolerance)
    ]
    return sorted(found, key=lambda violation: violation.at)


def _check_job(events: Sequence[Event], job: str, tolerance: float) -> Iterator[Violation]:
    yield from check_beliefs(events)
    yield from check_epochs(events)
    yield from check_checkpoints(events, job, tolerance)
    yield from check_lookups(events, job, tolerance)
