"""Frozen settings: a query gets those that fit its checkpoint, and one sentence says what that overrules."""

import json
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
from ha.spark.session.frozen import (
    EVOLUTION,
    check_supported,
    differing,
    fits,
    for_query,
    have_names,
    named_source,
    warn_of_frozen,
)
from ha.spark.stored.stored_state import PROVIDER, ROCKSDB
from leader.errors import InvalidSettings
from store.errors import Unknown
from tests.limits import joined
from tests.patience import PATIENCE_S
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.spark.placing import place

pytestmark = pytest.mark.usefixtures("quick")

PARTITIONS = "spark.sql.shuffle.partitions"


def session(**settings: str) -> Any:
    return SimpleNamespace(
        conf=SimpleNamespace(getAll={f"spark.sql.shuffle.{name}": v for name, v in settings.items()})
    )


@pytest.fixture
def stateful() -> Iterator[Leadership]:
    with ha.lead("orders") as leadership:
        place(leadership, until_batch(ROCKSDB_IDS, 5).files)
        yield leadership


def test_what_is_overruled_is_said_with_both_values(stateful: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    joined(warn_of_frozen(session(partitions="977"), stateful))
    (said,) = [each.getMessage() for each in caplog.records if "keeps the settings" in each.getMessage()]
    assert said.startswith("orders: query 'daily' keeps the settings of its checkpoint: ")
    assert f"{PARTITIONS}=" in said
    assert "(977 in the session)" in said


def test_what_was_not_set_or_is_the_same_is_not_said(stateful: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    joined(warn_of_frozen(session(), stateful))
    joined(warn_of_frozen(session(other="1"), stateful))
    joined(warn_of_frozen(SimpleNamespace(conf=object()), stateful))  # type: ignore[arg-type]  # an older Spark
    Path(urlsplit(stateful.path("spark/daily/offsets/5")).path).write_text("damaged")
    joined(warn_of_frozen(session(partitions="977"), stateful))
    assert "keeps the settings" not in caplog.text


def test_nothing_waits_for_a_store_that_does_not_answer(
    stateful: Leadership, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def hang(_: Leadership, __: str) -> dict[str, str]:
        assert asked.wait(PATIENCE_S)
        raise Unknown("it does not answer")

    monkeypatch.setattr(frozen, "_frozen", hang)
    with caplog.at_level(logging.INFO, "ha"):
        reading = warn_of_frozen(session(partitions="977"), stateful)
        asked.set()
        joined(reading)
    assert "it is not known what the checkpoint of query 'daily' overrules: it does not answer" in caplog.text


def test_differences() -> None:
    assert differing({"a": "1", "b": "2", "c": "3"}, {"b": "2", "a": "9", "d": "4"}) == ["a=1 (9 in the session)"]


def test_they_fit_a_query_that_is_new_or_has_no_state_and_none_that_cannot_be_read(leadership: Leadership) -> None:
    assert fits(leadership, "daily")
    place(leadership, {"metadata": b"{}"})
    assert fits(leadership, "daily")
    files = until_batch(ROCKSDB_IDS, 1).files
    folder = place(leadership, {path: data for path, data in files.items() if not path.startswith("state/")})
    assert fits(leadership, "daily")
    place(leadership, {path: data for path, data in files.items() if path.startswith("state/")})
    (folder / "commits/1").write_bytes(b"")
    assert not fits(leadership, "daily")


@pytest.mark.parametrize("kind", FORMATS)
def test_of_those_with_state_they_fit_what_was_begun_with_them(kind: str, leadership: Leadership) -> None:
    place(leadership, until_batch(kind, 1).files)
    assert fits(leadership, "daily") is (kind == ROCKSDB_IDS)


@pytest.mark.parametrize("provider", [ROCKSDB, "HDFSBackedStateStoreProvider"])
def test_before_the_first_commit_the_offsets_tell(provider: str, leadership: Leadership) -> None:
    head = json.dumps({"batchWatermarkMs": 0, "conf": {PROVIDER: provider}})
    place(leadership, {"offsets/0": f"v1\n{head}\n-".encode(), "state/0/_metadata/metadata": b"v1\n{}"})
    assert fits(leadership, "daily") is (provider == ROCKSDB)


class Session:
    version = "4.2.1"

    def __init__(self, **readers: Any) -> None:
        self.settings: dict[str, str] = {}
        self.conf = SimpleNamespace(get=self.settings.get, set=self.settings.__setitem__, unset=self.settings.pop)
        self.readStream = SimpleNamespace(**readers)


def reading(*, old: bool = False) -> Any:
    return Session() if old else Session(name=lambda name: f"named {name}")


def begun(leadership: Leadership, line: str, version: str) -> None:
    place = Path(urlsplit(leadership.path("spark/daily/offsets/7")).path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{version}\n{json.dumps({'conf': {}})}\n{line}")


def test_a_checkpoint_is_as_it_was_begun(leadership: Leadership) -> None:
    assert have_names(leadership, "daily") is None
    begun(leadership, '{"logOffset":1}', "v1")
    assert have_names(leadership, "daily") is False
    begun(leadership, 'lines:{"logOffset":1}', "v2")
    assert have_names(leadership, "daily") is True
    begun(leadership, '0:{"logOffset":1}', "v2")
    assert have_names(leadership, "daily") is False
    Path(urlsplit(leadership.path("spark/daily/offsets/7")).path).write_text("damaged")
    assert have_names(leadership, "daily") is False


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize(("version", "line"), [("v1", "{}"), ("v2", "lines:{}"), ("", "")])
def test_the_setting_is_made_as_the_checkpoint_has_it_and_as_is_wanted_for_a_new_one(
    leadership: Leadership, caplog: pytest.LogCaptureFixture, version: str, line: str, *, wanted: bool
) -> None:
    if version:
        begun(leadership, line, version)
    expected = wanted if not version else version == "v2"
    spark = reading()
    with for_query(spark, leadership, "daily", wanted=wanted):
        assert (spark.settings.get(EVOLUTION) == "true") is expected
        assert (str(named_source(spark, "lines")) == "named lines") is expected
    assert EVOLUTION not in spark.settings
    assert ("begins with sources that have no names" in caplog.text) is (not version and not wanted)


def test_who_has_switched_it_on_is_not_warned(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    spark = reading()
    spark.settings[EVOLUTION] = "true"
    with for_query(spark, leadership, "daily", wanted=False):
        assert str(named_source(spark, "lines")) == "named lines"
    assert spark.settings == {EVOLUTION: "true"}
    assert "no names" not in caplog.text


def test_a_spark_that_has_no_names_is_left_alone_and_refused_only_if_they_are_wanted(
    leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    old = reading(old=True)
    with for_query(old, leadership, "daily", wanted=False):
        assert named_source(old, "lines") is old.readStream
    assert "no names" not in caplog.text
    with pytest.raises(InvalidSettings, match=r"PySpark 4\.2\.1 has no names for sources: install"):
        check_supported(old)
    check_supported(reading())
