"""Failures of a job in a row, on each of the stores."""

import pytest

from leader.errors import Unreadable
from leader.job.checkpoints import Checkpoints
from leader.job.failed_attempts import LONGEST_PAUSE_S, Attempts, FailedAttempts
from leader.job.versioned_files import VersionedFiles
from tests.unit.leader.owned import Owned


def test_failures_are_counted_and_another_process_sees_them(owned: Owned) -> None:
    assert FailedAttempts(owned.own).load() == Attempts()
    for number in (1, 2, 3):
        assert FailedAttempts(owned.own).add("exit-3", "host", 1.0).failures == number
    assert FailedAttempts(owned.own).load() == Attempts(3, "exit-3", "host")


def test_a_completed_batch_begins_the_count_anew(owned: Owned) -> None:
    attempts = FailedAttempts(owned.own)
    for _ in range(3):
        attempts.add("exit-3", "host", 1.0)
    Checkpoints(owned.own).completed("orders", 0)
    assert attempts.add("exit-4", "host", 1.0) == Attempts(1, "exit-4", "host", {"orders": 0})
    assert attempts.add("exit-4", "host", 1.0).failures == 2
    Checkpoints(owned.own).completed("orders", 1)
    assert attempts.add("exit-4", "host", 1.0).failures == 1


def test_a_long_run_begins_it_anew(owned: Owned) -> None:
    attempts = FailedAttempts(owned.own)
    attempts.add("exit-3", "host", LONGEST_PAUSE_S - 0.001)
    assert attempts.load().failures == 1
    assert attempts.add("exit-3", "host", LONGEST_PAUSE_S) == Attempts()
    assert attempts.load() == Attempts()


def test_what_is_forgotten_is_counted_anew(owned: Owned) -> None:
    attempts = FailedAttempts(owned.own)
    attempts.add("exit-3", "host", 1.0)
    attempts.forget()
    attempts.forget()
    assert attempts.load() == Attempts()
    assert attempts.add("exit-3", "host", 1.0).failures == 1


@pytest.mark.parametrize(
    ("failures", "pause"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (10, 256), (11, 300), (10_000, 300)]
)
def test_the_pause_grows_to_five_minutes(failures: int, pause: float) -> None:
    assert Attempts(failures).pause == pause


def test_what_another_version_wrote_is_said(owned: Owned) -> None:
    VersionedFiles(owned.own, "graph", "a file").put("attempts", b"[]")
    with pytest.raises(Unreadable, match="another version of this package"):
        FailedAttempts(owned.own).load()


def test_what_no_restart_mends_uses_up_no_attempt_but_makes_the_pause_grow(hurt: Owned) -> None:
    attempts = FailedAttempts(hurt.own)
    for remedy in ("", "mend it", "mend it", ""):
        last = attempts.add("exit-3", "host", 1.0, remedy)
    assert (last.failures, last.used, last.remedy, last.pause) == (4, 2, "", 4.0)
    Checkpoints(hurt.own).completed("orders", 0)
    assert attempts.add("exit-3", "host", 1.0, "mend it").used == 0


def test_the_time_of_the_next_try_is_known_once_a_leader_waits(hurt: Owned) -> None:
    attempts = FailedAttempts(hurt.own)
    assert attempts.shown() == (Attempts(), 0)
    for _ in range(3):
        attempts.add("exit-3", "host", 1.0)
    found, at_ms = attempts.shown()
    assert at_ms == 0
    attempts.wait(found, found.pause)
    after, at_ms = attempts.shown()
    assert (after.failures, after.waits) == (3, found.pause)
    (entry,) = [each for each in hurt.own.list("graph") if each.name.startswith("attempts=")]
    assert at_ms == entry.modified_ms + 2000
    attempts.wait(found, 0.0)
    assert attempts.shown() == (found, 0), "it is being tried"
    attempts.wait(found, 1.0)
    attempts.add("exit-3", "host", 1.0)
    assert attempts.shown()[1] == 0, "nobody waits now"
