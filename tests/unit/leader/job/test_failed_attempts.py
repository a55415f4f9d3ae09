"""Failures of a job in a row, on each of the stores."""

from typing import Any

import pytest

from leader.errors import Fenced, Unreadable
from leader.job.checkpoints import Checkpoints
from leader.job.failed_attempts import LONGEST_CAUSE, LONGEST_HOST, LONGEST_PAUSE_S, TRIES, Attempts, FailedAttempts
from leader.job.fenced_directory import ATTEMPTS, FencedDirectory
from leader.layout.names import escape
from store.bounded import BoundedFiles
from store.counting import REQUESTS, CountedFiles
from store.errors import NotWritable, Unknown
from tests.unit.leader.faulty import DROPPED, LATE, LOST, REFUSED, Place
from tests.unit.leader.owned import CALL, FIRST, HOME, Owned


def counts(owned: Owned) -> list[str]:
    return [name for name in owned.names("graph") if name.startswith("attempts=")]


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
    assert attempts.add("exit-4", "host", 1.0).failures == 1
    assert attempts.add("exit-4", "host", 1.0).failures == 2
    Checkpoints(owned.own).completed("orders", 1)
    assert attempts.add("exit-4", "host", 1.0).failures == 1


def test_the_next_leader_does_not_wait_for_failures_before_a_completed_batch(owned: Owned) -> None:
    """The leader that has completed it may have died with its host, and has counted nothing since."""
    for _ in range(9):
        FailedAttempts(owned.own).add("exit-3", "host", 1.0)
    assert FailedAttempts(owned.own).load().pause == 128
    Checkpoints(owned.own).completed("orders", 0)
    assert FailedAttempts(owned.claim()).load() == Attempts()


@pytest.mark.parametrize("damage", ["exit_3~host~0~7", "exit-3~_ff~0~7", "~_zz~0"])
def test_a_count_whose_name_is_damaged_is_no_count(owned: Owned, damage: str) -> None:
    """Its error would end each sidecar of the job at its grant, and `ha job list` for all jobs."""
    FailedAttempts(owned.own).add("exit-3", "host", 1.0)
    owned.direct.make_directory(f"{HOME}/graph/attempts=9~0~~{damage}")
    assert FailedAttempts(owned.own).load().failures == 1
    assert FailedAttempts(owned.own).add("exit-3", "host", 1.0).failures == 2
    assert FailedAttempts(owned.own).shown()[0].failures == 2


def test_of_two_counts_with_one_number_either_counts(owned: Owned) -> None:
    FailedAttempts(owned.own).add("exit-3", "host", 1.0)
    (name,) = counts(owned)
    owned.direct.make_directory(f"{HOME}/graph/{name.replace('attempts=1', 'attempts=4')}")
    assert FailedAttempts(owned.own).add("exit-3", "host", 1.0).failures == 5
    assert len(counts(owned)) == 1


def test_a_failure_whose_outcome_was_unknown_is_counted_once(hurt: Owned, place: Place) -> None:
    for fate, remedy in ((DROPPED, ""), (LATE, ""), (DROPPED, "mend it")):
        before = FailedAttempts(hurt.own).add("exit-3", "host", 1.0).failures
        attempts = FailedAttempts(hurt.own)
        place.faulty.fates.extend([fate] * ATTEMPTS)
        with pytest.raises(Unknown):
            attempts.add("exit-3", "host", 1.0, remedy)
        place.faulty.fates.clear()
        place.faulty.catch_up()
        assert attempts.add("exit-3", "host", 1.0, remedy).failures == before + 1
        assert FailedAttempts(hurt.own).load().failures == before + 1
        assert FailedAttempts(hurt.own).load().remedy == remedy


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
    assert Attempts(failures, remedy="mend it").pause == (300 if failures > 1 else 0), "the next host tries it once"


def test_a_change_of_leader_forgets_none_and_the_former_one_counts_none(owned: Owned) -> None:
    former = FailedAttempts(owned.own)
    former.add("exit-3", "host", 1.0)
    later = FailedAttempts(owned.claim())
    for call in (lambda: former.add("exit-3", "host", 1.0), former.load, former.forget, lambda: former.wait(1.0)):
        with pytest.raises(Fenced):
            call()
    assert later.add("exit-4", "other", 1.0) == Attempts(2, "exit-4", "other")


@pytest.mark.usefixtures("hurt")
def test_a_failure_costs_two_lists_and_a_rename(place: Place) -> None:
    """The next leader waits for it. A file would cost half a second in HDFS."""
    asked: list[str] = []
    counted = CountedFiles(place.direct, REQUESTS["hdfs"], lambda operation, _: asked.append(operation))
    with BoundedFiles(lambda: counted) as files:
        attempts = FailedAttempts(FencedDirectory(files, "orders", FIRST, CALL))
        attempts.add("exit-3", "host", 1.0)
        assert asked.count("write") == 0
        assert len(asked) <= 8, "the first one of a job"
        asked.clear()
        attempts.add("exit-3", "host", 1.0)
        assert sorted(asked) == ["list", "list", "rename"]
        asked.clear()
        attempts.load()
        assert asked == ["list", "list"], "its count, and the newest batches"
        attempts.forget()
        asked.clear()
        attempts.load()
        assert asked == ["list"], "a job that does not fail costs no more at a grant"


