"""Tests of the spans of leadership, from the contenders' beliefs, and of operations on spans of time."""

from hypothesis import given
from hypothesis import strategies as some

from ha.drill.report.spans import Stay, by_contender, commands, complement, shared, stays, total, union
from ha.history.events import Believed, Ended, Event, Granted, Ran, Revoked

INFINITY = float("inf")


def believed(at: float, who: str, until: float | None) -> Believed:
    return Believed(at, "orders", who, until, until)


def granted(at: float, who: str, epoch: int) -> Granted:
    return Granted(at, "orders", who, epoch, f"session-{epoch}", "released")


def test_renewals_are_one_stay() -> None:
    assert stays([believed(1, "a", 7), believed(3, "a", 9), believed(5, "a", None)]) == [Stay("a", 1, 5)]


def test_a_belief_that_is_not_renewed_ends_when_it_runs_out() -> None:
    assert stays([believed(1, "a", 7), believed(3, "a", 9), believed(12, "a", 18)]) == [
        Stay("a", 1, 9),
        Stay("a", 12, 18),
    ]


def test_who_is_killed_leads_no_more_though_its_belief_goes_on() -> None:
    (stay,) = stays([believed(1, "a", 7), Ended(4, "", "a")])
    assert stay == Stay("a", 1, 7, died=4)
    assert stay.alive == (1, 4)


def test_who_ended_after_its_belief_did_not_die_leading() -> None:
    assert stays([believed(1, "a", 7), Ended(9, "", "a")]) == [Stay("a", 1, 7)]


def test_who_is_back_before_its_old_belief_ran_out_begins_anew() -> None:
    assert stays([believed(1, "a", 9), Ended(4, "", "a"), believed(5, "a", 11)]) == [
        Stay("a", 1, 5, died=4),
        Stay("a", 5, 11),
    ]


def test_a_stay_has_the_epoch_that_was_granted_just_before_or_in_it() -> None:
    assert [stay.epoch for stay in stays([granted(1, "a", 4), believed(1.1, "a", 7)])] == [4]
    assert [stay.epoch for stay in stays([believed(1, "a", 7), granted(1.1, "a", 4)])] == [4]
    assert [stay.epoch for stay in stays([granted(1, "a", 4), believed(3, "a", 7)])] == [None]
    assert [stay.epoch for stay in stays([believed(1, "a", 3), granted(4, "a", 4)])] == [None]


def test_another_epoch_is_another_stay() -> None:
    events: list[Event] = [granted(1, "a", 4), believed(1, "a", 7), granted(5, "a", 6), believed(6, "a", 12)]
    assert stays(events) == [Stay("a", 1, 5, epoch=4), Stay("a", 5, 12, epoch=6)]


def test_a_revocation_ends_a_stay_even_if_the_belief_was_not_taken_back() -> None:
    assert stays([believed(1, "a", 7), Revoked(4, "orders", "a", "session-1", "told to")]) == [Stay("a", 1, 4)]


def test_beliefs_of_several() -> None:
    found = stays([believed(1, "a", 7), believed(2, "b", None), Ended(3, "", "a"), believed(8, "b", 14)])
    assert by_contender(found) == {"a": [(1, 3)], "b": [(8, 14)]}


def test_endless_beliefs_end_when_they_are_taken_back() -> None:
    assert stays([believed(1, "a", INFINITY), believed(5, "a", float("-inf"))]) == [Stay("a", 1, 5)]


def test_commands() -> None:
    ran: list[Event] = [
        Ran(1, "orders", "a", 1, True),
        Ran(4, "orders", "a", 1, False),
        Ran(5, "orders", "b", 2, True),
        Ended(7, "", "b"),
        Ran(8, "orders", "b", 3, True),
        Ran(9, "orders", "c", 4, False),
    ]
    assert commands(ran) == {"a": [(1, 4)], "b": [(5, 7), (8, INFINITY)]}


# --- spans

spans = some.lists(some.tuples(some.integers(0, 50), some.integers(0, 50)).map(sorted).map(tuple), max_size=8)


@given(spans)
def test_union_and_complement_are_all_there_is(found: list[tuple[float, float]]) -> None:
    free = complement(found, (0, 60))
    assert total(found) + total(free) == 60
    assert sorted(union([*found, *free])) == [(0, 60)]


@given(spans, spans, spans)
def test_shared_is_what_two_have(
    one: list[tuple[float, float]], two: list[tuple[float, float]], three: list[tuple[float, float]]
) -> None:
    found = shared({"a": one, "b": two, "c": three})
    for second in range(50):
        owners = sum(
            any(begins <= second and second + 1 <= ends for begins, ends in union(each)) for each in (one, two, three)
        )
        assert any(begins <= second and second + 1 <= ends for begins, ends in found) == (owners > 1)


def test_close_spans_become_one() -> None:
    assert union([(5, 6), (1, 2), (2.5, 3)], gap=0.5) == [(1, 3), (5, 6)]
