"""What follows the end of a run: another start here, another host, or the end of the job."""

import signal
from collections.abc import Callable

import pytest

from ha.config.restart_strategy import FixedDelay, NoRestart
from ha.program.end_file import End
from ha.program.engine_state import EngineState
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.ends import HAD_FAILED, JOB_FAILED, WAS_CANCELED, end_of_command
from ha.sidecar.machine.machine import Machine
from ha.sidecar.machine.sidecar_state import Ending, Leading, Step
from leader.job.failed_attempts import LONGEST_PAUSE_S
from leader.job.status import Status
from leader.layout.names import LeaderDirectory
from tests.unit.ha.led import session
from tests.unit.ha.sidecar.machine.driven import Driven, driven, rules

GIVES_UP = "the restart strategy gives up here; another contender may try."


def test_the_strategy_decides_whether_it_is_started_again_here() -> None:
    made = driven(lambda: FixedDelay(1, 2.5))
    leader = made.run()
    assert made.end(3)[-1] == do.NoteRestarting(leader)
    made.at = 100.5
    made.take(events.RestartingNoted(leader))
    assert made.state.start_at == 102.5, "the delay counts from the failure"
    assert not made.look(102.4)
    assert made.look(102.5) == [do.CountRestart(), do.StartCommand(2, leader, again=True)]
    made.take(events.Started(2))
    assert made.end(3)[-1] == do.CountFailure(leader, "exit-3", 0.0)
    assert made.take(events.FailureCounted(leader)) == [
        do.RecordEnd(leader, "exit-3"),
        do.StepDown("The command has ended with 3."),
        do.Release(leader),
    ]
    assert made.take(events.Released()) == [do.Contend()]


@pytest.mark.parametrize(("attempts", "gave_up", "said"), [(None, False, False), (None, True, True), (0, False, True)])
def test_a_strategy_that_gives_up_is_logged(attempts: int | None, *, gave_up: bool, said: bool) -> None:
    made = driven(NoRestart if attempts is None else lambda: FixedDelay(attempts, 1.0))
    made.run()
    made.end(3, gave_up=gave_up)
    assert (GIVES_UP in [each.said for each in made.all(do.Say)]) is said


@pytest.mark.parametrize("more", [{"end": End(remedy="add the package")}, {"gave_up": True}])
def test_what_the_strategy_does_not_decide_leaves_it_as_it_was(more: dict[str, object]) -> None:
    strategy = FixedDelay(1, 2.5)
    made = driven(lambda: strategy)
    leader = made.run()
    remedy = "add the package" if "end" in more else ""
    assert made.end(3, **more)[-1] == do.CountFailure(leader, "exit-3", 0.0, remedy)
    assert strategy.failed(0.0) == 2.5


@pytest.mark.parametrize(("gave_up", "exit_code"), [(True, JOB_FAILED), (False, None)])
def test_the_last_attempt_ends_the_sidecar(*, gave_up: bool, exit_code: int | None) -> None:
    made = driven()
    leader = made.run()
    made.end(3)
    made.take(events.FailureCounted(leader, gave_up=gave_up))
    found = made.take(events.Released())
    assert (made.state.exit_code, made.state.over, found) == (
        exit_code, gave_up, [] if gave_up else [do.Contend()],
    )  # fmt: skip


def test_a_program_that_has_ended_its_job_is_not_started_again() -> None:
    made = driven(lambda: FixedDelay(9, 1.0))
    leader = made.run()
    made.end(3)
    made.take(events.RestartingNoted(leader, ended=True))
    made.take(events.Released())
    assert (made.state.exit_code, made.state.over, len(made.all(do.StartCommand))) == (0, True, 1)


def test_a_job_that_has_finished_ends_the_sidecar_unless_nobody_knows_it() -> None:
    for recorded in (True, False):
        made = driven()
        leader = made.run()
        assert made.take(events.CommandEnded(1, 0, done=True))[-1] == do.Finish(leader)
        assert made.all(do.Release) == [], "the lease is kept until that is recorded"
        made.take(events.Finished(leader, recorded=recorded))
        made.take(events.Released())
        assert (made.state.exit_code, made.state.over) == ((0, True) if recorded else (None, False))


