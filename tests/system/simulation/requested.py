"""Check of requests: each is carried out once at most, by the leader for which it was made (ASKED).

One that is kept may be carried out by a later leader instead.
That leader has accepted it before, and its acceptance is in the journal. What was refused was not carried out.
"""

import re
from collections import Counter
from collections.abc import Iterator

from ha.history.events import Stored, Violation
from leader.job.request_folder import State
from leader.layout.names import REQUESTS, SEQUENCE, LeaderDirectory
from leader.timing import NEVER
from tests.system.simulation.requests import is_kept
from tests.system.simulation.sidecar import JOB
from tests.system.simulation.system import System

_VERSION = re.compile(rf"([^/]+)/{REQUESTS}/([^/=]+)=([0-9]+){SEQUENCE}")


def check_requested(system: System) -> Iterator[Violation]:
    """Yield each request that was carried out although it must not have been."""
    made_for: dict[str, int] = {}
    accepted: dict[tuple[str, int, str], float] = {}
    for event in system.history:
        if not isinstance(event, Stored) or event.job != JOB or not (match := _VERSION.fullmatch(event.target)):
            continue
        directory = LeaderDirectory.parse(match[1])
        assert directory is not None, "requests lie in leader directories"
        if match[3] == "1":
            made_for.setdefault(match[2], directory.epoch)
        else:
            accepted.setdefault((match[2], directory.epoch, event.by), event.at)
    ledger = system.ledger
    for done in ledger.carried_out:
        what = f"{done.contender} carried out request {done.id} in epoch {done.epoch}"
        made = made_for.get(done.id, NEVER)
        if not (made <= done.epoch if is_kept(done.id) else made == done.epoch):
            yield Violation("ASKED", done.at, f"{what}, and it was made for {made_for.get(done.id)}.")
        elif accepted.get((done.id, done.epoch, done.contender), float("inf")) > done.at:
            yield Violation("ASKED", done.at, f"{what}, and had not accepted it.")
        if ledger.answers.get(done.id) is State.REFUSED:
            yield Violation("ASKED", done.at, f"{what}, and the operator was told that it was refused.")
    times = Counter(done.id for done in ledger.carried_out)
    for done in ledger.carried_out[::-1]:
        if times.pop(done.id, 0) > 1:
            yield Violation("ASKED", done.at, f"Request {done.id} was carried out more than once.")
