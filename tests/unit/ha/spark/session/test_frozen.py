"""Frozen settings: one sentence for each query whose checkpoint overrules the session."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

import ha
from ha.leadership.leadership import Leadership
from ha.spark.session import frozen
from ha.spark.session.frozen import differing, warn_of_frozen
from store.errors import Unknown
from tests.limits import joined
from tests.patience import PATIENCE_S
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.spark.placing import place

pytestmark = pytest.mark.usefixtures("quick")

PARTITIONS = "spark.sql.shuffle.partitions"


def session(**settings: str) -> Any:
    return SimpleNamespace(
        conf=SimpleNamespace(getAll={f"spark.sql.shuffle.{name}": v for name, v in settings.items()})
    )


@pytest.fixture
def leadership() -> Iterator[Leadership]:
    with ha.lead("orders") as leadership:
        place(leadership, until_batch(ROCKSDB_IDS, 5).files)
        yield leadership


def test_what_is_overruled_is_said_with_both_values(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    joined(warn_of_frozen(session(partitions="977"), leadership))
    (said,) = [each.getMessage() for each in caplog.records if "keeps the settings" in each.getMessage()]
    assert said.startswith("orders: query 'daily' keeps the settings of its checkpoint: ")
    assert f"{PARTITIONS}=" in said
    assert "(977 in the session)" in said


def test_what_was_not_set_or_is_the_same_is_not_said(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    joined(warn_of_frozen(session(), leadership))
    joined(warn_of_frozen(session(other="1"), leadership))
    joined(warn_of_frozen(SimpleNamespace(conf=object()), leadership))  # type: ignore[arg-type]  # an older Spark
    Path(urlsplit(leadership.path("spark/daily/offsets/5")).path).write_text("damaged")
    joined(warn_of_frozen(session(partitions="977"), leadership))
    assert "goes on with" not in caplog.text


def test_nothing_waits_for_a_store_that_does_not_answer(
    leadership: Leadership, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def hang(_: Leadership, __: str) -> dict[str, str]:
        assert asked.wait(PATIENCE_S)
        raise Unknown("it does not answer")

    monkeypatch.setattr(frozen, "_frozen", hang)
    with caplog.at_level(logging.INFO, "ha"):
        reading = warn_of_frozen(session(partitions="977"), leadership)
        asked.set()
        joined(reading)
    assert "it is not known what the checkpoint of query 'daily' overrules: it does not answer" in caplog.text


def test_differences() -> None:
    assert differing({"a": "1", "b": "2", "c": "3"}, {"b": "2", "a": "9", "d": "4"}) == ["a=1 (9 in the session)"]
