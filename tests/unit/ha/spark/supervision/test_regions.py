"""Regions: connected components of what queries read and write."""

from dataclasses import dataclass

import pytest

from ha.spark.supervision.regions import regions


@dataclass
class Query:
    reads: list[str]
    writes: list[str]


def cut(**queries: tuple[str, str]) -> list[tuple[str, ...]]:
    """Cut queries, each given as the names that it reads and writes."""
    return regions({name: Query(reads.split(), writes.split()) for name, (reads, writes) in queries.items()})


def test_no_queries_have_no_regions() -> None:
    assert cut() == []


def test_queries_that_share_nothing_are_regions_of_their_own() -> None:
    assert cut(a=("x", "p"), b=("y", "q")) == [("a",), ("b",)]


def test_a_source_that_no_query_writes_connects_nobody() -> None:
    assert cut(a=("kafka:orders", "p"), b=("kafka:orders", "q")) == [("a",), ("b",)]


def test_who_reads_what_another_writes_is_in_its_region() -> None:
    assert cut(reader=("p", "q"), other=("x", "y"), writer=("x", "p")) == [("reader", "writer"), ("other",)]


def test_two_writers_of_one_output_are_one_region() -> None:
    assert cut(a=("x", "p"), b=("y", "p")) == [("a", "b")]


@pytest.mark.parametrize("turned", [False, True])
def test_a_tree_of_joins_is_one_region(turned: bool) -> None:
    queries = {
        "a": ("s", "1"), "b": ("s", "2"), "c": ("s", "3"), "d": ("s", "4"),
        "ab": ("1 2", "5"), "cd": ("3 4", "6"), "root": ("5 6", "7"),
    }  # fmt: skip
    if turned:
        queries = dict(reversed(queries.items()))
    assert cut(**queries) == [tuple(queries)]


def test_a_tree_out_of_one_query_is_one_region() -> None:
    assert cut(root=("s", "1"), left=("1", "2"), right=("1", "3")) == [("root", "left", "right")]


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
