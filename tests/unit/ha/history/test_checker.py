"""The checker on histories made by hand, in which each guarantee is kept or broken."""

from collections.abc import Sequence

import pytest

from ha.history.checker import beliefs, check
from ha.history.events import (
    Believed,
    CheckpointsRead,
    Completed,
    Counted,
    Event,
    Granted,
    LookedUp,
    Published,
    Stored,
    Suspected,
)
from ha.history.timeline import timeline
from leader.layout.information import LeaderInformation, endpoint_entries
from leader.layout.lease import Lease, Mode
from leader.layout.names import ADOPTED, LeaderDirectory
from tests.unit.leader.samples import A, B

JOB = "orders"
ZERO, FIRST, SECOND = LeaderDirectory(0, B.replace("b", "0")), LeaderDirectory(1, A), LeaderDirectory(2, B)


def broken(*events: Event, tolerance: float = 0.0) -> set[str]:
    return {violation.guarantee for violation in check(sorted(events, key=lambda each: each.at), tolerance=tolerance)}


def belief(at: float, who: str, until: float | None) -> Believed:
    return Believed(at, JOB, who, until, until)


def claim(at: float, source: LeaderDirectory, target: LeaderDirectory, by: str = "") -> Stored:
    return Stored(at, JOB, "rename", source.name, target.name, by)


def made(at: float, directory: LeaderDirectory, path: str, by: str = "") -> Stored:
    return Stored(at, JOB, "make", f"{directory.name}/{path}", "", by)


def granted(at: float, who: str, directory: LeaderDirectory) -> Granted:
    return Granted(at, JOB, who, directory.epoch, directory.session_id, "released")


def published(at: float, directory: LeaderDirectory, address: str) -> list[Event]:
    information = LeaderInformation(JOB, directory.epoch, directory.session_id, {"rest": address})
    lease = Lease(directory.epoch, Mode.HDFS, 6000, directory.session_id, "", "a")
    (entry,) = endpoint_entries(information)
    return [made(at, directory, f"record/{lease.name}"), made(at, directory, f"record/{entry.name}")]


def told(at: float, directory: LeaderDirectory, address: str = "a:1", reader: str = "r") -> LookedUp:
    return LookedUp(at, JOB, at + 0.1, 2.0, reader, "leader", directory.epoch, directory.session_id, {"rest": address})


LED: Sequence[Event] = (claim(1, ZERO, FIRST), granted(1, "a", FIRST), *published(2, FIRST, "a:1"))


RENEWED = [belief(1, "a", 5), belief(3, "a", 8)]
SAME_SEQUENCE = Lease(7, Mode.HDFS, 6000, A, "", "a").name


@pytest.mark.parametrize(
    ("breaks", "events"),
    [
        ("", [belief(1, "a", 5), belief(4, "a", None), belief(4, "b", 9)]),
        ("S1", [belief(1, "a", 5), belief(4.9, "b", 9)]),
        ("", [*RENEWED, belief(8, "b", 9)]),
        ("S1", [*RENEWED, belief(7.9, "b", 9)]),  # it counts until its time, whatever became of the process
        ("", [belief(1, "a", 5), Believed(2, "payments", "b", 9, 9)]),
        ("S1", [Believed(1, JOB, "a", None, 5), Believed(2, JOB, "b", None, 5)]),  # they hold, and do not lead
        ("S2", [*LED, made(3, FIRST, "spark/1", "b")]),
        ("S2", [*LED, claim(5, FIRST, SECOND),
                Stored(6, JOB, "rename", f"{FIRST.name}/spark/1", f"{SECOND.name}/spark/1")]),
        ("S3", [claim(1, ZERO, FIRST), claim(2, ZERO, SECOND)]),
        ("S3", [claim(1, ZERO, FIRST), claim(2, FIRST, LeaderDirectory(3, B))]),
        ("S3", [claim(1, ZERO, FIRST), claim(2, FIRST, LeaderDirectory(1, B))]),
        ("S3", [claim(1, ZERO, FIRST), claim(2, FIRST, LeaderDirectory(0, B))]),
        ("S3", [granted(1, "a", FIRST), granted(2, "b", LeaderDirectory(1, B))]),
        ("S3", [granted(1, "a", FIRST), granted(2, "a", LeaderDirectory(2, A))]),
        ("S3", [Stored(1, JOB, "rename", *[f"{FIRST.name}/record/{SAME_SEQUENCE}"] * 2)]),
        ("S4", [Counted(1, JOB, 2, "a", 1, 7), Counted(3, JOB, 4, "b", 2, 7)]),
        ("S4", [*LED, made(3, FIRST, "checkpoints/q=3"),
                Stored(4, JOB, "rename", f"{FIRST.name}/checkpoints/q=3", f"{FIRST.name}/checkpoints/q=2")]),
        ("S4", [CheckpointsRead(at, JOB, at + 0.1, "r", 1, 5, {"q": batch}) for at, batch in ((1, 3), (2, 2))]),
        ("R2", [*LED, told(3, FIRST, "evil:1")]),
        ("R2", [*LED, told(3, FIRST, "a:2")]),
        ("R2", [*LED, told(1.5, FIRST)]),  # before it was published
    ],
)  # fmt: skip
def test_what_breaks_a_guarantee(breaks: str, events: list[Event]) -> None:
    assert broken(*events) == {breaks} - {""}


