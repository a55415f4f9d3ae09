"""Twins: another live process of the same name is noticed by the lease that it renews."""

import pytest
from msgspec import structs

from leader.contender.twins import TwinWatch
from leader.election.events import FilesDone, ListRecord, Rename
from leader.layout.lease import LOOK, Lease, Mode
from leader.layout.names import LeaderDirectory
from store.errors import NotFound
from store.outcome import Outcome
from tests.unit.leader.samples import A, B, C

DIRECTORY = LeaderDirectory(3, A)
THEIRS = Lease(5, Mode.HDFS, 6000, A, "", "a")


class Watching:
    def __init__(self) -> None:
        self.twins: list[str] = []
        self.watch = TwinWatch("a", self.twins.append)

    def read(self, *leases: Lease, job: str = "orders") -> list[str]:
        for lease in leases:
            self.watch.observe(job, FilesDone(ListRecord(DIRECTORY), Outcome([lease.name], None, 0.0, 0.0)))
        return self.twins


def renewed(lease: Lease, times: int) -> Lease:
    return structs.replace(lease, sequence=lease.sequence + times)


def test_a_lease_under_its_own_name_that_another_process_renews_is_a_twins() -> None:
    watching = Watching()
    assert watching.read(THEIRS, renewed(THEIRS, 1)) == [], "the last renewal of a dead process may be executed late"
    assert watching.read(renewed(THEIRS, 2)) == ["orders"]
    assert watching.read(renewed(THEIRS, 3), renewed(THEIRS, 4)) == ["orders"], "it is told once"


@pytest.mark.parametrize(
    "leases",
    [
        [THEIRS] * 5,
        [THEIRS, renewed(THEIRS, 1), renewed(THEIRS, 1)],
        [structs.replace(renewed(THEIRS, each), contender="b") for each in range(5)],
        [structs.replace(renewed(THEIRS, each), mode=Mode.RELEASED) for each in range(5)],
        [THEIRS, renewed(THEIRS, 1), structs.replace(renewed(THEIRS, 2), owner=B), Lease(8, Mode.HDFS, 6, B, "", "a")],
        [THEIRS, THEIRS.asked_to("b"), THEIRS.asked_to("b").asked_to("c")],
        [THEIRS, *(structs.replace(renewed(THEIRS, each), successor=LOOK, marks=each) for each in range(1, 5))],
    ],
    ids=[
        "its last life's", "one late renewal", "another's", "released", "two owners", "asked by an operator",
        "asked to look",
    ],
)  # fmt: skip
def test_what_is_no_twin(leases: list[Lease]) -> None:
    assert Watching().read(*leases) == []


def test_a_lease_of_its_own_is_no_twins() -> None:
    watching = Watching()
    watching.watch.observe("orders", Rename(f"{DIRECTORY.name}/record/x", f"{DIRECTORY.name}/record/{THEIRS.name}"))
    assert watching.read(*(renewed(THEIRS, each) for each in range(5))) == []


def test_renewals_in_two_jobs_do_not_add_up_and_failed_looks_say_nothing() -> None:
    watching = Watching()
    watching.read(THEIRS, renewed(THEIRS, 1))
    watching.read(structs.replace(THEIRS, owner=C), job="clicks")
    watching.watch.observe("orders", FilesDone(ListRecord(DIRECTORY), Outcome(None, NotFound("x"), 0.0, 0.0)))
    assert watching.read(renewed(structs.replace(THEIRS, owner=C), 1), job="clicks") == []
