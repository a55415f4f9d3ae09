"""What a runner makes of the answers of a job's tools."""

from collections.abc import Sequence

from ha.drill.environment import DrillError
from ha.drill.ha_provider import HYBRID
from ha.drill.runner import books


def test_an_output_that_lacks_a_batch_fails_a_drill() -> None:
    def lacks(command: Sequence[str]) -> str:
        assert command == [*HYBRID.books, "orders"]
        raise DrillError("python -m ha.cli failed: Output 'words' has a gap: it lacks batch 4.")

    found = books(lacks, [*HYBRID.books, "orders"])
    assert (found.passed, found.detail[-20:]) == (False, "p: it lacks batch 4.")


def test_one_that_is_complete_passes() -> None:
    assert books(lambda _: "words\n11 batches complete\n", ["verify"]).passed
