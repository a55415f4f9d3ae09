"""Observer: hears of every step of this process in the protocol. A history and metrics are observers.

A step is reported as a struct that the reporting module defines:

- :mod:`leader.contender.participant`: every event and command of the election, and each new ``Belief``;
- :mod:`leader.job.checkpoints`: ``IdHandedOut`` and ``BatchPublished``;
- :mod:`leader.lookup.observed`: ``LookupEnded``, ``CheckpointsRead`` and each ``Look`` of a watch.

An observer picks its steps and ignores the rest. It is called on the thread that takes the step, and must not block.
"""

import logging
from collections.abc import Callable

Observer = Callable[[str, object], None]  # called with a job's name and the step
_log = logging.getLogger(__name__)


def fan_out(*observers: Observer | None) -> Observer | None:
    """Return an observer that tells all of these, or None. An error of one is logged, and stops no other."""
    told = [each for each in observers if each is not None]
    if not told:
        return None

    def observe(job: str, happened: object) -> None:
        for each in told:
            try:
                each(job, happened)
            except Exception:  # noqa: BLE001  # a broken metric must not break the election
                _log.exception("An observer of job %s failed.", job)

    return observe
