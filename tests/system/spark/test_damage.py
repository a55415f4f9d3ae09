"""Damaged files: what real Spark does, and what we say; a slice of docs/damaged-checkpoints.md."""

import re
from itertools import takewhile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ha.spark.session.spark_session import configured
from tests.system.checkpoints.damage import Damages, Source
from tests.system.checkpoints.damage_page import REPAIRED, STRICT, TOLD, UNSEEN
from tests.system.checkpoints.damage_table import SETTINGS, STORES, verdict

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize(
    ("program", "store", "place", "files", "emptied"),
    [
        ("plain", "", "file", r"commits/7|metadata|offsets/7|sources/0/7", TOLD),
        ("sums", "rocksdb with ids", "bare", r"state/0/0/8_.+\.zip|state/0/0/SSTs/.+", REPAIRED),
    ],
)
def test_what_spark_does_is_what_we_say(
    program: str, store: str, place: str, files: str, emptied: str, spark: SparkSession, tmp_path: Path
) -> None:
    with configured(spark, {**SETTINGS, **STORES.get(store, {})}):
        damages = Damages(spark, tmp_path, program, Source(tmp_path), place)
        found = damages.rows(lambda path: bool(re.fullmatch(files, path)))
        rows = list(takewhile(lambda row: not row.begun, found))
    assert rows
    for each in rows:
        assert verdict(each) not in (UNSEEN, STRICT), each
    assert emptied in {verdict(each) for each in rows if each.damage == "emptied"}
