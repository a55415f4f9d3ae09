"""Ledger: what an output lacks of its query, and whose turn it is to be looked at."""

import pytest

from ha.outputs.ledger import Gap, LedgerQuery, Looks, broken, gaps, lacking, touched
from ha.outputs.lines import MOST_SHIFTS, Lines
from ha.outputs.record import NOBODY_KNOWS

FIRST = "line=0~0~0~0a~words"

STRICT = Lines([FIRST, "every=0~2"])


def query(committed: int, later: int | None = None, known_as: str = "0a") -> LedgerQuery:
    return LedgerQuery("words", known_as, committed, committed if later is None else later)


def why(lines: Lines, done: set[int], asked: LedgerQuery) -> str:
    (found,) = gaps("out", lines, done, asked)
    assert found.output == "out"
    return found.why


def test_each_committed_batch_has_to_be_there_from_the_first_one_on_that_was_given() -> None:
    assert gaps("out", STRICT, {2, 3, 4}, query(4)) == []
    assert gaps("out", STRICT, {2, 3, 4, 5}, query(4)) == [], "published, and not committed yet"
    assert gaps("out", STRICT, set(), query(1)) == [], "these two were before"
    assert why(STRICT, {2, 4}, query(4)) == "it lacks batch 3, committed by query 'words': the rows are not published."
    assert gaps("out", STRICT, {2}, query(4)) == [
        Gap("out", 2, "it lacks 2 batches from 3 to 4, committed by query 'words': the rows are not published.")
    ]
    assert lacking(STRICT, {1003}, 1003, 1000) == [1000, 1001, 1002], "older records may be forgotten"


def test_a_function_may_skip_batches() -> None:
    for names in ([FIRST], [FIRST, "every=1~0"], [FIRST, "every=x~0", "every=0~01"]):
        assert gaps("out", Lines(names), {0}, query(9)) == []


def test_ids_count_and_not_the_numbers_of_spark() -> None:
    lines = Lines([FIRST, "every=0~0", "line=0~3~4~0a~words"])
    assert gaps("out", lines, {0, 1, 2, 7, 8}, query(4)) == []
    assert lacking(lines, {0, 1, 2, 8}, 4) == [3]


def test_an_id_that_is_not_certain_is_not_missed() -> None:
    shifts = [f"line=0~{number}~{2 * number}~0a~words" for number in range(5, 5 + MOST_SHIFTS)]
    lines = Lines([FIRST, "every=0~0", *shifts])
    assert lines.known_from == 5
    assert lacking(lines, set(), 6) == [5, 6]
    assert Lines().known_from == 0


def test_another_query_under_the_same_name_is_told() -> None:
    assert "has batches of query 'words' (0a), and that query is another one now (0b)" in why(
        STRICT, {2}, query(9, known_as="0b")
    )
    assert gaps("out", Lines([FIRST]), {2}, query(9, known_as="0b")) == [], "it may write elsewhere"
    assert gaps("out", STRICT.having("follow=0"), {2}, query(9, known_as="0b")) == [], "somebody has allowed it"


@pytest.mark.parametrize("lines", [STRICT, Lines([FIRST])])
def test_a_checkpoint_that_was_put_back_is_told(lines: Lines) -> None:
    assert "has batches up to 9 of query 'words', whose checkpoint has come to batch 6" in why(
        lines, set(range(10)), query(6)
    )
    assert gaps("out", lines, set(range(10)), query(6, later=8)) == [], "it went on meanwhile"


@pytest.mark.parametrize(
    ("after", "whole", "told"),
    [
        ({0: -1, 1: 0, 4: 1}, {0}, []),
        ({0: -1, 2: 1}, {0}, ["batch 1 is gone from its journal: batch 2 was decided right after 1."]),
        ({1: 0}, {0}, ["batch 0 is gone from its journal: batch 1 was decided right after 0."]),
        ({0: -1, 1: 0, 2: 0}, {0}, ["batch 1 was not decided by its journal: batch 2 was decided right after 0."]),
        ({0: -1, 2: 1}, set(), []),
        ({1000: 999, 1001: 1000}, {1}, []),
        ({1000: 0}, {1}, []),
        ({998: 997, 1000: 999}, {0, 1}, ["batch 997 is gone", "batch 999 is gone"]),
        ({0: -1, 1: NOBODY_KNOWS, 2: 1}, {0}, []),
    ],
)
def test_each_record_names_the_batch_before_it(after: dict[int, int], whole: set[int], told: list[str]) -> None:
    found = [each.why for each in broken("out", after, whole)]
    assert len(found) == len(told)
    assert all(each.startswith(said) for each, said in zip(found, told, strict=True))


def test_a_mark_belongs_to_its_tenure_and_says_since_when() -> None:
    assert STRICT.marks == {"every=0~2": 2}
    assert STRICT.marking(7) == "every=0~7"
    assert STRICT.having("line=1~0~5~0b~other").marks == {}
    assert STRICT.having(without={"every=0~2"}).marks == {}
    assert STRICT.names == [FIRST], "a rewind keeps marks as they are"


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, []),
        ({0: 5, 1: 5, 2: 6}, []),
        ({0: 7, 1: 5, 2: 6}, [0]),
        ({0: 9, 1: 8, 2: 6, 3: 10}, [0, 1]),
        ({0: 5, 1: 9}, []),
    ],
)
def test_a_folder_that_was_changed_after_a_later_ones_was_touched(changed: dict[int, int], found: list[int]) -> None:
    assert touched(changed) == found


IN_ORDER = {batch: 10 * batch for batch in range(4)}
GAP = [Gap("out", 1, "a gap")]


def chosen(looks: Looks, changed: dict[int, int], times: int) -> list[tuple[int, bool]]:
    found = []
    for _ in range(times):
        batch = looks.next(changed)
        assert batch is not None
        looks.saw(batch[0], changed[batch[0]], [])
        found.append(batch)
    return found


def test_the_turn_goes_down_from_the_newest_and_begins_again() -> None:
    looks = Looks()
    assert looks.next({}) is None
    assert [batch for batch, _ in chosen(looks, IN_ORDER, 6)] == [3, 2, 1, 0, 3, 2]
    looks.begin_anew()
    assert chosen(looks, IN_ORDER, 1) == [(3, False)]


def test_what_was_touched_comes_next_and_once() -> None:
    looks = Looks()
    assert chosen(looks, {**IN_ORDER, 1: 25}, 4) == [(3, False), (1, True), (2, False), (1, False)]
    assert chosen(looks, {**IN_ORDER, 1: 26}, 1) == [(1, True)], "it was touched again"


def test_a_gap_is_looked_at_again_every_other_time_until_it_is_mended() -> None:
    looks = Looks()
    looks.begin_anew()
    chosen(looks, IN_ORDER, 1)
    looks.saw(0, 0, GAP)
    assert looks.gaps == GAP
    turns = [looks.next(IN_ORDER) for _ in range(4)]
    assert turns.count((0, True)) == 2
    looks.saw(0, 0, [])
    assert looks.gaps == []


def test_a_batch_that_has_left_the_journal_has_no_gap_of_its_own() -> None:
    looks = Looks()
    looks.saw(0, 0, GAP)
    looks.next({batch: at for batch, at in IN_ORDER.items() if batch})
    assert looks.gaps == []
