"""A short marathon: real failovers in a row with warm standbys, and the output compared with the whole input."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.spark import marathon
from ha.sandbox import Sandbox

pytestmark = [
    pytest.mark.usefixtures("usual"),
    pytest.mark.spark,
    pytest.mark.hdfs,
    pytest.mark.zookeeper,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

FAILOVERS, SEED = 3, 9
"""The driver, its JVM and its sidecar are killed, one of them each time: what takes longest is in the long run."""


def test_failovers_in_a_row_lose_and_double_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    said: list[str] = []
    found = marathon.run(sandbox, tmp_path, FAILOVERS, SEED, said.append)
    assert Counter(leg.kind for leg in found.legs) == Counter(marathon.KINDS[:FAILOVERS])
    assert len(said) == FAILOVERS
    flaws = marathon.flaws(found.verdict, found.repeated, "words")
    assert flaws == dict.fromkeys(flaws, 0)
    assert found.verdict.batches > FAILOVERS * marathon.AT_WORK
    assert found.ids >= found.verdict.batches, "one for each batch, and more for those that were done again"
    assert found.verdict.words
