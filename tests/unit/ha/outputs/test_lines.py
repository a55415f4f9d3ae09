"""Lines: whose batches an output takes, and which ids they get."""

import pytest

from ha.outputs.lines import MOST_SHIFTS, NO_QUERY, Line, Lines
from leader.errors import ForeignBatch

WORDS, CLICKS = Line("0a", "words"), Line("0b", "words.v2")

FIRST = "line=0~0~0~0a~words"


def test_the_first_query_owns_an_output() -> None:
    assert Lines().current is None
    assert Lines().admitting(WORDS, 5, -1) == FIRST
    lines = Lines(["ready", FIRST, "line=x", "line=0~00~0~0a~words", "line=0~1~1~0a~_zz"])
    assert (lines.current, lines.tenure, lines.names) == (WORDS, 0, [FIRST])
    assert lines.admitting(WORDS, 6, 5) is None
    assert lines.admitting(Line("0a", "renamed"), 6, 5) is None
    assert [lines.id_of(each) for each in (0, 5)] == [0, 5]


@pytest.mark.parametrize("line", [CLICKS, Line(NO_QUERY, "")])
def test_another_one_is_refused(line: Line) -> None:
    """Also one of the same name, with a lower number or a higher one, and if no batch was decided yet."""
    for number, newest in ((0, 10), (11, 10), (0, -1)):
        with pytest.raises(ForeignBatch, match=r"(has batches up to 10 of|belongs to) query 'words' \(0a\), and batch"):
            Lines([FIRST]).admitting(line, number, newest)


def test_batches_without_a_known_line_are_nobodys() -> None:
    with pytest.raises(ForeignBatch, match="of a query that is not known"):
        Lines().admitting(WORDS, 5, 4)


def test_another_one_goes_on_after_all_that_was_decided_once_it_may() -> None:
    allowed = Lines([FIRST, "line=0~7~3~0a~words", "follow=0"])
    assert allowed.admitting(CLICKS, 0, 10) == "line=1~0~11~0b~words.v2"
    assert allowed.admitting(CLICKS, 2, 8) == "line=1~2~9~0b~words.v2", "above what was promised to the first one"
    second = Lines([*allowed.names, "line=1~0~11~0b~words.v2", "follow=0"])
    assert (second.current, second.id_of(0), second.id_of(4)) == (CLICKS, 11, 15)
    with pytest.raises(ForeignBatch):
        second.admitting(WORDS, 8, 15)
    assert [second.number_of(each) for each in (10, 11, 13)] == [-1, 0, 2]
    assert Lines().number_of(0) == -1


def test_a_batch_in_parts_has_several_ids() -> None:
    lines = Lines([FIRST, "line=0~3~1~0a~words", "line=0~4~3~0a~words"])  # two parts of batch 2, three of batch 3
    assert [lines.number_of(each) for each in range(9)] == [0, 1, 2, 2, 3, 3, 3, 4, 5]
    assert [lines.id_of(each) for each in range(6)] == [0, 1, 2, 4, 7, 8]


def test_the_same_query_can_begin_again() -> None:
    lines = Lines([FIRST, "follow=0"])
    assert lines.following(WORDS, 4, 9) == "line=1~4~6~0a~words"
    again = Lines([FIRST, "line=1~4~6~0a~words"])
    assert [again.id_of(each) for each in (4, 5)] == [10, 11]


@pytest.mark.parametrize(("number", "shift"), [(0, 0), (3, 0), (4, 3), (5, 3), (6, 5), (99, 5)])
def test_the_newest_shift_counts(number: int, shift: int) -> None:
    lines = Lines([FIRST, "line=0~4~3~0a~words", "line=0~6~5~0a~words", "shift=7~9"])
    assert (lines.shift(number), lines.id_of(number)) == (shift, number + shift)


def test_a_shift_is_made_only_where_the_number_changes() -> None:
    four, five, ten = (f"line=0~{since}~{by}~0a~words" for since, by in ((4, 2), (5, 7), (10, 5)))
    assert Lines().rewound(3, 2) == []
    assert Lines([FIRST]).rewound(3, 0) == [FIRST]
    assert Lines([FIRST]).rewound(3, 2) == [FIRST, four]
    assert Lines([FIRST]).rewound(6, -1) == [FIRST, "line=0~7~-1~0a~words"]
    assert Lines([FIRST, four, five]).rewound(4, 2) == [FIRST, four]
    assert Lines([FIRST, four]).rewound(3, 0) == [FIRST]
    assert Lines([FIRST, four]).rewound(9, 5) == [FIRST, four, ten]


def test_a_rewind_leaves_what_other_queries_had() -> None:
    second = "line=1~2~9~0b~clicks"
    lines = Lines([FIRST, "line=0~4~2~0a~words", second, "line=1~5~11~0b~clicks"])
    assert lines.rewound(3, 9) == [FIRST, "line=0~4~2~0a~words", second]
    assert lines.rewound(0, 9) == [FIRST, "line=0~4~2~0a~words", second], "to before its first batch here"


def test_few_shifts_are_kept() -> None:
    names = [FIRST, *(f"line=0~{each}~{each}~0a~words" for each in range(1, MOST_SHIFTS + 3))]
    lines = Lines(names)
    assert lines.surplus() == ["line=0~1~1~0a~words", "line=0~2~2~0a~words"]
    assert lines.lifting(9000, 12000) == "line=0~9000~3000~0a~words"
