"""Replication beside a sidecar: a real `ha replica run` while it stands by, and none while it leads."""

import errno
import os
import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

import ha
from ha.config.settings import Settings
from ha.config.sources import load
from ha.config.stores import Stores
from ha.sidecar import standby
from ha.sidecar.command.run_directory import PREFIX, RunDirectory
from ha.sidecar.standby import Replication
from ha.spark.tools import import_checkpoint
from leader.errors import InvalidSettings, NoLeader
from leader.job.admin import JobAdmin
from leader.layout.lease import Mode
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.usefixtures("quick")


class Sidecar:
    def __init__(self, settings: Settings, *, standby: bool = True) -> None:
        self.standby = standby
        self.registry = CollectorRegistry()
        self.replication = Replication(settings, "orders", self.registry, lambda: self.standby)

    def behind(self) -> float | None:
        labels = {"job_name": "orders", "query": "sums"}
        return self.registry.get_sample_value("ha_replica_behind_batches", labels)


def lease_mode(settings: Settings) -> Mode | None:
    stores = Stores(settings)
    try:
        return JobAdmin(stores.files, None, 5.0).lease("orders.replica")[1].mode
    except NoLeader:
        return None
    finally:
        stores.close()


@pytest.mark.programs
@pytest.mark.slow
def test_it_replicates_while_it_stands_by_and_gives_the_replica_back_when_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "SETTLED_S", 0.01)
    monkeypatch.setattr(standby, "LOOK_S", 0.01)
    until_batch(HDFS, 4).write_to(tmp_path / "elsewhere")
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", (tmp_path / "elsewhere").as_uri())
    there = load({"files": (tmp_path / "there").as_uri(), "zookeeper": ""})
    sidecar = Sidecar(load({"replicate_to": there.stores.files}), standby=False)
    sidecar.replication.begin()
    assert sidecar.behind() is None
    assert lease_mode(there) is None
    sidecar.standby = True
    wait_until(lambda: sidecar.behind() == 0, what="the replica has all")
    assert lease_mode(there) is Mode.HDFS
    sidecar.standby = False
    wait_until(lambda: lease_mode(there) is Mode.RELEASED, what="its lease is given back")
    assert sidecar.behind() == 0
    sidecar.replication.close()
    assert not _threads()


@pytest.mark.programs
def test_one_that_fails_is_told_and_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(standby, "SETTLED_S", 0.01)
    sidecar = Sidecar(load({"replicate_to": (tmp_path / "there").as_uri()}))
    begun: list[Path] = []
    replicate = sidecar.replication._replicate

    def counted(path: Path) -> bool:
        begun.append(path)
        monkeypatch.setattr(standby, "AGAIN_S", 0.01 if len(begun) == 1 else 60.0)
        return replicate(path)

    monkeypatch.setattr(sidecar.replication, "_replicate", counted)
    sidecar.replication.begin()
    said = "the replication has ended with exit code 3"
    wait_until(lambda: caplog.text.count(said) == 2, what="it was begun again")
    sidecar.replication.close()
    assert len(begun) == 2


def test_one_that_cannot_be_begun_for_lack_of_anything_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(standby, "SETTLED_S", 0.01)
    monkeypatch.setattr(standby, "AGAIN_S", 0.01)
    sidecar, tried = Sidecar(load({"replicate_to": (tmp_path / "there").as_uri()})), list[Path]()

    def started(path: Path) -> None:
        tried.append(path)
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def full(*_: object) -> None:
        monkeypatch.setattr(standby, "RunDirectory", RunDirectory)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(standby, "RunDirectory", full)
    monkeypatch.setattr(sidecar.replication, "_started", started)
    sidecar.replication.begin()
    wait_until(lambda: len(tried) > 1, what="it has been tried again")
    sidecar.replication.close()
    assert "the replication cannot be started: No space left on device." in caplog.text
    assert "the replication cannot be started: Resource temporarily unavailable." in caplog.text


def test_its_files_go_with_a_killed_sidecar_and_come_back_after_a_cleaner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}")
    monkeypatch.setattr(standby, "SETTLED_S", 0.01)
    monkeypatch.setattr(standby, "AGAIN_S", 0.01)
    sidecar, found = Sidecar(load({"replicate_to": (tmp_path / "there").as_uri()})), list[Path]()

    def fails(path: Path) -> bool:
        found.append(path)
        assert path.parent.is_dir()
        shutil.rmtree(path.parent)
        return False

    monkeypatch.setattr(sidecar.replication, "_replicate", fails)
    sidecar.replication.begin()
    wait_until(lambda: len(found) > 1, what="it has replicated again")
    sidecar.replication.close()
    assert not list(tmp_path.glob("*"))
    assert found[0].parent.name.startswith(PREFIX), "the next sidecar removes what a killed one has left"


def test_it_is_off_unless_it_is_wanted() -> None:
    sidecar = Sidecar(load({}))
    sidecar.replication.begin()
    assert not _threads()
    sidecar.replication.close()


def test_a_rate_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="replicate_rate"):
        load({"replicate_rate": -1})


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "ha-replication"]
