"""The executor, and the thread that decides: what a machine does not see of either."""

import errno
import queue
import threading
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest
from prometheus_client import CollectorRegistry

from ha.leadership.notices import Wake
from ha.program.end_file import End
from ha.program.engine_state import EngineState
from ha.sidecar import executor, sidecar
from ha.sidecar.executor import SHOW_S, Executor, InOrder
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.sidecar import LONGEST_PAUSE_S, RESTING_PAUSE_S, Sidecar
from leader.layout.names import LeaderDirectory
from tests.patience import PATIENCE_S
from tests.unit.ha.led import session
from tests.unit.ha.sidecar.machine.driven import Driven, driven

LEADER = LeaderDirectory(1, session(1))


class Called:
    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.posted: list[object] = []

        def note(name: str) -> Any:
            return lambda *given: self.calls.append((name, *given))

        made: Any = SimpleNamespace(
            program="old", start=note("start"), keep=note("keep"), beat=None, engine=EngineState(gave_up=True),
            jvm_ended=True, told_end=End("it broke."), drained=True, end=self._end, files=SimpleNamespace(restart=None),
        )  # fmt: skip
        self.command = made
        store: Any = SimpleNamespace(
            failures=SimpleNamespace(show_wait=note("wait")),
            running=note("running"),
            started=note("started"),
            show_told=note("show"),
            keep=note("keep"),
            keep_rest=note("keep_rest"),
        )
        self.registry = CollectorRegistry()
        process: Any = SimpleNamespace(metrics=SimpleNamespace(registry=self.registry))
        programs: Any = SimpleNamespace(newest=lambda _: "new")
        hosts: Any = SimpleNamespace(excluded=lambda _: ["h1", "h2"])
        now = lambda task: task()  # noqa: E731
        self.executor = Executor(
            process, "orders", {}, made, programs, hosts, store, None, self.posted.append, now, now
        )

    def _end(self) -> tuple[int, bool]:
        self.command.jvm_ended, self.command.told_end, self.command.engine = False, End(), EngineState()
        return 3, False


def test_a_start_takes_the_newest_program_and_the_excluded_hosts_and_ends_the_wait_that_is_shown() -> None:
    made = Called()
    made.executor.carry_out(do.StartCommand(1, LEADER, again=True, waited=True))
    assert made.command.program == "new"
    start = ("start", 1, LEADER, ["h1", "h2"])
    said = ("started", LEADER)
    assert made.calls == [("running", LEADER), start, ("wait", LEADER, 0.0), ("keep_rest", LEADER), said]
    assert made.posted == [events.Started(1)]
    made.executor.carry_out(do.StartCommand(2, LEADER))
    assert made.calls[5:] == [("start", 2, LEADER, ["h1", "h2"]), said]


def test_restarts_and_failures_are_counted() -> None:
    made = Called()
    for each in (do.CountRestart(), do.KeepException(LEADER, "exit-3", "It broke."), do.CountRestart()):
        made.executor.carry_out(each)
    count = made.registry.get_sample_value
    counted = [count(f"ha_command_{each}_total", {"job_name": "orders"}) for each in ("restarts", "failures")]
    assert counted == [2, 1]
    assert made.calls == [("keep", do.KeepException(LEADER, "exit-3", "It broke."))]


def test_what_a_run_has_told_is_read_before_it_is_forgotten() -> None:
    found = Called().executor.ended(1)
    assert found == events.CommandEnded(1, 3, False, End("it broke."), True, True, True)


def test_what_a_program_tells_of_its_queries_is_looked_at_now_and_then_while_it_runs() -> None:
    made, state = Called(), driven()
    with mock.patch.object(executor, "now", side_effect=lambda: state.at):
        made.executor.look(state.state)
        state.run()
        for state.at in (100.0, 100.0 + SHOW_S - 0.1, 100.0 + SHOW_S):
            made.executor.look(state.state)
    assert [name for name, *_ in made.calls].count("show") == 2


