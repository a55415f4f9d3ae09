"""Verification on a schedule: a real `ha checkpoint verify` in a process of its own, and what becomes of its result."""

import logging
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry

import ha
from ha.config.settings import Settings
from ha.config.sources import load
from ha.metrics.standby import QueryVerified
from ha.sidecar.standby import Verification, verified
from ha.spark.tools import import_checkpoint
from tests.lacks import no_descriptor_free
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.usefixtures("quick")


class Sidecar:
    def __init__(self, settings: Settings, standby: bool = True) -> None:
        self.registry = CollectorRegistry()
        self.verification = Verification(settings, "orders", self.registry, lambda: standby)

    def damaged(self) -> float | None:
        labels = {"job_name": "orders", "query": "sums"}
        return self.registry.get_sample_value("ha_checkpoint_damaged_batches", labels)


def checkpoint_of(place: Path) -> Path:
    """Give job "orders" a checkpoint of query "sums"; returns where it is."""
    until_batch(HDFS, 4).write_to(place)
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", place.as_uri())
        return Path(urlsplit(leadership.path("spark/sums")).path)


@pytest.mark.programs
def test_damage_is_shown_and_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = checkpoint_of(tmp_path / "elsewhere")
    sidecar = Sidecar(load({}))
    sidecar.verification.verify()
    assert sidecar.damaged() == 0
    (place / "state/0/1/left/4.delta").unlink()
    sidecar.verification.verify()
    sidecar.verification.verify()
    assert sidecar.damaged() == 2
    errors = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert errors == [
        "orders: a checkpoint is damaged, see `ha checkpoint verify orders`. sums: state/0/1/left/4.delta"
    ]


@pytest.mark.programs
def test_a_job_that_does_not_exist_yet_is_no_matter(caplog: pytest.LogCaptureFixture) -> None:
    sidecar = Sidecar(load({}))
    sidecar.verification.verify()
    assert sidecar.damaged() is None
    assert not caplog.records


@pytest.mark.programs
def test_what_goes_wrong_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    settings = load({"files": (tmp_path / "file" / "below").as_uri()})
    sidecar = Sidecar(settings)
    sidecar.verification.verify()
    assert "could not be verified" in caplog.text
    monkeypatch.setattr("ha.sidecar.standby.LIMIT_S", 0.0)
    sidecar.verification.verify()
    assert "not verified within 0 s" in caplog.text
    with no_descriptor_free():
        sidecar.verification.verify()
    assert "could not be verified: Too many open files" in caplog.text


def test_it_is_off_unless_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(Verification, "verify", lambda _: begun.append("begun"))
    Sidecar(load({})).verification.begin()
    assert not [each for each in threading.enumerate() if each.name == "ha-verification"]
    leader = Sidecar(load({"verify_interval": 0.01}), standby=False)
    leader.verification.begin()
    standby = Sidecar(load({"verify_interval": 0.01}))
    standby.verification.begin()
    wait_until(lambda: len(begun) > 2, what="verified again and again")
    for each in (leader, standby):
        each.verification.close()
    standby.verification.verify()


def test_an_unforeseen_error_is_not_the_last_that_is_heard(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[str] = []

    def verify(_: Verification) -> None:
        begun.append("begun")
        raise ValueError("a line that is no JSON")

    monkeypatch.setattr(Verification, "verify", verify)
    standby = Sidecar(load({"verify_interval": 0.01}))
    standby.verification.begin()
    wait_until(lambda: len(begun) > 2, what="verified again and again")
    standby.verification.close()
    assert "a line that is no JSON" in caplog.text


def test_nothing_begins_after_the_end() -> None:
    sidecar = Sidecar(load({}))
    sidecar.verification.close()
    sidecar.verification.verify()
    assert sidecar.damaged() is None


def test_batches_are_summed_up() -> None:
    batch = {"condition": "restorable", "missing": ""}
    bad = {"condition": "damaged", "missing": "offsets/4"}
    assert verified([]) == QueryVerified(0, 0, restorable=True)
    assert verified([bad, bad, batch]) == QueryVerified(2, 1, restorable=True)
    assert verified([batch, {**bad, "missing": "commits/3"}, bad]) == QueryVerified(2, 2, restorable=False)
    assert verified([{"condition": "forgotten by Spark", "missing": "x"}]) == QueryVerified(0, 0, restorable=True)