def taken_over(at: float, who: str, of: str = "a") -> list[Event]:
    return [Suspected(at, JOB, of, who), belief(at + 0.1, who, at + 6)]


def test_a_belief_ends_when_its_process_is_rightly_suspected() -> None:
    killed = [belief(1, "a", 9)]
    assert not broken(*killed, *taken_over(5, "b"))
    assert "S1" in broken(*killed, *taken_over(5, "b", of="c"))
    assert "S1" in broken(*killed, belief(4, "c", 9), *taken_over(5, "b"), belief(8, "c", 12))


def test_a_suspected_process_that_goes_on_was_not_gone() -> None:
    for heard in (belief(5.5, "a", 9.5), belief(6, "a", None)):
        assert "S1" in broken(belief(1, "a", 9), heard, *taken_over(5, "b"))
    again = belief(9.5, "a", 12)
    assert not broken(belief(1, "a", 9), again, belief(9.2, "b", None), *taken_over(5, "b")), "after its time: another"


def test_a_belief_that_lapsed_begins_anew() -> None:
    found = list(beliefs([belief(1, "a", 2), belief(3, "a", 5), belief(4, "a", None)], leads=True))
    assert [(each.begins, each.ends) for each in found] == [(1, 2), (3, 4)]


def test_a_leader_and_its_successor() -> None:
    assert not broken(*LED, claim(5, FIRST, SECOND), granted(5, "b", SECOND), made(6, SECOND, "spark/1", "b"))


def adopted(at: float, who: str, directory: LeaderDirectory) -> Granted:
    return Granted(at, JOB, who, directory.epoch, directory.session_id, ADOPTED)


BEGUN: list[Event] = [belief(1, "a", 20), granted(1, "a", FIRST)]


def test_a_leadership_that_is_taken_up_has_one_believer_at_a_time() -> None:
    taken_up: list[Event] = [*BEGUN, belief(5, "a.2", 25), adopted(5, "a.2", FIRST)]
    assert broken(*taken_up) == set()
    assert broken(*taken_up, belief(6, "a", 26)) == {"S1"}, "it was not dead"
    assert broken(*taken_up, belief(5, "b", 26)) == {"S1"}
    assert broken(*BEGUN, belief(5, "a", 25), adopted(5, "a", FIRST)) == set()


def test_a_belief_from_before_its_grant_ends_the_former_one() -> None:
    assert broken(*BEGUN, belief(5, "a.2", 25), adopted(5.1, "a.2", FIRST)) == set()
    assert broken(*BEGUN, belief(5, "a.2", 25)) == {"S1"}, "nothing was taken up"


def test_only_the_last_leadership_is_taken_up() -> None:
    assert broken(granted(1, "a", FIRST), granted(2, "b", SECOND), adopted(3, "a.2", FIRST)) == {"S3"}
    assert broken(granted(1, "a", FIRST), adopted(3, "a.2", LeaderDirectory(1, B))) == {"S3"}
    assert broken(adopted(3, "a.2", FIRST)) == {"S3"}
    assert broken(granted(1, "a", FIRST), adopted(3, "a.2", FIRST), granted(4, "b", SECOND)) == set()


def test_both_processes_of_one_leadership_write_below_its_directory() -> None:
    led: list[Event] = [granted(1, "a", FIRST), adopted(2, "a.2", FIRST)]
    assert broken(*led, made(3, FIRST, "spark/x", "a"), made(3, FIRST, "spark/y", "a.2")) == set()
    assert broken(*led, made(3, FIRST, "spark/x", "b")) == {"S2"}


