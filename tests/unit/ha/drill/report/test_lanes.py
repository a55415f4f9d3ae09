"""Tests of the lanes of a timeline, in seconds since the drill began."""

from dataclasses import replace

import msgspec
import pytest

from ha.drill.report.lanes import Lane
from ha.history.events import Believed, Event, Granted, Ran
from tests.unit.ha.drill.report.moments import batch, lookup, seconds, shown
from tests.unit.ha.drill.report.synthetic import BEGAN, JOB, Story, history

STORY = Story(seconds=86.0)


def only(lanes: dict[str, Lane]) -> Lane:
    (lane,) = lanes.values()
    return lane


# --- contenders


def test_a_span_for_each_time_that_somebody_led() -> None:
    found = shown(history(STORY))
    assert [name for name in found if name.startswith("contender")] == ["contender-a", "contender-b", "contender-c"]
    ((begins, ends),) = found["contender-a"].spans["leads"]
    assert [begins, ends] == pytest.approx([1.3, 25], abs=0.01), "to the death of its process"
    ((lapsing, ran_out),) = found["contender-a"].spans["lapsing"]
    assert lapsing == pytest.approx(25)
    assert 2 < ran_out - lapsing <= 6, "what was left of a belief of 6 s"
    assert found["contender-b"].spans["leads"][0][0] == pytest.approx(26.4, abs=0.01)
    assert [found[f"contender-{name}"].sums[1] for name in "abc"] == ["epoch 1", "epoch 2", ""]
    assert found["contender-c"].sums[0] == "never led"


def test_the_time_without_a_leader_is_shown_and_said() -> None:
    lane = shown(history(STORY))["no leader"]
    assert seconds(lane.spans["nobody"]) == pytest.approx([25, 26.4], abs=0.06)
    assert lane.sums == ("1.40 s in all",)


def test_two_leaders_and_two_drivers_at_once_are_shown() -> None:
    found = shown(history(replace(STORY, killed=False, takeover=5.0, twice=4.0)))
    ((begins, ends),) = found["two leaders"].spans["two"]
    assert ends - begins == pytest.approx(3.7, abs=0.02)
    ((begins, ends),) = found["two drivers"].spans["two"]
    assert ends - begins == pytest.approx(3.85, abs=0.02), "the command ends a little later"
    assert not {"two leaders", "two drivers"} & shown(history(STORY)).keys()


def test_the_sums_of_a_leader_that_comes_and_goes_all_the_time_are_short() -> None:
    events: list[Event] = []
    for number in range(4000):
        begins = BEGAN + 0.02 * number
        events += [
            Granted(begins, JOB, "a", number, f"s{number}", "first"),
            Believed(begins, JOB, "a", begins + 9, None),
            Believed(begins + 0.01, JOB, "a", None, None),
        ]
    found = shown(events)
    assert found["a"].sums[1] == "4000 epochs, 0 to 3999"
    assert found["no leader"].sums == ("46.0 s in all",)


def test_a_command_that_was_never_seen_to_end_runs_to_the_end() -> None:
    assert shown([Ran(BEGAN + 5, JOB, "a", 1, True)])["a"].spans["runs"] == [(5, 86)]


# --- readers


def test_answers_are_gathered_by_source_and_counted() -> None:
    events = [lookup(5 + n / 10, 5 + n / 10 + 0.001, source="snapshot" if n % 2 else "hdfs") for n in range(200)]
    lane = only(shown(events))
    assert {"snapshot", "hdfs"} == {kind for kind, spans in lane.spans.items() if spans}
    assert lane.sums[0] == "200 lookups"


def test_quiet_times_are_one_span() -> None:
    assert len(only(shown([lookup(n / 10, n / 10 + 0.001) for n in range(800)])).spans["snapshot"]) == 1


def test_an_answer_is_where_it_arrived_and_a_slow_one_has_a_line_for_its_time() -> None:
    spans = only(shown([lookup(10, 11.5)])).spans
    assert seconds(spans["snapshot"]) == pytest.approx([11.4, 11.5], abs=0.06)
    assert seconds(spans["slow"]) == pytest.approx([10, 11.5], abs=0.06)


def test_failures_cover_the_time_that_they_took() -> None:
    events = [lookup(n, n + 0.01) for n in range(10)]
    events += [lookup(10 + 2 * n, 12 + 2 * n, "unreachable") for n in range(5)]
    lane = only(shown(events))
    assert seconds(lane.spans["unreachable"]) == pytest.approx([10, 20], abs=0.06)
    assert lane.sums == ("15 lookups, 5 failed", "slowest 2.00 s at 10 s")


def test_a_reader_that_was_never_answered() -> None:
    lane = only(shown([lookup(2 * n, 2 * n + 2, "unreachable") for n in range(40)]))
    assert lane.sums[0] == "40 lookups, all failed"
    assert len(lane.spans["unreachable"]) == 1


def test_no_leader_is_not_a_failure() -> None:
    lane = only(shown([lookup(1, 1.001, "none"), lookup(5, 5.001, "none"), lookup(9, 9.001)]))
    assert len(lane.spans["none"]) == 2
    assert "unreachable" not in lane.spans
    assert lane.sums[0] == "3 lookups"


def test_a_stale_answer_is_not_said_to_be_of_its_source() -> None:
    spans = only(shown([msgspec.structs.replace(lookup(5, 5.01), stale=True)])).spans
    assert spans["stale"]
    assert "snapshot" not in spans


def test_readers_have_the_shortest_name_that_no_other_has() -> None:
    readers = ["agent-41-0a1b2c3d.1", "agent-42-0a1b2c3e.1", "agent-42-0a1b2c3e.2", "web-7-0a1b2c3f.1", "plain"]
    found = shown([lookup(n, n + 0.1, reader=reader) for n, reader in enumerate(readers)])
    assert list(found) == ["agent 41.1", "agent 42.1", "agent 42.2", "plain", "web"]


# --- batches


def test_the_longest_time_without_a_new_batch_is_said() -> None:
    lane = only(shown([*(batch(10 + n, n) for n in range(10)), *(batch(40 + n, 10 + n, 2) for n in range(20))]))
    assert lane.sums == ("batch 0 to 29", "21.0 s without a new batch")
    assert seconds(lane.spans["pause"]) == pytest.approx([19, 40], abs=0.06)
    assert [begins for begins, _ in lane.spans["batch"]][:2] == pytest.approx([10, 11])


def test_a_batch_that_is_completed_again_is_no_progress() -> None:
    events = [*(batch(10 + n, n) for n in range(10)), batch(30, 9, 2), *(batch(40 + n, 10 + n, 2) for n in range(20))]
    lane = only(shown(events))
    assert lane.sums == ("batch 0 to 29, 1 again", "21.0 s without a new batch")
    assert seconds(lane.spans["again"]) == pytest.approx([30, 30], abs=0.06)


def test_batches_that_never_come_again_are_missed_as_long_as_somebody_watches() -> None:
    events: list[Event] = [batch(10 + n, n) for n in range(10)]
    assert not only(shown(events)).spans["pause"]
    events += [lookup(n, n + 0.01) for n in range(80)]
    assert shown(events)["batches"].sums[1] == "60.0 s without a new batch"


def test_each_query_has_its_lane() -> None:
    other = msgspec.structs.replace(batch(12, 1), query="totals")
    assert {"words", "totals"} <= shown([batch(10, 1), other]).keys()
    assert "batches" in shown([batch(10, 1)])
