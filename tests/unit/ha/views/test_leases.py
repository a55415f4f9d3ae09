"""Leases: one look says whether a job is led, by the time of its renewal and by ZooKeeper's sessions."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.views import leases as looks
from ha.views.jobs import JobSummary, summary
from ha.views.leases import Leases
from ha.views.remarks import possible, remarks
from leader.job.admin import JobAdmin
from leader.job.barring import bar
from leader.job.pausing import pause
from leader.job.status import JobStatus, Status
from leader.layout.bar import Bar
from leader.layout.lease import Lease, Mode
from leader.layout.pause import Pause
from store.errors import DeadlineExceeded
from store.traits import Traits
from store.zookeeper import Children, Connection, Get
from tests.unit.ha.led import Led

SESSION = "cafe0001-1234"


class PlayedZooKeeper:
    """Answers what a look asks; with an error if it is silent."""

    address = "zk1:2181/ha"
    started = False

    def __init__(
        self, *sessions: str, contenders: tuple[str, ...] = (), silent: bool = False, state: Any = None
    ) -> None:
        self._children = {"/sessions": sessions, "/jobs/orders/contenders": contenders}
        self._silent, self._state = silent, state or Connection.CONNECTED
        self.waits = 0

    def start(self) -> None: ...

    def close(self, _: float) -> None: ...

    def wait(self, _: float) -> Connection:
        self.waits += 1
        return self._state

    def call(self, operation: object, _: float) -> Any:
        if self._silent:
            raise DeadlineExceeded("no answer within 1 s")
        match operation:
            case Get():
                return b"cafe0001", None
            case Children(path):
                return list(self._children[path])
        return None


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    with closing(Stores(Settings.of(files=tmp_path.as_uri()))) as found:
        yield found


@pytest.fixture
def admin(stores: Stores) -> JobAdmin:
    made = Led(Path(stores.files.uri.removeprefix("file://")))
    made.claim("orders", "a:1")
    found = JobAdmin(stores.files, None, 5)
    JobStatus(found.directory("orders")).change(Status.CREATED, Status.RUNNING)
    return found


def renewed(stores: Stores, admin: JobAdmin, *, ago: float, mode: Mode = Mode.HDFS, ttl: float = 6.0) -> None:
    """Make the lease one that was renewed then."""
    directory, held = admin.lease("orders")
    attestation = SESSION if mode is Mode.ZOOKEEPER else ""
    new = Lease(held.sequence + 1, mode, round(ttl * 1000), held.owner, attestation, "a")
    record = Path(stores.files.uri.removeprefix("file://"), "orders", directory.name, "record")
    (record / held.name).rename(record / new.name)
    os.utime(record, (time.time() - ago,) * 2)


def seen(stores: Stores, admin: JobAdmin) -> JobSummary:
    return summary(admin, "orders", Leases(stores))


@pytest.mark.parametrize("mode", [Mode.HDFS, Mode.ZOOKEEPER])
def test_a_lease_that_nobody_renews_is_over(stores: Stores, admin: JobAdmin, mode: Mode) -> None:
    renewed(stores, admin, ago=5.0, mode=mode)
    found = seen(stores, admin)
    assert (found.state, found.lease, found.holder, found.since) == ("RUNNING", mode.value, "a", None)
    renewed(stores, admin, ago=7.0, mode=mode)
    found = seen(stores, admin)
    assert (found.state, found.lease, found.holder, found.last_holder) == ("SUSPENDED", "expired", None, "a")
    assert found.since is not None
    said, *_ = remarks(found)
    assert said.startswith(f"no process leads it since {found.since}: a stopped renewing its lease; ")


def test_a_store_of_other_hosts_may_have_another_clock(
    stores: Stores, admin: JobAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed(stores, admin, ago=20.0)
    monkeypatch.setattr(looks, "traits", lambda _: Traits())
    found = seen(stores, admin)
    assert (found.state, found.holder, found.overdue) == ("RUNNING", "a", True)
    assert [each.partition(" since ")[0] for each in remarks(found)] == ["a has not renewed its lease"]
    renewed(stores, admin, ago=40.0)
    assert seen(stores, admin).lease == "expired"


def test_zookeeper_says_at_once_that_a_session_is_gone(stores: Stores, admin: JobAdmin) -> None:
    renewed(stores, admin, ago=1.0, mode=Mode.ZOOKEEPER, ttl=60.0)
    stores.zookeeper = PlayedZooKeeper(SESSION)  # type: ignore[assignment]
    assert seen(stores, admin).state == "RUNNING"
    stores.zookeeper = PlayedZooKeeper("cafe0001-9999")  # type: ignore[assignment]
    found = seen(stores, admin)
    assert (found.state, found.lease, found.last_holder) == ("SUSPENDED", "session-gone", "a")
    stores.zookeeper = PlayedZooKeeper(silent=True)  # type: ignore[assignment]
    assert seen(stores, admin).state == "RUNNING", "silence is no word"


@pytest.mark.parametrize(
    ("played", "silence"),
    [
        (PlayedZooKeeper(state=Connection.LOST), "zk1:2181/ha gives no session within 1 s"),
        (PlayedZooKeeper(silent=True), "no answer within 1 s"),
    ],
)
def test_zookeeper_is_waited_for_once_in_a_look(
    stores: Stores, admin: JobAdmin, played: PlayedZooKeeper, silence: str
) -> None:
    stores.zookeeper = played  # type: ignore[assignment]
    leases = Leases(stores)
    with_zookeeper = JobAdmin(stores.files, played, 5)  # type: ignore[arg-type]
    for _ in range(70):
        assert summary(with_zookeeper, "orders", leases).contenders is None
    assert (played.waits, leases.silence) == (1, silence)
    del admin


def test_an_operators_mark_is_no_sign_of_life(stores: Stores, admin: JobAdmin) -> None:
    renewed(stores, admin, ago=100.0)
    assert seen(stores, admin).since is not None
    pause(admin, "orders", Pause(1, "ann", "upgrade"))
    record = Path(stores.files.uri.removeprefix("file://"), admin.directory("orders").at("record"))
    os.utime(record, (time.time() - 10,) * 2)
    found = seen(stores, admin)
    assert (found.state, found.since) == ("SUSPENDED", None), "the pause has changed the folder, and nobody knows since"
    assert next(remarks(found)).endswith("no contender may, while it is paused")


@pytest.mark.parametrize(
    ("contenders", "barred", "said"),
    [
        ((), None, "no process contends for it: start `ha run orders -- COMMAND` on a host"),
        (("b", "c"), None, "b or c takes over"),
        (("b", "c"), "b", "c takes over"),
        (("b",), "b", "no contender may take over: start `ha run orders -- COMMAND` on a host"),
    ],
)
def test_a_job_that_is_left_says_who_takes_over(
    stores: Stores, admin: JobAdmin, contenders: tuple[str, ...], barred: str | None, said: str
) -> None:
    if barred:
        bar(admin, "orders", Bar(barred, int(time.time()) + 1000))
    renewed(stores, admin, ago=100.0)
    stores.zookeeper = played = PlayedZooKeeper(contenders=contenders)  # type: ignore[assignment]
    found = summary(JobAdmin(stores.files, played, 5), "orders", Leases(stores))  # type: ignore[arg-type]
    assert next(remarks(found)).endswith(f"; {said}")
    assert possible(found)[0].startswith("`ha run orders")
