"""Tests of the charts' content."""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks.drawing import COLOURS, curves, dots, shares, svg
from tests.unit.benchmarks.drawn import texts

pytestmark = pytest.mark.slow  # each computes for a tenth of a second and more


@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    kept: list[Figure] = []

    def keep(drawn: Figure, title: str) -> str:
        kept.append(drawn)
        return svg(drawn, title)

    monkeypatch.setattr("benchmarks.drawing.svg", keep)

    def axes(draw: Callable[..., str], *given: Any, **named: Any) -> Any:
        draw(*given, **named)
        return kept[-1].axes[0]

    return axes


@pytest.mark.parametrize("draw", [dots, shares])
def test_a_logarithmic_axis_cannot_show_zero(draw: Callable[..., str]) -> None:
    with pytest.raises(ValueError, match="cannot show 0"):
        draw("T", "ms", {"a": [0.0, 1.0]}, log=True)


@pytest.mark.parametrize(
    ("values", "log", "limits"),
    [
        ([7.3, 2.0], False, (0, 7.3 * 1.05)), ([0.02, 30], True, (0.01, 100)), ([], False, (0, 1.05)),
        ([0.0], False, (0, 1.05)), ([math.inf], False, (0, 1.05)),
    ],
)  # fmt: skip
def test_an_axis_shows_all(
    values: list[float], log: bool, limits: tuple[float, float], figure: Callable[..., Any]
) -> None:
    ax = figure(dots, "T", "s", {"a": values}, log=log)
    assert ax.get_xlim() == pytest.approx(limits)
    assert 2 <= len(ax.get_xticks()) <= 12


def test_every_value_is_a_dot_and_what_never_came_is_said(figure: Callable[..., Any]) -> None:
    series = {"here": [1.0, 1.0, 2.0], "baseline": [3.0, math.inf]}
    drawn = {each.get_gid(): each.get_xydata() for each in figure(dots, "T", "s", series).lines}
    assert [x for x, _ in drawn["dots here"]] == [1, 1, 2]
    assert len({tuple(each) for each in drawn["dots here"]}) == 3, "equal values are not one dot"
    assert [x for x, _ in drawn["dots baseline"]] == [3]
    assert "1 never" in texts(dots("T", "s", series))


def test_shares_are_where_their_values_are_and_end_below_all_if_some_never_came(figure: Callable[..., Any]) -> None:
    series = {"here": [1.0, 2.0], "baseline": [1.0, 2.0, math.inf, math.inf]}
    found = [
        dict(zip(each.get_xdata(), each.get_ydata(), strict=True)) for each in figure(shares, "T", "s", series).lines
    ]
    assert [(each[1.0], each[2.0], max(each.values())) for each in found] == [(50, 100, 100), (25, 50, 50)]
    assert {"here", "baseline", "0", "100", "s"} <= set(texts(shares("T", "s", series)))
    many = {str(number): [1.0, 2.0] for number in range(len(COLOURS) + 1)}
    assert set(many) <= set(texts(curves("T", "1/s", many, 0))), "colours are used again"


def test_a_curve_of_many_values_stays_small() -> None:
    assert len(shares("T", "s", {"here": [n / 1e5 for n in range(100_000)]})) < 30_000


def test_curves_are_as_high_as_their_values_and_as_wide_as_seconds(figure: Callable[..., Any]) -> None:
    one, two = figure(curves, "a picture", "requests", {"one": [0.0, 100.0], "two": [50.0, 50.0]}, 1).patches
    assert [list(np.asarray(each.get_data().values)) for each in (one, two)] == [[0, 100], [50, 50]]
    assert list(np.asarray(one.get_data().edges)) == [-1, 0, 1]
    (wide,) = figure(curves, "a picture", "ms", {"one": [3.0, 4.0]}, 0, axis="batches", width=100).patches
    assert list(np.asarray(wide.get_data().edges)) == [0, 100, 200]


@pytest.mark.parametrize(("draw", "values"), [(dots, [1.0]), (shares, [1])])
def test_a_picture_has_a_page_of_its_own_and_can_be_read_on_any(draw: Callable[..., str], values: Any) -> None:
    picture = draw("T", "u", {"a": values})
    assert ET.fromstring(picture).tag.endswith("}svg")  # noqa: S314  # our own
    assert re.search(r"fill: #ffffff", picture)


def test_hostile_names_are_only_texts() -> None:
    assert '<b>&"$x_1$' in texts(dots("T", "u", {'<b>&"$x_1$': [1.0]}))