def test_an_end_that_is_no_success_is_a_failure_whatever_its_code() -> None:
    made = driven()
    leader = made.run()
    made.take(events.CommandEnded(1, 0, done=True, end=End("a query has failed.")))
    said = "The command has ended with 0: a query has failed."
    assert made.all(do.KeepException) == [do.KeepException(leader, "exit-0", said, wait=do.NOTE_S)]
    assert made.all(do.Finish) == []


@pytest.mark.parametrize("pending", ["count", "note", "finish"])
def test_a_revocation_waits_for_nothing_and_what_comes_late_does_no_harm(pending: str) -> None:
    made = driven(NoRestart if pending == "count" else lambda: FixedDelay(9, 1.0))
    leader = made.run()
    made.take(events.CommandEnded(1, 0, done=True) if pending == "finish" else events.CommandEnded(1, 3))
    assert made.take(events.LeadershipRevoked(leader.session_id))[-1] == do.Release(leader)
    late: dict[str, events.SidecarEvent] = {
        "count": events.FailureCounted(leader),
        "note": events.RestartingNoted(leader),
        "finish": events.Finished(leader, recorded=True),
    }
    made.take(late[pending])
    assert len(made.all(do.Release)) == 1
    assert isinstance(made.state.phase, Ending)
    made.take(events.Released())
    assert made.state.over is (pending == "finish")
    assert len(made.all(do.StartCommand)) == 1


def test_the_end_of_another_run_is_not_that_of_this_one() -> None:
    made = driven(lambda: FixedDelay(9, 0.0))
    leader = made.run()
    made.end(3)
    made.take(events.RestartingNoted(leader))
    made.take(events.CommandEnded(1, 3))
    assert made.state.run is not None
    assert (made.state.run.number, len(made.all(do.NoteRestarting))) == (2, 1)


def test_failures_are_forgotten_once_a_run_has_lasted() -> None:
    made = driven()
    leader = made.grant()
    made.take(events.Begun(leader, failed=True))
    made.take(events.Started(1))
    forget = do.ForgetFailures(leader)
    assert forget not in made.look(100.0 + LONGEST_PAUSE_S - 1)
    assert forget in made.look(100.0 + LONGEST_PAUSE_S)
    assert forget not in made.look(101.0 + LONGEST_PAUSE_S), "a store that does not answer is asked again later"
    assert forget in made.look(100.0 + 2 * LONGEST_PAUSE_S)
    made.take(events.Forgotten(leader))
    assert forget not in made.look(100.0 + 9 * LONGEST_PAUSE_S)


def test_nothing_is_forgotten_of_a_job_without_failures() -> None:
    made = driven()
    made.run()
    made.look(100.0 + 9 * LONGEST_PAUSE_S)
    assert made.all(do.ForgetFailures) == []


def test_a_program_that_fails_under_its_engine_is_counted_and_ends_no_leadership() -> None:
    made = driven()
    leader = made.run()
    for failures in (1, 1, 2):
        made.look(101.0, engine=EngineState(failures=failures, code=3, delay=1.0))
    assert [each.kind for each in made.all(do.KeepException)] == ["exit-3"] * 2
    made.look(102.0, engine=EngineState(failures=3, code=3, gave_up=True))
    assert len(made.all(do.KeepException)) == 2, "its last end is that of the command"
    assert isinstance(made.state.phase, Leading)
    assert (made.state.phase.step, made.state.phase.leader) == (Step.RUNNING, leader)


def test_the_failures_under_a_dead_sidecar_are_not_told_again() -> None:
    made = driven()
    leader = LeaderDirectory(7, session(7))
    made.machine = Machine(rules())
    made.machine.take_up(100.0, leader, 2)
    made.take(events.LeadershipGranted(leader))
    made.look(101.0, engine=EngineState(starts=3, failures=2, code=1))
    assert made.all(do.KeepException) == []
    made.look(102.0, engine=EngineState(starts=4, failures=3, code=1))
    assert [each.kind for each in made.all(do.KeepException)] == ["exit-1"]