def test_a_lease_that_was_given_back_is_not_taken_up() -> None:
    home = f"{FIRST.name}/record"
    released, held = Lease(5, Mode.RELEASED, 0, A, "", "a"), Lease(6, Mode.HDFS, 6000, A, "", "a")
    again, seized = Lease(6, Mode.RELEASED, 0, A, "", "a", "b"), Lease(6, Mode.HDFS, 6000, B, "", "b")

    def renamed(target: Lease) -> Stored:
        return Stored(1, JOB, "rename", f"{home}/{released.name}", f"{home}/{target.name}", "")

    assert broken(renamed(held)) == {"S3"}
    assert broken(renamed(again)) == set(), "an operator asks"
    assert broken(renamed(seized)) == set()


def test_ids_and_batches_in_order() -> None:
    assert not broken(
        *LED,
        Stored(3, JOB, "rename", f"{FIRST.name}/checkpoints/next=1", f"{FIRST.name}/checkpoints/next=2"),
        Counted(2.9, JOB, 3.1, "a", 1, 1),
        made(4, FIRST, "checkpoints/counts=0"),
        Completed(3.9, JOB, 4.1, "a", 1, "counts", 0),
    )


def test_the_id_of_a_completed_checkpoint_is_its_own() -> None:
    first = made(3, FIRST, "checkpoints/q=3~7~1~~~~~")
    again = Stored(4, JOB, "rename", first.path, f"{first.path}~2")
    counter = made(3, FIRST, "checkpoints/next=9")
    assert not broken(*LED, counter, first, Counted(3.5, JOB, 3.6, "a", 1, 8), again)
    assert broken(*LED, counter, first, Counted(3.5, JOB, 3.6, "a", 1, 7)) == {"S4"}
    assert broken(*LED, first, made(4, FIRST, "checkpoints/q=4~7~1~~~~~")) == {"S4"}
    assert broken(*LED, first, made(4, FIRST, "checkpoints/p=3~7~1~~~~~")) == {"S4"}


def test_a_batch_that_was_acknowledged_and_is_not_there() -> None:
    acknowledged = Completed(2.9, JOB, 3.1, "a", 1, "counts", 4)
    assert broken(*LED, acknowledged) == {"S5"}
    assert broken(*LED, acknowledged, made(3.2, FIRST, "checkpoints/counts=4")) == {"S5"}
    assert not broken(*LED, acknowledged, made(3.2, FIRST, "checkpoints/counts=4"), tolerance=0.2)


def test_a_reader_that_follows() -> None:
    assert not broken(
        *LED,
        told(3, FIRST),
        claim(5, FIRST, SECOND),
        granted(5, "b", SECOND),
        *published(6, SECOND, "b:1"),
        told(7, SECOND, "b:1"),
    )


def test_a_reader_that_goes_back() -> None:
    second = [claim(5, FIRST, SECOND), granted(5, "b", SECOND), *published(6, SECOND, "b:1")]
    assert broken(*LED, *second, told(7, SECOND, "b:1"), told(8, FIRST)) == {"R1"}
    assert not broken(*LED, *second, told(7, SECOND, "b:1"), told(8, FIRST, reader="another"))


def test_without_the_file_systems_changes_the_leaders_word_counts() -> None:
    said = Published(2, JOB, "a", 1, A, {"rest": "a:1"})
    assert not broken(granted(1, "a", FIRST), said, told(3, FIRST))
    assert broken(granted(1, "a", FIRST), said, told(3, FIRST, "evil:1")) == {"R2"}


def test_a_reader_may_know_before_the_leader_is_told_that_it_has_published() -> None:
    said = Published(3, JOB, "a", 1, A, {"rest": "a:1"})
    assert not broken(granted(1, "a", FIRST), told(1.5, FIRST), said)
    assert broken(granted(1, "a", FIRST), told(0.5, FIRST), said) == {"R2"}
    assert broken(told(1.5, FIRST), said) == {"R2"}


def test_an_answer_is_true_from_the_first_grant_on_although_the_leadership_is_taken_up_later() -> None:
    said = Published(2, JOB, "a", 1, A, {"rest": "a:1"})
    again = Published(6, JOB, "a.2", 1, A, {"rest": "a:1"})
    led = granted(1, "a", FIRST), said, told(3, FIRST), adopted(5, "a.2", FIRST), again, told(7, FIRST)
    assert broken(*led) == set()


def test_a_timeline_leaves_out_repetitions() -> None:
    events = [*LED, belief(1, "a", 5), belief(2, "a", 6), belief(3, "a", 7), told(3, FIRST), told(4, FIRST)]
    lines = list(timeline(sorted(events, key=lambda each: each.at), check(events)))
    assert sum("believes to lead" in line for line in lines) == 1
    assert sum("was told" in line for line in lines) == 1
    assert any("claimed epoch 1" in line for line in lines)
