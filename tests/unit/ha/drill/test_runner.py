"""What a runner makes of the answers of a job's tools."""

from collections.abc import Sequence

import pytest

from ha.drill.environment import DrillError, ProgramFailed
from ha.drill.ha_provider import HYBRID
from ha.drill.runner import books

COMMAND = [*HYBRID.books, "orders"]


def test_an_output_that_lacks_a_batch_fails_a_drill() -> None:
    def lacks(command: Sequence[str]) -> str:
        assert command == COMMAND
        raise ProgramFailed(command, 1, "words  gap: it lacks batch 4.\n", "words: 1 gap, 10 complete")

    found = books(lacks, COMMAND)
    assert (found.passed, found.detail) == (False, "words  gap: it lacks batch 4.")


@pytest.mark.parametrize(
    "error",
    [DrillError("python -m ha.cli took longer than 150 s."), ProgramFailed(COMMAND, 1, "", "HDFS does not answer.")],
    ids=["time-out", "error"],
)
def test_no_answer_is_told_as_no_answer(error: DrillError) -> None:
    def fails(_: Sequence[str]) -> str:
        raise error

    with pytest.raises(DrillError, match=str(error)):
        books(fails, COMMAND)


def test_one_that_is_complete_passes() -> None:
    assert books(lambda _: "words\n11 batches complete\n", ["verify"]).passed