@pytest.mark.parametrize("warm", [False, True])
def test_the_command_waits_for_the_pause_of_a_job_that_keeps_failing(*, warm: bool) -> None:
    made = driven(warm=warm)
    leader = made.grant()
    made.take(events.Started(1, granted=False))
    made.take(events.Begun(leader, pause=4.0, failed=True))
    assert not made.look(103.9)
    start = do.Grant if warm else do.StartCommand
    assert made.look(104.0) == [do.CountRestart(), start(1, leader, again=True, waited=True)]
    made.take(events.Started(1))
    made.take(events.RequestsFound(leader))
    made.restart()
    assert not made.settle()[-1].waited, "only a wait ends"  # type: ignore[attr-defined]
    assert made.all(do.ForgetFailures) == [do.ForgetFailures(leader, restarting=True)]


def test_an_operator_who_asks_for_a_restart_ends_the_pause_and_the_count() -> None:
    made = driven()
    leader = made.grant()
    made.take(events.Begun(leader, pause=LONGEST_PAUSE_S, failed=True))
    made.look(100.0 + LONGEST_PAUSE_S - 0.1)
    assert made.all(do.ForgetFailures) == [], "a command that waits for its start does not run"
    made.take(events.RequestsFound(leader))
    made.restart()
    assert do.ForgetFailures(leader, restarting=True) in made.done
    assert do.StartCommand(1, leader, again=True, waited=True) in made.done


def test_a_leader_that_died_before_it_gave_the_job_up_is_followed_by_no_other_try() -> None:
    made = driven()
    leader = made.grant()
    made.take(events.Begun(leader, gave_up=True))
    made.take(events.Released())
    assert (made.state.exit_code, made.state.over, made.all(do.StartCommand)) == (JOB_FAILED, True, [])
    assert made.all(do.RecordEnd) == [do.RecordEnd(leader, "gave-up")]


@pytest.mark.parametrize(
    ("ended", "code", "says"),
    [
        (Status.FINISHED, 0, "the job has finished"),
        (Status.FAILED, HAD_FAILED, "the job has FAILED, and is not run: `ha job exceptions` says why"),
        (Status.CANCELED, WAS_CANCELED, "the job was CANCELED, and is not run"),
    ],
)
def test_a_job_that_had_ended_is_not_run_and_its_end_is_told(ended: Status, code: int, says: str) -> None:
    made = driven()
    leader = made.grant()
    made.take(events.Begun(leader, ended=ended))
    made.take(events.Released())
    assert (made.state.exit_code, made.state.over, made.all(do.StartCommand)) == (code, True, [])
    assert any(each.said.startswith(says) for each in made.all(do.Say))


def hand_over(made: Driven) -> None:
    made.take(events.AskedToHandOver())


def stop(made: Driven) -> None:
    made.take(events.Signalled(15, "SIGTERM"))


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("end", "cause"), [(None, "revoked"), (hand_over, "resigned"), (stop, "stopped")])
def test_every_end_of_a_leadership_ends_a_wait_counts_nothing_and_gives_the_lease_back_once(
    end: Callable[[Driven], None] | None, cause: str, *, waits: bool
) -> None:
    made = driven(lambda: FixedDelay(9, 2.0))
    leader = made.run()
    if waits:
        made.end(3)
        made.take(events.RestartingNoted(leader))
    if end is not None:
        end(made)
    made.leads = False
    made.take(events.LeadershipRevoked(leader.session_id))
    if not waits:
        made.end(3)
    made.look(200.0)
    assert (made.all(do.Release), made.all(do.CountFailure)) == ([do.Release(leader)], [])
    assert (made.all(do.RecordEnd), len(made.all(do.StartCommand))) == ([do.RecordEnd(leader, cause)], 1)


@pytest.mark.parametrize(
    ("code", "finished", "word"),
    [
        (0, True, "finished"), (0, False, "exit-0"), (1, True, "exit-1"), (128, False, "exit-128"),
        (129, False, "signal-1"), (137, False, "signal-9"), (127 + signal.NSIG, False, f"signal-{signal.NSIG - 1}"),
        (128 + signal.NSIG, False, f"exit-{128 + signal.NSIG}"),
    ],
)  # fmt: skip
def test_the_end_of_a_command_is_one_word(code: int, word: str, *, finished: bool) -> None:
    assert end_of_command(code, finished=finished) == word
