"""Tests of the judge: it can find each of its conditions violated."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from ha.drill.clients import text, words
from ha.drill.drill import Drill, Expected, bound
from ha.drill.environment import Ability
from ha.drill.judge import RECOVERY_SLACK_S, Judge, overlap
from ha.drill.observer import new_batches
from ha.drill.outcome import Span
from ha.history.events import Believed, Completed, Ended, Event, Granted, LookedUp, Published, Ran, Stored

JOB = "orders"
DURATIONS = {"session_timeout": 6.0}
A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
COUNTED = Counter(word for number in range(3) for word in words(text(number)))
ENDED: dict[str, int | None] = {"a": 0, "b": 0}


def drill(expected: Expected = Expected((1, 1), bound("6 s and 1 s", "session_timeout"))) -> Drill:  # noqa: B008
    return Drill("d", "a drill", "kills", lambda _: None, expected)


def lookup(at: float, outcome: str = "leader", took: float = 0.01) -> LookedUp:
    return LookedUp(at, JOB, at + took, 2.0, "r", outcome, epoch=1, session_id=A, source="zookeeper")


def history(takeover: float = 5.0) -> list[Event]:
    """A grant, a fault at 10.0, and another grant."""
    return [
        Granted(1.0, JOB, "a", 1, A, "first"),
        Published(1.1, JOB, "a", 1, A, {}),
        lookup(2.0),
        Granted(10.0 + takeover, JOB, "b", 2, B, "crash"),
        lookup(30.0),
    ]


def judged(
    events: Sequence[Event],
    expected: Expected | None = None,
    counted: "Counter[str]" = COUNTED,
    codes: dict[str, int | None] = ENDED,
    *,
    keeps_guarantees: bool = False,
    needs: Collection[Ability] = (),
) -> dict[str, bool]:
    faults = [Span("a fault", 10.0, 12.0)]
    done = replace(drill(expected) if expected else drill(), needs=frozenset(needs))
    judge = Judge(done, events, faults, 40.0, DURATIONS, keeps_guarantees=keeps_guarantees)
    judge.judge(range(3), [counted], codes)
    return {check.name: check.passed for check in judge.checks}


def test_a_bound_counts_the_outage_as_long_as_it_was() -> None:
    """From 10.0 to 12.0: servers that were told to come back are not there at once."""
    outage = Expected((1, 1), bound("the outage and 1 s", "outage"))
    assert judged(history(takeover=2.9 + RECOVERY_SLACK_S), outage)["recovered in time"]
    assert not judged(history(takeover=3.1 + RECOVERY_SLACK_S), outage)["recovered in time"]


def test_all_is_well() -> None:
    assert all(judged(history()).values())


def test_what_is_not_well_fails_its_check() -> None:
    word = Counter([next(iter(COUNTED))])
    for counted in (COUNTED + word, COUNTED - word):
        assert not judged(history(), counted=counted)["every word counted once"]
    events = [event for event in history() if not isinstance(event, LookedUp)]
    assert not judged(events)["lookups are answered"], "nobody looked anything up"
    assert not judged([*history(), lookup(20.0, took=2.6)])["lookups keep their deadline"]
    for codes in (ENDED | {"b": 1}, dict[str, int | None]()):
        assert not judged(history(), codes=codes)["the job finished"]


def test_each_outcome_has_to_count_every_word() -> None:
    """Also if one of them has lost what another has doubled."""
    word, other = list(COUNTED)[:2]
    judge = Judge(drill(Expected()), history()[:3], [], 40.0, DURATIONS, keeps_guarantees=False)
    judge.judge(range(3), [COUNTED, COUNTED - Counter([word]), COUNTED + Counter([other])], ENDED)
    assert not {check.name: check.passed for check in judge.checks}["every word counted once"]
    assert judge.measures["words_wrong"] == 2
    assert judge.measures["words_counted"] != judge.measures["words_expected"], "it shows one that is wrong"


def test_a_failed_lookup_is_excused_only_while_both_stores_are_out_of_reach() -> None:
    during, later = lookup(11.0, "unreachable", 2.0), lookup(20.0, "unreachable", 2.0)
    blind = Expected((1, 1), blind=True)
    assert not judged([*history(), during])["lookups are answered"]
    assert judged([*history(), during], blind)["lookups are answered"]
    assert not judged([*history(), later], blind)["lookups are answered"]


@pytest.mark.parametrize("expected", [Expected((0, 0)), Expected((2, 3))])
def test_a_leader_too_many_or_too_few(expected: Expected) -> None:
    assert not judged(history(), expected)["leader changes as expected"]


def test_what_the_end_of_the_job_brings_is_no_change() -> None:
    assert all(judged([*history(), Granted(41.0, JOB, "a", 3, A, "released")]).values())


def test_a_recovery_that_takes_too_long() -> None:
    assert judged(history(7.0 + RECOVERY_SLACK_S - 0.1))["recovered in time"]
    assert not judged(history(7.0 + RECOVERY_SLACK_S + 0.1))["recovered in time"]


def test_a_broken_promise() -> None:
    two = [Believed(20.0, JOB, name, leads_until=25.0, holds_until=25.0) for name in ("a", "b")]
    assert judged(history(), keeps_guarantees=True)["history keeps every guarantee"]
    assert not judged([*history(), *two], keeps_guarantees=True)["history keeps every guarantee"]


def test_a_batch_that_is_acknowledged_once_more_is_no_progress() -> None:
    done = [
        Completed(at, JOB, at + 0.1, name, epoch, "words", batch)
        for at, name, epoch, batch in ((5.0, "a", 1, 0), (16.0, "b", 2, 0), (25.0, "b", 2, 1))
    ]
    assert [event.batch for event in new_batches(done)] == [0, 1]
    judge = Judge(drill(), [*history(), *done], [Span("a fault", 10.0, 12.0)], 40.0, DURATIONS, keeps_guarantees=False)
    judge.judge(range(3), [COUNTED], ENDED)
    assert judge.measures["first_batch_seconds"] == 15.1


def test_overlap_of_two_drivers() -> None:
    events: list[Ran | Ended] = [
        Ran(1.0, JOB, "a", 1, running=True),
        Ran(5.0, JOB, "b", 2, running=True),
        Ended(7.5, "", "a"),
        Ran(9.0, JOB, "b", 2, running=False),
    ]
    assert overlap(events) == 2.5
    assert overlap(events[2:]) == 0.0


def stored(at: float) -> list[Event]:
    directory = f"0000000001-{A}"
    return [
        Stored(1.0, JOB, "rename", f"0000000000-{A}", directory),
        Stored(at, JOB, "make", f"{directory}/checkpoints/daily=4"),
        Completed(20.0, JOB, 20.5, "a", 1, "daily", 4),
    ]


def test_what_was_acknowledged_has_to_be_written_by_then_unless_somebody_set_the_clocks() -> None:
    name = "history keeps every guarantee"
    begins = [Granted(1.0, JOB, "a", 1, A, "first")]
    assert judged([*begins, *stored(20.4)], keeps_guarantees=True)[name]
    an_hour_ahead = [*begins, *stored(3620.0)]
    assert not judged(an_hour_ahead, keeps_guarantees=True)[name]
    assert judged(an_hour_ahead, keeps_guarantees=True, needs={Ability.CLOCK})[name]
    never = [event for event in an_hour_ahead if not isinstance(event, Stored) or event.operation != "make"]
    assert not judged(never, keeps_guarantees=True, needs={Ability.CLOCK})[name]
