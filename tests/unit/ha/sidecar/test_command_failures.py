"""What follows a failure of the command: another start here, another host, or the end of the job."""

import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from ha.config.restart_strategy import FixedDelay, NoRestart, RestartStrategy
from ha.metrics.contending import CommandCounters
from ha.sidecar.failures import JOB_FAILED, CommandFailures, Decision, end_of_command
from ha.sidecar.phase import Leading
from leader.job.admin import JobAdmin
from leader.job.status import JobStatus, Status
from store.bounded import BoundedFiles
from store.errors import NotWritable
from store.local import LocalFiles
from tests.unit.ha.led import Led
from tests.unit.ha.sidecar.test_counted_failures import Place, fails

GIVES_UP = "the restart strategy gives up here"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    Led(tmp_path).claim("orders", "a:1")
    with BoundedFiles(lambda: LocalFiles(tmp_path, durable=False)) as files:
        made = Place(JobAdmin(files, None, 5).directory("orders"), files)
        JobStatus(made.directory).change(Status.CREATED, Status.RUNNING)
        yield made


def failures(place: Place, most: int = 9) -> CommandFailures:
    counters = CommandCounters(CollectorRegistry(), "orders")
    return CommandFailures("orders", place.status(), place.escalation(most), counters)


def after(
    place: Place, strategy: RestartStrategy, *, most: int = 9, remedy: str = "", gave_up: bool = False
) -> Decision:
    phase = Leading(place.leader, strategy)
    return failures(place, most).after(phase, "exit-3", 1.0, remedy, gave_up=gave_up)


def test_the_strategy_decides_whether_it_is_started_again_here(place: Place) -> None:
    strategy = FixedDelay(1, 2.5)
    assert after(place, strategy) == Decision(2.5)
    assert (JobStatus(place.directory).read(), place.attempts.failures) == (Status.RESTARTING, 0)
    assert after(place, strategy) == Decision()
    assert place.attempts.failures == 1


@pytest.mark.parametrize(
    ("strategy", "gave_up", "told"),
    [(NoRestart(), False, False), (NoRestart(), True, True), (FixedDelay(0, 1.0), False, True)],
)
def test_a_strategy_that_gives_up_is_told_of(
    place: Place, caplog: pytest.LogCaptureFixture, strategy: RestartStrategy, *, gave_up: bool, told: bool
) -> None:
    with caplog.at_level(logging.INFO):
        assert after(place, strategy, gave_up=gave_up) == Decision()
    assert (GIVES_UP in caplog.text) is told


@pytest.mark.parametrize("reason", ["remedy", "gave_up"])
def test_what_the_strategy_does_not_decide_leaves_it_as_it_was(place: Place, reason: str) -> None:
    strategy = FixedDelay(1, 2.5)
    remedy, gave_up = ("add the package" if reason == "remedy" else ""), reason == "gave_up"
    assert after(place, strategy, remedy=remedy, gave_up=gave_up) == Decision()
    assert after(place, strategy) == Decision(2.5)


@pytest.mark.parametrize(("remedy", "exit_code"), [("", JOB_FAILED), ("add the package", None)])
def test_the_last_attempt_ends_the_sidecar_unless_no_restart_would_have_mended_it(
    place: Place, remedy: str, exit_code: int | None
) -> None:
    assert after(place, NoRestart(), most=1, remedy=remedy) == Decision(exit_code=exit_code)
    assert (JobStatus(place.directory).read() is Status.FAILED) is (exit_code is not None)


def test_a_last_attempt_that_is_not_counted_is_not_the_last(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.escalation().failed(place.leader, "exit-3", 1.0)
    fails(monkeypatch, "add", [NotWritable("standby")] * 999)
    assert after(place, NoRestart(), most=1) == Decision()
    assert JobStatus(place.directory).read() is not Status.FAILED


def test_a_program_that_has_ended_its_job_is_not_started_again(place: Place) -> None:
    JobStatus(place.directory).change(Status.RUNNING, Status.FINISHED)
    assert after(place, FixedDelay(9, 1.0)) == Decision(exit_code=0)


@pytest.mark.parametrize(
    ("code", "finished", "word"),
    [
        (0, True, "finished"),
        (0, False, "exit-0"),
        (1, True, "exit-1"),
        (128, False, "exit-128"),
        (129, False, "signal-1"),
        (137, False, "signal-9"),
        (127 + signal.NSIG, False, f"signal-{signal.NSIG - 1}"),
        (128 + signal.NSIG, False, f"exit-{128 + signal.NSIG}"),
    ],
)
def test_the_end_of_a_command_is_one_word(code: int, word: str, *, finished: bool) -> None:
    assert end_of_command(code, finished=finished) == word
