"""``ha job handover`` when nobody leads just then, as between two tries of a command that fails."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ha.cli import operate
from ha.cli.operate import _hand_over
from ha.verbs import asking
from leader.errors import Leaderless, NoLeader
from leader.job.admin import JobAdmin
from leader.job.status import JobStatus, Status
from leader.layout.lease import ANYBODY, Lease
from leader.layout.names import LeaderDirectory
from tests.unit.ha.clocks import At
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.led import Led
from tests.unit.leader.faulty import Place


class Admin(JobAdmin):
    def __init__(self, root: Path, *meanwhile: Callable[[], object]) -> None:
        super().__init__(Place(root).files, None, call_timeout=10.0)
        self.meanwhile = list(meanwhile)

    def handed_over(self, job: str, since: LeaderDirectory, timeout: float) -> tuple[LeaderDirectory, Lease] | None:
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return super().handed_over(job, since, min(timeout, 0.0))


@pytest.fixture
def led(tmp_path: Path) -> Led:
    led = Led(tmp_path)
    led.claim("orders", "a:1")
    return led


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> At:
    clock = At()
    for module in (operate, asking):
        monkeypatch.setattr(module, "now", clock.now)
    monkeypatch.setattr(asking, "BOOT_CLOCK", clock)
    return clock


def test_the_leader_that_comes_next_is_asked(
    tmp_path: Path, led: Led, clock: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    led.release("orders")
    admin = Admin(tmp_path, lambda: led.claim("orders", "b:1"))
    monkeypatch.setattr(clock, "sleep", lambda _: led.claim("orders", "a:1"))
    first, leader, contender = _hand_over(admin, "orders", ANYBODY, 60.0)
    assert first is not None
    assert (first.epoch, leader.epoch, contender) == (2, 3, "a")


def test_who_is_wanted_is_asked_for_until_he_leads(tmp_path: Path, led: Led, clock: At) -> None:
    admin = Admin(tmp_path, lambda: led.claim("orders", "a:1"), lambda: led.claim("orders", "b:1", contender="b"))
    first, leader, contender = _hand_over(admin, "orders", "b", 60.0)
    assert first is not None
    assert (first.epoch, leader.epoch, contender) == (1, 3, "b")
    assert clock.slept == []


def test_a_leader_that_leads_again_is_no_successor(
    tmp_path: Path, led: Led, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def led_again(admin: JobAdmin, job: str, *_: object) -> tuple[LeaderDirectory, Lease]:
        led.release(job)
        led.claim(job, "a:1")
        return admin.lease(job)

    monkeypatch.setattr(JobAdmin, "handed_over", led_again)
    monkeypatch.setenv("HA_FILES", tmp_path.as_uri())
    said = cli("job handover orders", code=1)
    assert said.out == ""
    assert "No standby of 'orders' took over: a leads again, in epoch 2." in said.err


def test_nobody_waits_for_a_leader_of_a_job_that_has_ended(tmp_path: Path, led: Led, clock: At) -> None:
    admin = Admin(tmp_path)
    status = JobStatus(admin.directory("orders"))
    status.change(Status.CREATED, Status.RUNNING)
    led.release("orders")
    with pytest.raises(Leaderless):
        _hand_over(admin, "orders", "b", 1.0)
    assert sum(clock.slept) == pytest.approx(1.0)
    status.change(Status.RUNNING, Status.FINISHED)
    with pytest.raises(NoLeader, match="'orders' is FINISHED: no leader, and none to come"):
        _hand_over(admin, "orders", "b", 60.0)
