"""Source names: which checkpoints have them, and when a new query is warned of having none."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from ha.leadership.leadership import Leadership
from ha.spark.session.source_names import EVOLUTION, check_supported, for_query, have_names, named_source
from leader.errors import InvalidSettings

pytestmark = pytest.mark.usefixtures("quick")


class Session:
    version = "4.2.1"

    def __init__(self, **readers: Any) -> None:
        self.settings: dict[str, str] = {}
        self.conf = SimpleNamespace(get=self.settings.get, set=self.settings.__setitem__, unset=self.settings.pop)
        self.readStream = SimpleNamespace(**readers)


def session(*, old: bool = False) -> Any:
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
    spark = session()
    with for_query(spark, leadership, "daily", wanted=wanted):
        assert (spark.settings.get(EVOLUTION) == "true") is expected
        assert (str(named_source(spark, "lines")) == "named lines") is expected
    assert EVOLUTION not in spark.settings
    assert ("begins with sources that have no names" in caplog.text) is (not version and not wanted)


def test_who_has_switched_it_on_is_not_warned(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    spark = session()
    spark.settings[EVOLUTION] = "true"
    with for_query(spark, leadership, "daily", wanted=False):
        assert str(named_source(spark, "lines")) == "named lines"
    assert spark.settings == {EVOLUTION: "true"}
    assert "no names" not in caplog.text


def test_a_spark_that_has_no_names_is_left_alone_and_refused_only_if_they_are_wanted(
    leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    old = session(old=True)
    with for_query(old, leadership, "daily", wanted=False):
        assert named_source(old, "lines") is old.readStream
    assert "no names" not in caplog.text
    with pytest.raises(InvalidSettings, match=r"PySpark 4\.2\.1 has no names for sources: install"):
        check_supported(old)
    check_supported(session())
