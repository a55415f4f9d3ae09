"""Tables: which versions and places are refused, and that a session is left as it was."""

from typing import Any

import pytest

from ha.spark.outputs.table_format import check_pair, check_place, having, unknown
from leader.errors import InvalidSettings


@pytest.mark.parametrize(
    ("kind", "spark", "version"),
    [
        ("delta", "4.1.4", "4.4.0"),
        ("delta", "3.5.9", "3.3.2"),
        ("iceberg", "4.1.4", "1.12.0"),
        ("iceberg", "3.5.9", "1.12"),
    ],
)
def test_a_pair_that_was_tried_is_taken(kind: str, spark: str, version: str) -> None:
    check_pair(kind, spark, version)


@pytest.mark.parametrize(
    ("kind", "spark", "version", "said"),
    [
        (
            "delta",
            "4.3.0",
            "4.4.0",
            "delta 4.4.0 was never tried with Spark 4.3.0. Known to work: delta 3.3 with Spark",
        ),
        ("delta", "4.1.4", "4.40.0", "never tried"),
        ("iceberg", "4.2.1", "1.12.0", "never tried"),
        ("iceberg", "4.1.4", "1.1.0", "never tried"),
        ("iceberg", "4.1.4", None, "The session has no iceberg: add its jars"),
    ],
)
def test_any_other_pair_is_refused_in_one_sentence(kind: str, spark: str, version: str | None, said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        check_pair(kind, spark, version)


@pytest.mark.parametrize("scheme", ["file", "s3a", "gs"])
def test_a_file_system_whose_rename_may_replace_is_refused(scheme: str) -> None:
    check_place("t", "hdfs")
    with pytest.raises(InvalidSettings, match="two drivers could both win"):
        check_place("t", scheme)


def test_a_session_is_left_without_the_settings_of_a_statement_and_has_those_of_one() -> None:
    class Session:
        def __init__(self) -> None:
            self.kept: dict[str, str] = {"a": "1"}
            self.set, self.get, self.conf = self.kept.__setitem__, self.kept.get, self

        def unset(self, key: str) -> None:
            self.kept.pop(key, None)

    session: Any = Session()
    with having(session, {"b": "2", "c": "3"}):
        assert session.kept == {"a": "1", "b": "2", "c": "3"}
        with pytest.raises(InvalidSettings, match="has c already"), having(session, {"d": "4", "c": "3"}):
            pytest.fail("two statements at once")
    assert session.kept == {"a": "1"}


def test_a_table_that_is_ahead_says_so_and_what_to_do() -> None:
    assert "has batches up to 7 of this output, and the journal does not know batch 3" in f"{unknown('t', 3, 7)}"
