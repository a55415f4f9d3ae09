"""Rate limits of HDFS, on a clock that the test sets."""

import random
from itertools import pairwise

import pytest

from leader.lookup.rate_limit import (
    JOB_BURST,
    JOB_PAUSE_S,
    SPREAD_S,
    AuditSchedule,
    HdfsRateLimit,
    Jitter,
    JobRateLimit,
    TokenBucket,
)
from tests.unit.leader.lookup.ticking import Hand

LONGEST = 10.0


def asked(limit: JobRateLimit, seconds: float, *, news: bool, start: float = 0.0) -> list[float]:
    """Return the times at which a reader asks if it asks as often as it may."""
    at, times = start, []
    while at < start + seconds:
        wait = limit.wait(at)
        if wait > 0:
            at += wait + 1e-9
            continue
        limit.take(at)
        limit.answered(at, news=news)
        times.append(at)
    return times


def test_a_minute_of_news_is_fewer_than_one_question_in_two_seconds() -> None:
    times = asked(JobRateLimit(LONGEST), 60, news=True)
    assert times[:JOB_BURST] == [0.0] * JOB_BURST
    assert len(times) == JOB_BURST + 60 / JOB_PAUSE_S - 1 < 30


def test_without_news_it_is_asked_less_and_less_often_and_not_less_than_that() -> None:
    times = asked(JobRateLimit(LONGEST), 600, news=False)
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses[0] == pytest.approx(JOB_PAUSE_S, rel=1e-6)
    assert pauses[-1] == pytest.approx(LONGEST, rel=1e-6)
    assert [round(pause, 6) for pause in pauses] == sorted(round(pause, 6) for pause in pauses)


def test_an_answer_without_news_drops_the_saved_tokens() -> None:
    """Otherwise every host would begin an outage of ZooKeeper with that many questions in a row about every job."""
    assert asked(JobRateLimit(LONGEST), 2.0, news=False) == [0.0]
    assert max(asked(JobRateLimit(0.1), 1.0, news=False)) > 0.85, "a short audit interval is kept"


def test_news_raises_the_rate() -> None:
    limit = JobRateLimit(LONGEST)
    end = asked(limit, 600, news=False)[-1]
    assert limit.wait(end) == pytest.approx(LONGEST)
    limit.answered(end, news=True)
    assert limit.wait(end) == pytest.approx(JOB_PAUSE_S)


def test_a_question_without_an_answer_costs_nothing_but_a_pause() -> None:
    limit = JobRateLimit(LONGEST)
    for number in range(100):
        assert limit.wait(float(number)) == 0
        limit.take(float(number))
        limit.failed(number + 0.3)
        assert limit.wait(float(number)) == pytest.approx(0.3)


def test_a_limit_that_is_held_allows_nothing_before() -> None:
    limit = JobRateLimit(LONGEST)
    limit.hold(7.0)
    assert limit.wait(5.0) == pytest.approx(2.0)
    assert limit.wait(7.0) == 0


def test_a_bucket_saves_no_more_than_its_burst() -> None:
    bucket = TokenBucket(rate=2.0, burst=3.0)
    assert bucket.wait(1000.0) == 0
    for _ in range(3):
        assert bucket.wait(5000.0) == 0
        bucket.take(5000.0)
    assert bucket.wait(5000.0) == pytest.approx(0.5)
    bucket.give_back()
    assert bucket.wait(5000.0) == 0


def test_asking_for_the_wait_takes_no_token() -> None:
    clock = Hand()
    limit = HdfsRateLimit(clock, LONGEST)
    job = limit.of_job()
    for _ in range(2 * JOB_BURST):
        assert limit.wait(job) == 0
    assert [limit.try_acquire(job) for _ in range(JOB_BURST + 1)] == [True] * JOB_BURST + [False]
    assert limit.wait(job) == pytest.approx(JOB_PAUSE_S)
    clock.at += JOB_PAUSE_S + 1e-9
    assert [limit.try_acquire(job), limit.try_acquire(job)] == [True, False]


def test_a_local_directory_has_no_limit() -> None:
    limit = HdfsRateLimit(Hand(), LONGEST, unlimited=True)
    job = limit.of_job()
    assert all(limit.try_acquire(job) for _ in range(1000))
    assert limit.wait(job) == 0


def test_audits_begin_soon_at_a_random_time_and_then_follow_each_other_evenly() -> None:
    schedule = AuditSchedule(30.0, Jitter(random.Random(7)))  # noqa: S311
    assert not schedule.begin(100.0), "the first answer only plans the first audit"
    first = 100.0 + schedule.wait(100.0)
    assert 100.0 < first <= 100.0 + SPREAD_S
    assert schedule.begin(first)
    second = first + schedule.wait(first)
    assert first + 15.0 <= second <= first + 30.0
    assert schedule.begin(second)
    assert schedule.wait(second) == pytest.approx(30.0)
    assert schedule.begin(second + 70.0), "two were missed"
    assert schedule.wait(second) == pytest.approx(90.0)
    schedule.count(second + 80.0)
    assert schedule.wait(second) == pytest.approx(90.0), "the one that is planned is within the interval anyway"
    schedule.count(second + 90.0)
    assert schedule.wait(second) == pytest.approx(120.0)
    schedule.hasten(second + 91.0)
    assert not schedule.begin(second + 90.9)
    assert schedule.begin(second + 91.0)


def test_readers_that_ask_hdfs_together_do_not_audit_together_ever_after() -> None:
    """All hosts hear of a new leader in the same moment, and verify it in the same moment."""
    schedules = [AuditSchedule(30.0, Jitter(random.Random(seed))) for seed in range(20)]  # noqa: S311
    for schedule in schedules:
        schedule.count(100.0)
    due = [schedule.wait(100.0) for schedule in schedules]
    assert len(set(due)) == len(due)
    assert all(15.0 <= each <= 30.0 for each in due)
    for schedule in schedules:
        schedule.count(110.0)
    assert [schedule.wait(100.0) for schedule in schedules] == due


def test_an_audit_that_is_hastened_before_any_other_is_not_made_at_once() -> None:
    schedule = AuditSchedule(30.0, Jitter(random.Random(7)))  # noqa: S311
    schedule.hasten(102.0)
    assert not schedule.begin(101.9)
    assert schedule.begin(102.0)
