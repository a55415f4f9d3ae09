"""``ha host doctor`` warns of Spark's settings that were measured to be bad, and of no others."""

from pathlib import Path

import pytest

from ha.doctor.finding import Level
from ha.doctor.host import BOUNDED, MOST, PROVIDER, ROCKSDB, check_spark_settings, pages, warnings
from ha.spark.stored import stored_state


def remedies(**given: str) -> list[str]:
    names = {"provider": PROVIDER, "bounded": BOUNDED}
    return [each.remedy for each in warnings({names[name]: value for name, value in given.items()})]


def test_rocksdb_without_a_bound_is_warned_of() -> None:
    (remedy,) = remedies(provider=ROCKSDB)
    assert MOST in remedy
    assert remedies(provider=ROCKSDB, bounded="false")


@pytest.mark.parametrize("value", ["true", "TRUE"])
def test_rocksdb_with_a_bound_is_not(value: str) -> None:
    assert not remedies(provider=ROCKSDB, bounded=value)


def test_another_store_is_not() -> None:
    assert not remedies(provider=ROCKSDB.replace("RocksDB", "HDFSBacked"))
    assert not remedies()


def test_names_are_those_that_a_job_sets() -> None:
    assert (PROVIDER, ROCKSDB) == (stored_state.PROVIDER, stored_state.ROCKSDB)


def test_the_file_that_spark_reads_is_examined(tmp_path: Path) -> None:
    file, environment = tmp_path / "spark-defaults.conf", {"SPARK_CONF_DIR": str(tmp_path)}
    file.write_text(f"{PROVIDER}  {ROCKSDB}\n")
    assert [each.level for each in check_spark_settings(environment)] == [Level.WARNING, Level.WARNING]
    file.write_text(f"{PROVIDER}={ROCKSDB}\n{BOUNDED}=true\n")
    found, _ = check_spark_settings(environment)
    assert found.level is Level.OK
    assert found.found == f"None is bad in {file}."


def test_without_such_a_file_nothing_is_wrong() -> None:
    found, _ = check_spark_settings({"PATH": ""})
    assert found.level is Level.OK


@pytest.mark.parametrize(
    ("given", "environment", "level"),
    [
        ({}, {}, Level.WARNING),
        ({"spark.ui.enabled": "true"}, {"SPARK_LOCAL_IP": "10.0.0.7"}, Level.WARNING),
        ({"spark.ui.enabled": "False"}, {}, Level.OK),
        ({"spark.ui.filters": "a.Filter"}, {}, Level.OK),
        ({}, {"SPARK_LOCAL_IP": "127.0.0.1"}, Level.OK),
    ],
)
def test_pages_open_to_all_are_warned_of(given: dict[str, str], environment: dict[str, str], level: Level) -> None:
    """tests/system/spark/test_strangers.py sees where Spark listens."""
    assert pages(given, environment).level is level
