"""Settings that a driver passes to its executors, and that a task reads. No Spark is needed."""

import os
from pathlib import Path

import pytest

from ha.config.sources import load
from ha.spark import executor_settings
from leader.errors import InvalidName


def test_settings_that_executors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HA_JOB", "orders")
    monkeypatch.setenv("HA_FILES", "hdfs://names/ha")
    monkeypatch.setenv("HA_CONTENDER", "me")
    monkeypatch.setenv("HA_BELIEF", "not theirs")
    assert executor_settings() == {
        "spark.executorEnv.HA_FILES": "hdfs://names/ha",
        "spark.executorEnv.HA_JOB": "orders",
    }


def test_executors_are_told_the_settings_of_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("HA_")]:
        monkeypatch.delenv(name)
    (tmp_path / "ha.toml").write_text(
        'zookeeper = "zk:2181"\ncall_timeout = 4\nshort_ttl = 30\nsession_timeout = 30\nlisten = "127.0.0.1:1"\n'
    )
    monkeypatch.setenv("HA_CONFIG", str(tmp_path / "ha.toml"))
    told = executor_settings("orders", files="hdfs://names/ha", audit=None)
    assert told == {
        "spark.executorEnv.HA_CALL_TIMEOUT": "4.0",
        "spark.executorEnv.HA_FILES": "hdfs://names/ha",
        "spark.executorEnv.HA_JOB": "orders",
        "spark.executorEnv.HA_SESSION_TIMEOUT": "30.0",
        "spark.executorEnv.HA_SHORT_TTL": "30.0",  # with a call_timeout of 4 s the usual one would clash
        "spark.executorEnv.HA_ZOOKEEPER": "zk:2181",
    }
    prefix = "spark.executorEnv."
    environment = {name.removeprefix(prefix): value for name, value in told.items()}
    assert load(environment=environment).leadership.call_timeout == 4.0
    with pytest.raises(InvalidName, match="or/ders"):
        executor_settings("or/ders")
