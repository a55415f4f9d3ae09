"""Whose turn it is to be looked at: the newest at a takeover, then whoever was touched, then one after the other."""

from ha.outputs.ledger import Gap
from ha.outputs.looks import Looks

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
