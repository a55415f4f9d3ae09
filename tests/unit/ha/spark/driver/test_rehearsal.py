"""Rehearsal without Spark: which stores it opens, and what it repeats."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.leadership.dry_run_job import ALONE
from ha.spark.driver import rehearsal
from ha.spark.driver.rehearsal import _Rehearsing, persistently
from store.bounded import BoundedFiles
from store.errors import NotWritable, PermissionDenied, StoreError
from store.local import LocalFiles


@pytest.fixture
def files(tmp_path: Path) -> Iterator[BoundedFiles]:
    with BoundedFiles(lambda: LocalFiles(tmp_path, durable=False)) as opened:
        yield opened


class Failing:
    def __init__(self, error: StoreError, times: int) -> None:
        self.error, self.left, self.calls = error, times, 0

    def __call__(self, _: object) -> str:
        self.calls += 1
        self.left -= 1
        if self.left >= 0:
            raise self.error
        return "done"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "AGAIN_S", 0.0)


def test_a_call_is_repeated_until_a_namenode_is_active(files: BoundedFiles) -> None:
    switching = Failing(NotWritable("standby"), 3)
    assert persistently(files, switching, threading.Event()) == "done"
    assert switching.calls == 4


def test_what_no_namenode_would_do_is_not_repeated(files: BoundedFiles) -> None:
    forbidden = Failing(PermissionDenied("no"), 1)
    with pytest.raises(PermissionDenied):
        persistently(files, forbidden, threading.Event())
    assert forbidden.calls == 1


def test_it_stops_when_it_is_told_to(files: BoundedFiles) -> None:
    stop = threading.Event()
    stop.set()
    switching = Failing(NotWritable("standby"), 3)
    with pytest.raises(NotWritable):
        persistently(files, switching, stop)
    assert switching.calls == 1


def test_it_leads_with_all_settings_of_the_program_but_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials are settings like others: the throw-away job needs them as the real one does."""
    led: dict[str, object] = {}

    class Told(Exception):
        pass

    def lead(job: str, **given: object) -> None:
        led.update(given, job=job)
        raise Told

    monkeypatch.setattr(rehearsal, "lead", lead)
    monkeypatch.setenv("HA_ZOOKEEPER", "127.0.0.1:1")
    given = {"files": f"file://{tmp_path}/", "directory_mode": "0750", **ALONE}
    rehearsing = _Rehearsing(None, None, None, 3, 60.0, given)  # type: ignore[arg-type]
    assert (rehearsing._settings.stores.zookeeper, rehearsing._settings.stores.directory_mode) == ("", "0750")
    rehearsing._run()
    assert led["directory_mode"] == "0750"
    assert {name: led[name] for name in ALONE} == ALONE
    assert str(led["files"]).startswith(f"file://{tmp_path}/.rehearsal-")
    assert led["job"] == str(led["files"]).rpartition("/.")[2]
    assert list(tmp_path.iterdir()) == [], "nothing stays"
