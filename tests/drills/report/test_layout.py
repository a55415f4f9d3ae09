"""What pictures are made of: spans, the width of texts, and where they go."""

import string
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ha.drill.report.frame import LEFT, RIGHT, Axis
from ha.drill.report.labels import Label, choose, stagger
from ha.drill.report.spans import complement, shared, total, union
from ha.drill.report.text import printable, shorten, width

spans = some.lists(some.tuples(some.integers(0, 50), some.integers(0, 50)).map(sorted).map(tuple), max_size=8)
labels = some.lists(
    some.builds(
        Label.after,
        some.integers(0, 1000).map(float),
        some.text(string.ascii_letters, min_size=1, max_size=30),
        some.just(13.0),
        some.just(1190.0),
    ),
    max_size=12,
)


# --- spans


@given(spans)
def test_union_and_complement_are_all_there_is(found: list[tuple[float, float]]) -> None:
    free = complement(found, (0, 60))
    assert total(found) + total(free) == 60
    assert sorted(union([*found, *free])) == [(0, 60)]


@given(spans, spans, spans)
def test_shared_is_what_two_have(
    one: list[tuple[float, float]], two: list[tuple[float, float]], three: list[tuple[float, float]]
) -> None:
    found = shared({"a": one, "b": two, "c": three})
    for second in range(50):
        owners = sum(
            any(begins <= second and second + 1 <= ends for begins, ends in union(each)) for each in (one, two, three)
        )
        assert any(begins <= second and second + 1 <= ends for begins, ends in found) == (owners > 1)


def test_close_spans_become_one() -> None:
    assert union([(5, 6), (1, 2), (2.5, 3)], gap=0.5) == [(1, 3), (5, 6)]


# --- texts


@given(some.text(max_size=80), some.floats(0, 300))
def test_a_shortened_text_fits_and_keeps_its_ends(text: str, room: float) -> None:
    short = shorten(text, room, 13)
    assert width(short, 13) <= room
    if width(text, 13) > room and short:
        head, _, tail = short.rpartition("…")
        assert text.startswith(head)
        assert text.endswith(tail)


def test_what_cannot_be_shown_is_replaced() -> None:
    assert printable("a\0b\u202ec\ud800\nd é 語") == "a\ufffdb\ufffdc\ufffd d é 語"


# --- labels


@given(labels, some.integers(1, 6))
def test_staggered_labels_do_not_meet_and_no_line_crosses_a_text(found: list[Label], most: int) -> None:
    placed = stagger(found, most)
    for (one, row), (other, other_row) in combinations(placed, 2):
        assert row != other_row or not one.meets(other)
        for upper, lower in (((one, row), (other, other_row)), ((other, other_row), (one, row))):
            crosses = lower[0].left < upper[0].x < lower[0].right
            shifted = lower[0].left < lower[0].x  # at the right edge, where a text lies left of its own place
            assert upper[1] <= lower[1] or not crosses or shifted
    assert all(0 <= row < most for _, row in placed)
    if most >= len(found):
        assert len(placed) == len(found)


@given(labels)
def test_chosen_labels_do_not_meet_and_the_first_is_always_there(found: list[Label]) -> None:
    chosen = choose(found)
    assert not any(one.meets(other) for one, other in combinations(chosen, 2))
    assert chosen[:1] == found[:1]


# --- the axis


@pytest.mark.parametrize("seconds", [0.5, 1, 9.99, 75, 90, 600, 7_000, 1e6])
def test_ticks_are_few_and_round(seconds: float) -> None:
    axis = Axis(1000.0, seconds)
    ticks = list(axis.ticks())
    assert ticks[0] == 0
    assert 4 <= len(ticks) <= 13
    assert ticks[-1] <= seconds * 1.000001
    assert axis.x(1000.0) == LEFT
    assert axis.x(1000.0 + seconds) == pytest.approx(RIGHT)


def test_what_is_outside_is_at_the_nearer_end() -> None:
    axis = Axis(1000.0, 10.0)
    assert (axis.x(990), axis.x(float("inf"))) == (LEFT, RIGHT)
