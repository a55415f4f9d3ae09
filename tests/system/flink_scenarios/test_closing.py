"""Leaderships that end at awkward moments: nothing deadlocks, nobody is called twice, nothing is left behind."""

import logging
import socket
import threading
from pathlib import Path

import pytest

import ha
from leader.contender.runtime import Runtime
from leader.errors import NotLeader, Unreachable
from leader.layout.names import LeaderDirectory
from leader.timing import Timing
from store.local import LocalFiles
from store.open import open_files
from tests.patience import PATIENCE_S
from tests.system.flink_scenarios.conftest import record
from tests.unit.ha.waiting import wait_until
from tests.unit.leader.samples import B


def sequence(jobs: Path) -> int:
    lease = record(jobs)[1].lease
    assert lease is not None
    return lease.sequence


def fence(jobs: Path) -> None:
    LocalFiles(jobs).rename(f"orders/{record(jobs)[0].name}", f"orders/{LeaderDirectory(7, B).name}")


def ours() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("ha-")}


def test_nothing_is_touched_before_the_block_is_entered(jobs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        zookeeper = f"127.0.0.1:{listener.getsockname()[1]}"
        threads = set(threading.enumerate())
        block = ha.lead("orders", {"rest": "a:1"}, zookeeper=zookeeper)
        client = ha.connect(zookeeper=zookeeper)
        assert set(threading.enumerate()) <= threads, "there is nobody who could connect"
        with pytest.raises(BlockingIOError):
            listener.accept()
        assert not jobs.exists()
        block.__exit__(None, None, None)  # and leaving what was never entered does nothing
        client.close()
        assert not jobs.exists()


def test_a_closed_client_answers_nothing(jobs: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S):
        client = ha.connect()
        assert client.leader("orders", PATIENCE_S).epoch == 1
        client.close()
        with pytest.raises(Unreachable):
            client.leader("orders", 1.0)
        with pytest.raises(Unreachable):
            client.checkpoint("orders", 1.0)
        assert list(client.watch("orders")) == []
        client.close()
    assert jobs.exists()


def test_leaving_at_the_moment_of_the_grant_leaves_nothing_behind(jobs: Path) -> None:
    before = ours()
    epochs = []
    for timeout in (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05):
        try:
            with ha.lead("orders", timeout=timeout) as leadership:
                epochs.append(leadership.epoch)
        except NotLeader:
            continue
    wait_until(lambda: ours() <= before)
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        epochs.append(leadership.epoch)
    assert epochs == sorted(set(epochs))
    assert record(jobs)[1].released


def test_whoever_asked_is_called_once_however_often_it_ends(jobs: Path) -> None:
    called: list[str] = []
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        leadership.on_revoked(lambda: called.append("revoked"))
        leadership.resign()
        leadership.resign()
        assert called == ["revoked"]
    assert called == ["revoked"]
    assert record(jobs)[1].released


def test_a_leadership_that_is_lost_while_it_is_left_ends_once(jobs: Path) -> None:
    called: list[str] = []
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        leadership.on_revoked(lambda: called.append("revoked"))
        fence(jobs)
    assert called == ["revoked"]
    assert record(jobs)[0] == LeaderDirectory(7, B), "and nothing of the next leader's was touched"
    assert not record(jobs)[1].released


def test_a_leadership_lost_while_its_work_is_stopped_ends_once(jobs: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ha")
    before, called = ours(), []

    def revocations() -> int:
        return caplog.text.count("orders: revoked.")

    def stop() -> None:
        called.append(revocations())
        fence(jobs)
        wait_until(lambda: revocations() == 2, what="it is told that its time is over")

    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        leadership.on_revoked(stop)
    wait_until(lambda: ours() <= before)
    assert called == [1]


def test_a_callback_that_takes_its_time_blocks_nobody_and_keeps_the_lease(jobs: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        inside, go_on = threading.Event(), threading.Event()

        def stop() -> None:
            inside.set()
            go_on.wait(PATIENCE_S)

        leadership.on_revoked(stop)
        resigning = threading.Thread(target=leadership.resign)
        resigning.start()
        assert inside.wait(PATIENCE_S)
        before = sequence(jobs)
        wait_until(lambda: sequence(jobs) > before + 1, what="the lease is renewed while the work is being stopped")
        assert not record(jobs)[1].released
        assert not leadership.is_leader()
        go_on.set()
        resigning.join(PATIENCE_S)
        assert record(jobs)[1].released


def test_confirming_and_being_revoked_under_one_lock_is_no_deadlock(jobs: Path) -> None:
    """The program confirms while it holds a lock that its own callback needs, and has lost the leadership already."""
    lock, stopped = threading.Lock(), threading.Event()

    def stop() -> None:
        with lock:
            stopped.set()

    with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S) as leadership:
        leadership.on_revoked(stop)
        with lock:
            fence(jobs)
            with pytest.raises(NotLeader, match="Epoch 1 of job 'orders' is over"):
                leadership.confirm({"rest": "zombie:1"})
            assert not stopped.is_set()
        assert stopped.wait(PATIENCE_S)
    assert "zombie:1" not in {entry.address for entry in record(jobs)[1].entries}


def test_a_callback_may_resign(jobs: Path) -> None:
    resigned: list[None] = []
    # A call that waits for its own callback gives up after stop_grace and long_ttl together: here this test has failed.
    with ha.lead("orders", timeout=PATIENCE_S, stop_grace=2000.0, long_ttl=2000.0) as leadership:
        leadership.on_revoked(lambda: resigned.append(leadership.resign()))  # type: ignore[func-returns-value]
    assert resigned == [None]
    assert record(jobs)[1].released


def test_an_error_on_the_contenders_thread_ends_nothing(jobs: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = open_files(jobs.as_uri())
    runtime = Runtime("a", Timing(), files, None)
    try:
        runtime.post(lambda: 1 / 0)
        assert runtime.ask(lambda: "alive", PATIENCE_S) == "alive"
        with pytest.raises(ZeroDivisionError):
            runtime.ask(lambda: 1 / 0, PATIENCE_S)
        assert "ZeroDivisionError" in caplog.text
    finally:
        runtime.close()
        files.close()