def test_looks_at_what_a_program_tells_do_not_pile_up_while_the_store_hangs() -> None:
    made, state = Called(), driven()
    state.run()
    waiting: list[Any] = []
    made.executor._in_order = waiting.append
    with mock.patch.object(executor, "now", side_effect=lambda: state.at):
        for state.at in (100.0, 100.0 + SHOW_S, 100.0 + 9 * SHOW_S):
            made.executor.look(state.state)
        assert len(waiting) == 1
        waiting[0]()
        made.executor.look(state.state)
        state.at += SHOW_S
        made.executor.look(state.state)
    assert len(waiting) == 2


def test_what_hangs_is_killed_although_its_stacks_cannot_be_taken() -> None:
    made = Called()
    command: Any = made.executor._command
    command.runs, command.thread_dumps = 1, mock.Mock(side_effect=OSError("no memory"))
    command.terminate, command.kill = mock.Mock(), mock.Mock()
    made.executor.carry_out(do.KillHung(2, None))
    assert not command.kill.called, "that run has ended meanwhile"
    made.executor.carry_out(do.KillHung(1, None))
    assert made.posted == [events.Dumped(2, ""), events.Dumped(1, "")]
    assert (command.terminate.call_count, command.kill.call_count) == (1, 1)


def test_what_the_host_lacks_something_for_is_done_again_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(executor, "LACK_PAUSE_S", 0.0)
    found, times = queue.SimpleQueue[object](), iter(range(3))

    def task() -> None:
        if next(times) < 2:
            raise OSError(errno.EMFILE, "Too many open files")
        found.put("done")

    in_order = InOrder(found.put)
    in_order(task)
    assert found.get(timeout=PATIENCE_S) == "done"
    assert caplog.text.count("This host lacks something: Too many open files.") == 1
    in_order.close()


def test_an_error_of_the_thread_that_waits_for_the_store_ends_the_sidecar() -> None:
    """Without that thread it would hold its lease, and do nothing."""
    found = queue.SimpleQueue[Exception]()
    InOrder(found.put)(lambda: int("of our own"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="of our own"):
        Sidecar._take(cast("Sidecar", None), Wake(found.get(timeout=PATIENCE_S)))


def pause(made: Driven) -> float:
    with mock.patch.object(sidecar, "now", return_value=made.at):
        found: Any = Sidecar._pause
        return cast("float", found.fget(SimpleNamespace(_machine=made.machine)))


def test_a_standby_at_rest_wakes_seldom_and_for_what_is_due() -> None:
    """With a command, or a leadership, there is more that the clock brings."""
    made = driven()
    assert pause(made) == RESTING_PAUSE_S
    assert pause(driven(warm=True)) == LONGEST_PAUSE_S
    leader = made.grant()
    made.take(events.Begun(leader, pause=4.0))
    made.take(events.RequestsFound(leader))
    assert pause(made) == LONGEST_PAUSE_S, "it leads"
    made.at = 103.875
    assert pause(made) == 0.125
    made.at = 105.0
    assert pause(made) == 0.0


def test_what_is_to_come_later_needs_no_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    called: queue.SimpleQueue[str] = queue.SimpleQueue()
    in_order = InOrder(lambda _: None)
    monkeypatch.setattr(threading.Thread, "start", _no_thread)
    in_order.later(0.2, lambda: called.put("last"))
    in_order.later(0.1, lambda: called.put("second"))
    in_order(lambda: called.put("first"))
    assert [called.get(timeout=PATIENCE_S) for _ in range(3)] == ["first", "second", "last"]


def test_a_thread_that_is_let_go_does_what_was_handed_over_and_leaves() -> None:
    """A host of 5,000 jobs would keep a thread of each one that has ended."""
    before, called = set(threading.enumerate()), list[str]()
    in_order = InOrder(lambda _: None)
    (thread,) = set(threading.enumerate()) - before
    in_order.later(3600.0, lambda: called.append("later"))
    in_order(lambda: called.append("now"))
    in_order.close()
    in_order(lambda: called.append("too late"))
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert called == ["now"]


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
