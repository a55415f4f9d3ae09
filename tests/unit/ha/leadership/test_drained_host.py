"""A process that begins on a drained host, or cannot see whether it is one, takes nothing over."""

import time
from pathlib import Path

import pytest

import ha
from ha.leadership.eligibility import AGAIN_S, DrainedHost
from leader.errors import NotLeader
from leader.job.barring import DRAINED, drain, undrain
from leader.layout import tree
from leader.layout.bar import Bar
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import ConnectionLost, PermissionDenied, StoreError
from store.files import Entry
from store.local import LocalFiles
from tests.unit.ha.daemon.test_process import Later
from tests.unit.ha.waiting import wait_until


class Hidden(LocalFiles):
    """The orders to stay away cannot be read."""

    error: StoreError | None = None

    def list(self, path: str) -> list[Entry]:
        if path == DRAINED and self.error is not None:
            raise self.error
        return super().list(path)


@pytest.mark.parametrize("error", [PermissionDenied("user=bob, access=READ_EXECUTE"), ConnectionLost("gone")])
def test_who_cannot_see_an_order_to_stay_away_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: StoreError
) -> None:
    tree.create(LocalFiles(tmp_path, durable=False), "orders")
    monkeypatch.setattr(Hidden, "error", error)
    later, began, before = Later(), list[str](), now()
    with BoundedFiles(lambda: Hidden(tmp_path, durable=False), uri="file:///jobs") as hidden:
        host = DrainedHost(later, hidden, Timing(), "a")  # type: ignore[arg-type]
        host.look("orders")
        host.then("orders", lambda: began.append("orders"))
        wait_until(lambda: len(later.waiting) == 1)
        later.waiting[0][1]()
        wait_until(lambda: len(later.waiting) == 2)
        assert f"not known whether this host is drained: {error}" in host.unknown("orders")
        assert not began
        assert caplog.text.count("takes nothing over before that is known") == 1
        pause = AGAIN_S if isinstance(error, PermissionDenied) else Timing().retry
        assert before + pause <= later.waiting[0][0] <= now() + pause
        monkeypatch.setattr(Hidden, "error", None)
        later.waiting[1][1]()
        wait_until(lambda: began)
        assert not host.unknown("orders")
        host.then("orders", lambda: began.append("again"))
        assert began == ["orders", "again"]


def test_nothing_begins_for_who_no_longer_wants_it(tmp_path: Path) -> None:
    tree.create(LocalFiles(tmp_path, durable=False), "orders")
    with BoundedFiles(lambda: LocalFiles(tmp_path, durable=False), uri="file:///jobs") as opened:
        host, began = DrainedHost(Later(), opened, Timing(), "a"), list[str]()  # type: ignore[arg-type]
        host.then("orders", lambda: began.append("orders"))
        host.forget("orders")
        host.look("orders")
        wait_until(lambda: host.looked == {"orders"})
        assert not began


def test_a_program_of_its_own_leads_nothing_on_a_drained_host(tmp_path: Path) -> None:
    """It looked for no order before: only sidecars and daemons did."""
    files = LocalFiles(tmp_path, durable=False)
    tree.create(files, "orders")
    drain(files, Bar("a", int(time.time()) + 3600, "ada", "new disks"))
    with (
        pytest.raises(NotLeader, match="barred"),
        ha.lead("orders", files=tmp_path.as_uri(), contender="a", timeout=2.0),
    ):
        pass
    assert undrain(files, "a")
    with ha.lead("orders", files=tmp_path.as_uri(), contender="b", timeout=60.0) as leadership:
        assert leadership.epoch == 1
