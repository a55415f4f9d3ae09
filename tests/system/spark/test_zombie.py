"""A driver that wakes up inside a batch after it was replaced: two queries with `ha`, and one without."""

from pathlib import Path

import pytest

from benchmarks.spark.zombie import Case, trial
from ha.sandbox import Sandbox

pytestmark = [
    pytest.mark.usefixtures("usual"),
    pytest.mark.spark,
    pytest.mark.hdfs,
    pytest.mark.zookeeper,
    pytest.mark.slow,
]


def test_a_zombies_batch_is_refused_and_without_the_fence_it_is_doubled(sandbox: Sandbox, tmp_path: Path) -> None:
    hdfs_backed, rocksdb = Case("hdfs", "parquet"), Case("rocksdb", "text")
    unfenced = Case("rocksdb", "json", fenced=False, asleep="writing")
    found = {
        each.case: each for each in trial([hdfs_backed, rocksdb, unfenced], sandbox.environment(), tmp_path, print)
    }
    for case in (hdfs_backed, rocksdb):
        assert found[case].late == "publication refused"
        assert found[case].seen == found[case].expected
        assert "was fenced: second has taken over, and the job is at epoch 2, session " in found[case].error
    assert found[unfenced].late == "written"
    assert found[unfenced].seen > found[unfenced].expected, "the canary: without the fence the zombie's rows are there"