def test_a_lost_answer_is_asked_for_again_and_the_failure_counts_once(hurt: Owned, place: Place) -> None:
    attempts = FailedAttempts(hurt.own)
    attempts.add("exit-3", "host", 1.0)
    place.faulty.fates.extend([LOST])
    assert attempts.add("exit-3", "host", 1.0).failures == 2
    assert attempts.load().failures == 2
    assert len(counts(hurt)) == 1


def test_a_failure_without_an_answer_is_unknown_and_a_refused_one_not_counted(hurt: Owned, place: Place) -> None:
    attempts = FailedAttempts(hurt.own)
    attempts.add("exit-3", "host", 1.0)
    place.faulty.fates.extend([DROPPED] * ATTEMPTS)
    with pytest.raises(Unknown):
        attempts.add("exit-3", "host", 1.0)
    place.faulty.fates.extend([REFUSED])
    with pytest.raises(NotWritable):
        attempts.add("exit-3", "host", 1.0)
    assert attempts.load().failures == 1


def test_a_change_that_is_executed_late_takes_no_failure_away(hurt: Owned, place: Place) -> None:
    attempts = FailedAttempts(hurt.own)
    for _ in range(3):
        attempts.add("exit-3", "host", 1.0)
    place.faulty.fates.extend([LATE] * ATTEMPTS)
    with pytest.raises(Unknown):
        attempts.forget()
    place.faulty.before_change = place.faulty.catch_up  # between the look and the change
    assert attempts.add("exit-3", "host", 1.0).failures == 1, "it was forgotten before"
    assert counts(hurt) == [each for each in counts(hurt) if each.startswith("attempts=1~")]


def test_changes_that_keep_coming_in_between_end_as_unknown(hurt: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = FailedAttempts(hurt.own)
    attempts.add("exit-3", "host", 1.0)
    looks = [attempts._find()]

    def look() -> Any:
        looks.append(looks[0])
        return looks[0]

    monkeypatch.setattr(attempts, "_find", look)
    attempts.add("exit-3", "host", 1.0)
    with pytest.raises(Unknown):
        attempts.add("exit-3", "host", 1.0)
    assert len(looks) == 1 + 1 + TRIES


def test_of_several_the_newest_counts_and_what_is_not_ours_does_not(owned: Owned) -> None:
    attempts = FailedAttempts(owned.own)
    for _ in range(9):
        attempts.add("exit-3", "host", 1.0)  # the tenth writing comes after the ninth, though not as text
    assert counts(owned) == ["attempts=9~0~~exit-3~host~0~10"]
    older = "attempts=7~0~~exit-3~host~0~8"
    for name in (older, "attempts=99", "attempts=099~0~~exit-3~host~0~99", "attempts=99~0~x~exit-3~host~0~99"):
        owned.direct.make_directory(f"{HOME}/graph/{name}")
    assert attempts.load().failures == 9
    assert attempts.add("exit-3", "host", 1.0).failures == 10
    assert older not in counts(owned)


def test_long_words_lose_their_end(owned: Owned) -> None:
    for letter in ("x", "ä"):
        added = FailedAttempts(owned.own).add(letter * 300, letter * 300, 1.0)
        found = FailedAttempts(owned.own).load()
        assert found.failures == added.failures
        for text, most in ((found.cause, LONGEST_CAUSE), (found.host, LONGEST_HOST)):
            assert set(text) == {letter}
            assert most - len(escape(letter)) < len(escape(text)) <= most


def test_a_remedy_of_any_length_is_kept_until_the_next_failure(owned: Owned) -> None:
    remedy = "".join(chr(33 + number * number % 90) for number in range(1000))
    attempts = FailedAttempts(owned.own)
    for failures in (1, 2):
        attempts.add("exit-3", "host", 1.0, remedy)
        assert attempts.load() == Attempts(failures, "exit-3", "host", hopeless=failures, remedy=remedy)
        assert len(counts(owned)) == 1
    assert attempts.add("exit-3", "host", 1.0) == attempts.load() == Attempts(3, "exit-3", "host", hopeless=2)
    attempts.add("exit-3", "host", 1.0, "mend it")
    assert attempts.load().remedy == "mend it"


def test_a_damaged_remedy_is_said(owned: Owned) -> None:
    attempts = FailedAttempts(owned.own)
    attempts.add("exit-3", "host", 1.0, "mend it")
    owned.direct.make_directory(f"{HOME}/graph/{counts(owned)[0]}/remedy=2~2~AAAA")
    with pytest.raises(Unreadable, match="somebody has deleted or made some"):
        attempts.load()


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
    attempts.wait(found.pause)
    (entry,) = [each for each in hurt.own.list("graph") if each.name.startswith("waits=")]
    assert attempts.shown() == (found, entry.modified_ms + 2000)
    attempts.wait(1.0)
    assert len(hurt.names("graph")) == 2, "the present one counts"
    attempts.wait(0.0)
    assert attempts.shown() == (found, 0), "it is being tried"
    attempts.wait(1.0)
    attempts.add("exit-3", "host", 1.0)
    assert attempts.shown()[1] == 0, "nobody waits now"
