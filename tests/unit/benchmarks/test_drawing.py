"""Tests of the charts' content."""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from benchmarks.drawing import bars, curves, dots, shares
from ha.drill.report.drawing import COLOURS, svg
from tests.unit.benchmarks.drawn import texts

pytestmark = pytest.mark.slow  # each computes for a tenth of a second and more


@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Calls a function that draws, and returns its axes."""
    kept: list[Figure] = []

    def keep(drawn: Figure, title: str) -> str:
        kept.append(drawn)
        return svg(drawn, title)

    monkeypatch.setattr("benchmarks.drawing.svg", keep)

    def axes(draw: Callable[..., str], *given: Any, **named: Any) -> Any:
        draw(*given, **named)
        return kept[-1].axes[0]

    return axes


# --- axes


def test_an_axis_begins_at_zero_and_shows_all(figure: Callable[..., Any]) -> None:
    low, high = figure(bars, "T", "ms", {"a": 7.3, "b": 2.0}).get_xlim()
    assert low == 0
    assert 7.3 < high < 8


def test_a_logarithmic_axis_ends_at_powers_of_ten(figure: Callable[..., Any]) -> None:
    assert figure(dots, "T", "ms", {"a": [0.02, 30]}, log=True).get_xlim() == pytest.approx((0.01, 100))


@pytest.mark.parametrize("draw", [bars, dots, shares])
def test_a_logarithmic_axis_cannot_show_zero(draw: Callable[..., str]) -> None:
    values: Any = {"a": 0.0, "b": 1.0} if draw is bars else {"a": [0.0, 1.0]}
    with pytest.raises(ValueError, match="cannot show 0"):
        draw("T", "ms", values, log=True)


@pytest.mark.parametrize("values", [[], [0.0], [math.inf], [5.0], [1e-6], [1e9]])
def test_an_axis_of_hardly_anything_is_one(values: list[float], figure: Callable[..., Any]) -> None:
    ax = figure(dots, "T", "s", {"a": values})
    assert ax.get_xlim()[1] > 0
    assert 2 <= len(ax.get_xticks()) <= 12


# --- charts


def test_bars_are_as_long_as_their_numbers(figure: Callable[..., Any]) -> None:
    ax = figure(bars, "A title", "ms", {"one": 50.0, "two": 100.0}, target=80.0)
    (drawn,) = [each for each in ax.containers if isinstance(each, BarContainer)]
    assert [bar.get_width() for bar in drawn] == [50, 100]
    (line,) = [each for each in ax.lines if each.get_gid() == "target"]
    assert list(line.get_xdata()) == [80, 80]
    said = set(texts(bars("A title", "ms", {"one": 50.0, "two": 100.0}, target=80.0)))
    assert {"A title", "ms", "one", "two", "50", "100", "target 80"} <= said


def test_every_value_is_a_dot_and_what_never_came_is_said(figure: Callable[..., Any]) -> None:
    series = {"here": [1.0, 1.0, 2.0], "baseline": [3.0, math.inf]}
    drawn = {each.get_gid(): each.get_xydata() for each in figure(dots, "T", "s", series).lines}
    assert [x for x, _ in drawn["dots here"]] == [1, 1, 2]
    assert len({tuple(each) for each in drawn["dots here"]}) == 3, "equal values are not one dot"
    assert [x for x, _ in drawn["dots baseline"]] == [3]
    assert "1 never" in texts(dots("T", "s", series))


def test_the_median_is_a_stroke(figure: Callable[..., Any]) -> None:
    strokes = figure(dots, "T", "s", {"a": [1.0, 5.0, 2.0]}).collections
    assert [float(each.get_segments()[0][0][0]) for each in strokes] == [2]


def test_shares_end_at_all_or_below_if_some_never_came(figure: Callable[..., Any]) -> None:
    series = {"here": [1.0, 2.0], "baseline": [1.0, 2.0, math.inf, math.inf]}
    assert [each.get_ydata()[-1] for each in figure(shares, "T", "s", series).lines] == [100, 50]
    assert {"here", "baseline", "0", "100", "s"} <= set(texts(shares("T", "s", series)))


def test_a_share_is_where_its_value_is(figure: Callable[..., Any]) -> None:
    (line,) = figure(shares, "T", "s", {"a": [1.0, 2.0, 3.0, 4.0]}).lines
    found = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert [found[x] for x in (1.0, 2.0, 3.0, 4.0)] == [25, 50, 75, 100]


def test_each_of_many_series_has_its_line(figure: Callable[..., Any]) -> None:
    series = {str(number): [1.0, 2.0] for number in range(len(COLOURS) + 1)}
    assert len(figure(shares, "T", "s", series).lines) == len(series)
    assert set(series) <= set(texts(curves("T", "1/s", series, 0)))


def test_a_picture_of_nothing_is_a_picture() -> None:
    assert "T" in texts(shares("T", "s", {}))
    assert "T" in texts(curves("T", "1/s", {}, 0))


def test_a_curve_of_many_values_stays_small() -> None:
    assert len(shares("T", "s", {"here": [n / 1e5 for n in range(100_000)]})) < 30_000


def test_curves_are_as_high_as_their_values_and_as_wide_as_seconds(figure: Callable[..., Any]) -> None:
    one, two = figure(curves, "a picture", "requests", {"one": [0.0, 100.0], "two": [50.0, 50.0]}, 1).patches
    assert [list(np.asarray(each.get_data().values)) for each in (one, two)] == [[0, 100], [50, 50]]
    assert list(np.asarray(one.get_data().edges)) == [-1, 0, 1]
    (wide,) = figure(curves, "a picture", "ms", {"one": [3.0, 4.0]}, 0, axis="batches", width=100).patches
    assert list(np.asarray(wide.get_data().edges)) == [0, 100, 200]


@pytest.mark.parametrize(("draw", "values"), [(bars, 1.0), (dots, [1.0]), (shares, [1])])
def test_a_picture_has_a_page_of_its_own_and_can_be_read_on_any(draw: Callable[..., str], values: Any) -> None:
    picture = draw("T", "u", {"a": values})
    assert ET.fromstring(picture).tag.endswith("}svg")  # noqa: S314  # our own
    assert re.search(r"fill: #ffffff", picture)


def test_hostile_names_are_only_texts() -> None:
    assert '<b>&"$x_1$' in texts(bars("T", "u", {'<b>&"$x_1$': 1.0}))
