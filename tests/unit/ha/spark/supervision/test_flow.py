"""Regions: connected components of what queries read and write."""

import pytest

from ha.spark.supervision.flow import Flow, regions


def cut(**queries: tuple[str, str]) -> list[tuple[str, ...]]:
    return regions(Flow(name, reads.split(), writes.split()) for name, (reads, writes) in queries.items())


@pytest.mark.parametrize(
    ("queries", "found"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"a": ("x", "p"), "b": ("y", "q")}, [("a",), ("b",)], id="nothing is shared"),
        pytest.param({"a": ("in", "p"), "b": ("in", "q")}, [("a",), ("b",)], id="a source that no query writes"),
        pytest.param(
            {"reader": ("p", "q"), "other": ("x", "y"), "writer": ("x", "p")},
            [("reader", "writer"), ("other",)],
            id="one reads what another writes",
        ),
        pytest.param({"a": ("x", "p"), "b": ("y", "p")}, [("a", "b")], id="two writers of one output"),
        pytest.param({"a": ("s", "1"), "b": ("1", "2"), "c": ("1", "3")}, [("a", "b", "c")], id="a tree out of one"),
    ],
)
def test_queries_are_one_region_if_one_writes_what_another_reads_or_writes(
    queries: dict[str, tuple[str, str]], found: list[tuple[str, ...]]
) -> None:
    assert cut(**queries) == found


@pytest.mark.parametrize("turned", [False, True])
def test_a_tree_of_joins_is_one_region(turned: bool) -> None:
    queries = {
        "a": ("s", "1"), "b": ("s", "2"), "c": ("s", "3"), "d": ("s", "4"),
        "ab": ("1 2", "5"), "cd": ("3 4", "6"), "root": ("5 6", "7"),
    }  # fmt: skip
    if turned:
        queries = dict(reversed(queries.items()))
    assert cut(**queries) == [tuple(queries)]


def test_a_diamond_and_a_ring_are_one_region_each() -> None:
    diamond = {"top": ("s", "1"), "left": ("1", "2"), "right": ("1", "3"), "bottom": ("2 3", "4")}
    ring = {"there": ("y", "x"), "back": ("x", "y")}
    assert cut(**diamond, **ring) == [tuple(diamond), tuple(ring)]


def test_ten_thousand_chains_are_cut() -> None:
    chains = {
        f"{step}-{chain}": (f"{chain}/{step - 1}", f"{chain}/{step}") for chain in range(10_000) for step in (1, 2)
    }
    assert len(cut(**chains)) == 10_000


def test_a_chain_of_ten_thousand_is_one_region_in_either_direction() -> None:
    chain = {f"q{step}": (str(step), str(step + 1)) for step in range(10_000)}
    assert cut(**chain) == [tuple(chain)]
    back = dict(reversed(chain.items()))
    assert cut(**back) == [tuple(back)]
