"""Grants of the past: no epoch is missing, and each says how it ended."""

from leader.job.grants import MOST_MISSING, PastGrant, began_after_ms, read
from leader.layout.names import LeaderDirectory
from store.files import Entry
from tests.unit.leader.samples import A, B, C


def line(epoch: int, session_id: str, word: str, contender: str = "a", at_ms: int = 0) -> Entry:
    return Entry(f"{LeaderDirectory(epoch, session_id).name}~{word}~{contender}", True, 0, at_ms)


def ends(*entries: Entry) -> list[tuple[int, str, str, str, str]]:
    return [(each.epoch, each.contender, each.reason, each.ended, each.by) for each in read(entries)]


def test_each_grant_says_why_it_got_the_lease_and_how_it_ended() -> None:
    assert ends(
        line(2, B, "released", "b", 9),
        line(1, A, "end.exit-3", "a", 5),
        line(1, A, "released", "a", 1),
        line(2, B, "end.resigned", "b", 12),
        line(2, B, "by.root-on-host-1", "b", 11),
        line(3, C, "released", "c", 13),
    ) == [
        (1, "a", "released", "exit-3", ""),
        (2, "b", "released", "resigned", "root-on-host-1"),
        (3, "c", "released", "", ""),
    ]


def test_an_end_that_nobody_wrote_down_is_what_the_successor_saw() -> None:
    assert ends(line(1, A, "released"), line(2, B, "process-gone"), line(3, C, "released")) == [
        (1, "a", "released", "process-gone", ""),
        (2, "a", "process-gone", "unrecorded", ""),
        (3, "a", "released", "", ""),
    ]


def test_a_leadership_that_was_taken_up_is_the_grant_that_it_was() -> None:
    grant, taken_up = line(1, A, "expired", "a", 5), line(1, A, "adopted", "a.2", 9)
    assert ends(grant, taken_up) == ends(taken_up, grant) == [(1, "a", "expired", "", "")]
    assert ends(taken_up, line(1, A, "end.exit-3", "a.2", 12)) == [(1, "a.2", "adopted", "exit-3", "")]
    twice = line(1, A, "adopted", "a.3", 11)
    assert [each.adopted_by for each in read([twice, taken_up, grant, line(2, B, "released")])] == ["a.3", ""]


def test_no_epoch_is_missing() -> None:
    assert ends(line(2, A, "end.adopted", "adopter"), line(4, B, "expired", "b")) == [
        (1, "", "unrecorded", "unrecorded", ""),
        (2, "adopter", "unrecorded", "adopted", ""),
        (3, "", "unrecorded", "expired", ""),
        (4, "b", "expired", "", ""),
    ]


def test_a_gap_that_no_leaders_made_is_not_filled() -> None:
    assert len(read([line(1, A, "released"), line(MOST_MISSING + 1, B, "released")])) == MOST_MISSING + 1
    assert len(read([line(1, A, "released"), line(MOST_MISSING + 2, B, "released")])) == 2


def test_the_time_is_the_first_lines() -> None:
    (grant,) = read([line(1, A, "end.stopped", at_ms=7), line(1, A, "released", at_ms=3)])
    assert grant.at_ms == 3


def test_names_of_others_are_left_out() -> None:
    for name in ("_tmp", "0000000001-x~released~a", line(1, A, "end.").name, line(1, A, "x.y").name):
        assert PastGrant.parse(name, 0) is None
        assert read([Entry(name, True, 0, 0)]) == []


def test_only_lines_of_earlier_leaders_say_that_one_had_not_begun() -> None:
    lines = [
        line(6, A, "released", at_ms=100),
        line(6, A, "end.stopped", at_ms=170),
        line(7, B, "released", at_ms=250),
        line(5, C, "released", at_ms=30),
        Entry("other", is_directory=True, size=0, modified_ms=999),
    ]
    assert began_after_ms(lines, 7) == 170
    assert began_after_ms(lines, 8) == 250
    assert began_after_ms(lines, 5) == 0
