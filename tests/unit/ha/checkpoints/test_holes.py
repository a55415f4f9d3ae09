"""Holes that are drawn: each is found, and a checkpoint that lives has none."""

from tests.unit.ha.checkpoints.holes import alarms, hole

DRAWN = 45


def test_each_missing_file_is_found() -> None:
    assert [path for path, found in (hole(seed, by_content=False) for seed in range(DRAWN)) if not found] == []


def test_each_changed_bit_is_found() -> None:
    assert [path for path, found in (hole(seed, by_content=True) for seed in range(DRAWN)) if not found] == []


def test_a_checkpoint_that_lives_raises_no_alarm() -> None:
    assert [each for seed in range(DRAWN) for each in alarms(seed)] == []
