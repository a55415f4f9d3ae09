"""The lanes of readers and of batches, read back from a picture."""

import msgspec

from ha.drill.report.picture import timeline
from ha.history.events import Event
from tests.drills.report.moments import at, batch, drawn, lookup
from tests.drills.report.synthetic import Story, outcome

STORY = Story(seconds=86.0)


# --- readers


def test_answers_are_gathered_by_source_and_counted() -> None:
    events = [lookup(5 + n / 10, 5 + n / 10 + 0.001, source="snapshot" if n % 2 else "hdfs") for n in range(200)]
    picture = drawn(events)
    assert picture.titles("snapshot") == ["r: 100 lookups answered by the snapshot, the slowest in 1 ms"]
    assert picture.titles("hdfs") == ["r: 100 lookups answered by HDFS, the slowest in 1 ms"]
    assert "200 lookups" in picture.texts("sum")
    assert len(timeline(outcome("d", STORY, what="x"), events)) < 12_000


def test_quiet_times_are_one_box() -> None:
    picture = drawn([lookup(n / 10, n / 10 + 0.001) for n in range(800)])
    (path,) = [each.attrib["d"] for each in picture.svg.iter("path") if each.get("class") == "snapshot"]
    assert path.count("M") == 1


def test_an_answer_is_where_it_arrived_and_a_slow_one_has_a_line_for_its_time() -> None:
    picture = drawn([lookup(10, 11.5)])
    (answer,) = [each.attrib["d"] for each in picture.svg.iter("path") if each.get("class") == "snapshot"]
    assert answer.startswith(f"M{at(11.4):.0f} "), "the column of three pixels that 11.5 s lie in"
    (slow,) = [each.attrib["d"] for each in picture.svg.iter("path") if each.get("class") == "slow"]
    assert slow.startswith(f"M{at(10):.0f} ")
    assert "h15v" in slow


def test_failures_cover_the_time_that_they_took_and_stand_out() -> None:
    events = [lookup(n, n + 0.01) for n in range(10)]
    events += [lookup(10 + 2 * n, 12 + 2 * n, "unreachable") for n in range(5)]
    picture = drawn(events)
    (failed,) = picture.boxes("unreachable")
    assert (failed["x"], failed["width"]) == (at(10), 100)
    (told,) = drawn([lookup(10, 12, "none")]).boxes("none")
    assert failed["height"] > told["height"], "it is not said by colour alone"
    assert picture.titles("unreachable") == ["r: lookups failed: no store answered: 5 from 10.00 s on, for 10.0 s"]
    assert "15 lookups, 5 failed" in picture.texts("sum")
    assert "slowest 2.00 s at 10 s" in picture.texts("sum")


def test_a_reader_that_was_never_answered() -> None:
    picture = drawn([lookup(2 * n, 2 * n + 2, "unreachable") for n in range(40)])
    assert "40 lookups, all failed" in picture.texts("sum")
    assert len(picture.boxes("unreachable")) == 1


def test_no_leader_is_not_a_failure() -> None:
    picture = drawn([lookup(1, 1.001, "none"), lookup(5, 5.001, "none"), lookup(9, 9.001)])
    assert len(picture.boxes("none")) == 2
    assert not picture.boxes("unreachable")
    assert "3 lookups" in picture.texts("sum")


def test_a_stale_answer_is_not_said_to_be_of_its_source() -> None:
    stale = msgspec.structs.replace(lookup(5, 5.01), stale=True)
    assert drawn([stale]).titles("stale")
    assert not drawn([stale]).titles("snapshot")


def test_readers_have_the_shortest_name_that_no_other_has() -> None:
    readers = ["agent-41-0a1b2c3d.1", "agent-42-0a1b2c3e.1", "agent-42-0a1b2c3e.2", "web-7-0a1b2c3f.1", "plain"]
    picture = drawn([lookup(n, n + 0.1, reader=reader) for n, reader in enumerate(readers)])
    assert picture.texts("name") == ["agent 41.1", "agent 42.1", "agent 42.2", "plain", "web"]


# --- batches


def test_the_longest_time_without_a_new_batch_is_said() -> None:
    picture = drawn([*(batch(10 + n, n) for n in range(10)), *(batch(40 + n, 10 + n, 2) for n in range(20))])
    assert "21.0 s without a new batch" in picture.texts("small")
    assert picture.titles("gap") == ["no new batch for 21.0 s"]
    assert {"0", "10", "29"} <= set(picture.texts("small")), "the first, the first of the next leader, the last"
    assert "batch 0 to 29" in picture.texts("sum")


def test_a_batch_that_is_completed_again_is_no_progress() -> None:
    picture = drawn(
        [*(batch(10 + n, n) for n in range(10)), batch(30, 9, 2), *(batch(40 + n, 10 + n, 2) for n in range(20))]
    )
    assert picture.titles("gap") == ["no new batch for 21.0 s"]
    assert picture.titles("again") == ["batch 9 completed again, by a, epoch 2"]


def test_batches_that_never_come_again_are_missed_as_long_as_somebody_watches() -> None:
    events: list[Event] = [batch(10 + n, n) for n in range(10)]
    assert not drawn(events).titles("gap")
    events += [lookup(n, n + 0.01) for n in range(80)]
    assert drawn(events).titles("gap") == ["no new batch for 60.0 s"]


def test_each_query_has_its_lane() -> None:
    other = msgspec.structs.replace(batch(12, 1), query="totals")
    assert {"words", "totals"} <= set(drawn([batch(10, 1), other]).texts("name"))
    assert "batches" in drawn([batch(10, 1)]).texts("name")
