"""Canaries: the simulator must catch each mutant of the protocol, or its silence proves nothing."""

from collections.abc import Callable

import pytest

from tests.background import BOUNDED_BY_WORK
from tests.pools import pool_in_background, results
from tests.system.simulation.adoption_canaries import ADOPTIONS
from tests.system.simulation.canary import Canary
from tests.system.simulation.escalation_canaries import ESCALATIONS
from tests.system.simulation.leadership_canaries import LEADERSHIP
from tests.system.simulation.lending_canaries import LENDING
from tests.system.simulation.mark_canaries import MARKS
from tests.system.simulation.reader_canaries import READERS
from tests.system.simulation.record_canaries import RECORDS
from tests.system.simulation.request_canaries import REQUESTS
from tests.system.simulation.run import simulate
from tests.system.simulation.store_canaries import STORES
from tests.system.simulation.stranger_canaries import STRANGERS

Catch = tuple[int, str]
PROCESSOR_S = 900
"""Of each process that hunts; all mutants take two of them 50 s each."""
ALL = (*LEADERSHIP, *ADOPTIONS, *LENDING, *MARKS, *RECORDS, *REQUESTS, *ESCALATIONS, *READERS, *STRANGERS, *STORES)

TRIED_FIRST = {
    "a batch counts for nothing at a grant": 43,
    "a claim is not checked against the own lease": 70,
    "a confirmation is read without sync": 103,
    "a failure in doubt is counted once more": 60,
    "a leader that answers has no time to renew": 103,
    "a leader that gives its lease back ends the pause": 69,
    "a lease counts from the start of the list": 39,
    "a long run begins nothing anew": 12,
    "a lower epoch from ZooKeeper is believed": 139,
    "a lookup sleeps until no time is left, and calls HDFS silent then": 38,
    "a new leader does not give up": 83,
    "a process that is gone frees the leases of others": 38,
    "a reader never audits": 57,
    "a sidecar that comes back forgets the failures": 59,
    "a snapshot's freshness counts from the answer": 4,
    "a standby seizes a paused lease of which it has heard": 147,
    "a store that replaces is not tried": 3,
    "a stranger's node attests a dead leader": 30,
    "an unknown outcome is taken for refused": 135,
    "endpoints that are listed are taken for published": 114,
    "it seizes without asking the leader": 63,
    "the failure of a command that was taken up is not counted": 59,
    "what is lent counts from the answer": 68,
}
"""The seeds that have caught the mutants that need many. To hunt them all from seed 0 takes two minutes of a core."""


def hunt(number: int) -> Catch | None:
    """Return the first seed in which the mutant breaks an expected guarantee, and that guarantee; None if none does."""
    with ALL[number] as canary:
        for seed in (TRIED_FIRST.get(canary.name, 0), *range(canary.within)):
            for violation in simulate(canary.plan(seed)).violations:
                if violation.guarantee in canary.breaks:
                    return seed, violation.guarantee
    return None


@pytest.fixture(scope="module")
def catches() -> dict[str, Catch | None]:
    """Return the catches by the mutant's name; all mutants are hunted on all cores."""
    with pool_in_background(processor_s=PROCESSOR_S) as pool:
        found = list(results(pool, hunt, range(len(ALL))))
    return {canary.name: catch for canary, catch in zip(ALL, found, strict=True)}


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    assert len({canary.name for canary in ALL}) == len(ALL) >= 12
    within = {canary.name: canary.within for canary in ALL}
    assert all(seed < within[name] for name, seed in TRIED_FIRST.items())


@pytest.mark.slow
@BOUNDED_BY_WORK
@pytest.mark.parametrize("canary", ALL, ids=lambda canary: canary.name.replace(" ", "-"))
def test_a_mutant_is_caught(canary: Canary, catches: dict[str, Catch | None], tell: Callable[[str], None]) -> None:
    catch = catches[canary.name]
    assert catch is not None, f"Among {canary.within} seeds none has caught this mutant: {canary.name}."
    tell(f"{canary.name}: caught with seed {catch[0]} of {canary.within} ({catch[1]})")
