"""Pictures, read back from their SVG."""

import math
import re

import pytest

from benchmarks.drawing import LEFT, PLOT, RIGHT, bars, dots, scale, shares
from tests.benchmarks.drawn import SVG, elements, parse, texts

# --- axes


@pytest.mark.parametrize(
    ("values", "high", "ticks"),
    [([7.3], 8, [0, 1, 2, 3, 4, 5, 6, 7, 8]), ([100, 55], 100, [0, 20, 40, 60, 80, 100]), ([0.012], 0.012, None)],
)
def test_an_axis_begins_at_zero_and_ends_at_a_round_number(
    values: list[float], high: float, ticks: list[float] | None
) -> None:
    axis = scale(values)
    assert axis.low == 0
    assert axis.high == pytest.approx(high)
    assert axis.x(0) == LEFT
    assert axis.x(axis.high) == RIGHT
    if ticks is not None:
        assert axis.ticks() == pytest.approx(ticks)


def test_a_logarithmic_axis_gives_each_tenfold_the_same_way() -> None:
    axis = scale([0.02, 30], log=True)
    assert axis.ticks() == pytest.approx([0.01, 0.1, 1, 10, 100])
    assert axis.x(0.1) - axis.x(0.01) == pytest.approx(axis.x(100) - axis.x(10))


def test_a_logarithmic_axis_cannot_show_zero() -> None:
    with pytest.raises(ValueError, match="cannot show 0"):
        scale([0, 1], log=True)


@pytest.mark.parametrize("values", [[], [0.0], [math.inf], [5.0], [1e-6], [1e9]])
def test_an_axis_of_hardly_anything_is_one(values: list[float]) -> None:
    axis = scale(values)
    assert axis.high > axis.low
    assert 2 <= len(axis.ticks()) <= 12


# --- pictures


def test_bars_are_as_long_as_their_numbers() -> None:
    svg = bars("A title", "ms", {"one": 50.0, "two": 100.0}, target=80.0)
    one, two = (float(each.attrib["width"]) for each in elements(svg, "rect", "fill0"))
    assert two == pytest.approx(2 * one)
    assert two == pytest.approx(RIGHT - LEFT)
    assert {"A title", "ms", "one", "two", "50", "100", "target 80"} <= set(texts(svg))


def test_every_value_is_a_dot_and_what_never_came_is_said() -> None:
    svg = dots("T", "s", {"here": [1.0, 1.0, 2.0], "peer": [3.0, math.inf]})
    assert len(elements(svg, "path", "dot0")) == 3
    assert len(elements(svg, "path", "dot1")) == 2
    assert "1 never" in texts(svg)


def test_shares_end_at_all_or_below_if_some_never_came() -> None:
    svg = shares("T", "s", {"here": [1.0, 2.0], "peer": [1.0, 2.0, math.inf, math.inf]})
    lowest = []
    for kind in ("line0", "line1"):
        (curve,) = elements(svg, "path", kind)
        lowest.append([float(y) for y in re.findall(r"V([0-9.]+)", curve.attrib["d"])][-1])
    bottom = float(re.findall(r"M\d+ (\d+)H", elements(svg, "path", "line0")[0].attrib["d"])[0])
    assert bottom - lowest[0] == pytest.approx(PLOT)
    assert bottom - lowest[1] == pytest.approx(PLOT / 2)
    assert {"here", "peer", "0 %", "100 %", "s"} <= set(texts(svg))


def test_a_curve_of_many_values_stays_small() -> None:
    assert len(shares("T", "s", {"here": [n / 1e5 for n in range(100_000)]})) < 30_000


@pytest.mark.parametrize(
    "svg", [bars("T", "u", {"a": 1.0}), dots("T", "u", {"a": [1.0]}), shares("T", "u", {"a": [1]})]
)
def test_a_picture_has_colours_for_light_and_for_dark_pages(svg: str) -> None:
    (style,) = parse(svg).iter(f"{SVG}style")
    assert "prefers-color-scheme:dark" in (style.text or "")
    used = {kind for each in parse(svg).iter() for kind in each.attrib.get("class", "").split()}
    defined = set(re.findall(r"\.([a-z]+[0-9]?)\b", style.text or ""))
    assert used - {"timeline"} <= defined | {"curve"}


def test_hostile_names_are_only_texts() -> None:
    assert '<b>&"' in texts(bars("T", "u", {'<b>&"': 1.0}))
