"""How often HDFS may be asked."""

from itertools import pairwise

import pytest

from leader.pace import BURST, PAUSE, Bucket, Pace

LONGEST = 10.0


def asked(pace: Pace, seconds: float, *, news: bool, start: float = 0.0) -> list[float]:
    """The times at which somebody who asks whenever it may, does."""
    at, times = start, []
    while at < start + seconds:
        due = pace.due(at)
        if due > 0:
            at += due + 1e-9
            continue
        pace.asked(at)
        pace.answered(at, news=news)
        times.append(at)
    return times


def test_a_minute_of_news_is_fewer_than_one_question_in_two_seconds() -> None:
    times = asked(Pace(LONGEST), 60, news=True)
    assert times[:BURST] == [0.0] * BURST
    assert len(times) == BURST + 60 / PAUSE - 1 < 30


def test_without_news_it_is_asked_less_and_less_often_and_not_less_than_that() -> None:
    times = asked(Pace(LONGEST), 600, news=False)
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses[0] == pytest.approx(PAUSE, rel=1e-6)
    assert pauses[-1] == pytest.approx(LONGEST, rel=1e-6)
    assert [round(pause, 6) for pause in pauses] == sorted(round(pause, 6) for pause in pauses)


def test_who_is_told_the_same_keeps_nothing_of_what_was_saved() -> None:
    """Else an outage of ZooKeeper would begin with as many questions in a row, of every host about every job."""
    assert asked(Pace(LONGEST), 2.0, news=False) == [0.0]


def test_something_new_makes_it_hurry() -> None:
    pace = Pace(LONGEST)
    end = asked(pace, 600, news=False)[-1]
    assert pace.due(end) == pytest.approx(LONGEST)
    pace.answered(end, news=True)
    assert pace.due(end) == pytest.approx(PAUSE)


def test_a_question_without_an_answer_costs_nothing_but_a_pause() -> None:
    pace = Pace(LONGEST)
    for number in range(100):
        assert pace.due(float(number)) == 0
        pace.asked(float(number))
        pace.failed(number + 0.3)
        assert pace.due(float(number)) == pytest.approx(0.3)


def test_who_holds_asks_later() -> None:
    pace = Pace(LONGEST)
    pace.hold(7.0)
    assert pace.due(5.0) == pytest.approx(2.0)
    assert pace.due(7.0) == 0


def test_a_short_audit_interval_is_kept() -> None:
    assert max(asked(Pace(0.1), 1.0, news=False)) > 0.85


def test_a_bucket_saves_no_more_than_its_burst() -> None:
    bucket = Bucket(rate=2.0, burst=3.0)
    assert bucket.due(1000.0) == 0
    for _ in range(3):
        assert bucket.due(5000.0) == 0
        bucket.take(5000.0)
    assert bucket.due(5000.0) == pytest.approx(0.5)
    bucket.give_back()
    assert bucket.due(5000.0) == 0
