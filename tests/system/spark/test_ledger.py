"""The ledger finds every gap that is made, and cries wolf over none: on the simulation of a plain reader."""

from typing import Any

import pytest

from store.errors import NotFound
from tests.system.spark.books import GAPS, Books, is_for_leader
from tests.system.spark.plain_reader import Run

SEEDS = 120


pytestmark = pytest.mark.usefixtures("no_pauses")


def test_each_gap_is_found_and_nothing_else_is_told() -> None:
    made = 0
    for seed in range(SEEDS):
        books = Books(seed)
        assert not books.run.reader.wrong, seed
        assert books.told() == books.told_by_leader() == [], seed
        gap = GAPS[seed % len(GAPS)]
        gap(books)
        assert books.told(), (seed, gap.__name__)
        assert bool(books.told_by_leader()) == is_for_leader(gap, books), (seed, gap.__name__)
        made += 1
    assert made == SEEDS


def test_a_batch_that_is_dropped_in_silence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the outputs once did: a number that was there before was a repetition, whatever it was of."""
    from ha.spark import Output  # noqa: PLC0415  # beside its fakes

    write = Output.write

    def dropping(output: Output, frame: Any, number: int) -> bool:
        return number == 3 or write(output, frame, number)

    monkeypatch.setattr(Output, "write", dropping)
    run = Run(1, rate=0.0).go()
    assert any("it lacks batch 3, committed" in each for each in run.reader.wrong)


def test_a_store_without_the_folder_lists_nothing() -> None:
    with pytest.raises(NotFound):
        Books(0).tree.list("nowhere")
