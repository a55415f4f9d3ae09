"""A regional output's folder: the mark only grows, and what holds it back is told as it is now."""

import logging

import pytest

from ha.leadership import fenced_rename
from ha.outputs.regional import RegionalHome, RegionRecord, RegionState, behind
from leader.errors import InvalidSettings
from store.errors import ConnectionLost
from store.local import LocalFiles
from tests.unit.ha.outputs.place import Place

FAILED = RegionRecord(3, "eu", RegionState.ERROR, ["1/2"], "x" * 500)
LATE = RegionRecord(4, "eu2", RegionState.EXPIRED, [], "late")


def opened(place: Place, *regions: str) -> RegionalHome:
    made = RegionalHome(place.output_folder().renames, "output")
    made.load(regions)
    return made


def test_a_mark_is_kept_through_restarts_and_a_forgotten_one_is_made_again(place: Place) -> None:
    home = opened(place, "eu", "eu2")
    assert (home.mark, place.names("mark=")) == (-1, [])
    for mark in (0, 9, 10):
        home.move(mark)
        assert (home.mark, opened(place, "eu", "eu2").mark, place.names("mark=")) == (mark, mark, [f"mark={mark}"])
    (lost,) = place.home.glob("out/output-*/mark=10")
    lost.rmdir()
    home.move(12)
    assert opened(place, "eu", "eu2").mark == 12


def test_regions_may_come_and_none_may_go(place: Place) -> None:
    opened(place, "eu")
    opened(place, "eu", "eu2")
    assert place.names("region=") == ["region=eu", "region=eu2"]
    with pytest.raises(InvalidSettings, match="has a region 'eu2' that is not given"):
        opened(place, "eu", "us")
    assert place.names("region=") == ["region=eu", "region=eu2"]


def test_what_holds_the_mark_back_is_told_until_it_does_not(place: Place) -> None:
    for records in ([FAILED], [FAILED, LATE], [LATE], [], [LATE]):
        opened(place, "eu", "eu2").tell(records)
        assert behind(place.names("")) == records
    home = opened(place, "eu", "eu2")
    for records in ([FAILED, LATE], [LATE], []):
        home.tell(records)
        assert behind(place.names("")) == records
    assert behind(["behind=1~1~AAAA"]) == []


def test_a_store_that_fails_does_no_harm(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    home = opened(place, "eu", "eu2")
    home.tell([LATE])
    for call in ("delete", "make_directory"):
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(LocalFiles, call, lambda *_, **__: (_ for _ in ()).throw(ConnectionLost("away")))
            home.tell([FAILED])
        assert "which regions are behind is not told: away" in caplog.text
    home.tell([FAILED])
    assert behind(place.names("")) == [FAILED]
