"""A crew does what it is given although the host has no more threads."""

import threading

import pytest

from ha.hosts.crew import Crew
from tests.patience import PATIENCE_S


def _none(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_it_needs_no_thread_that_is_not_there_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    crew, go_on, done = Crew("test", 1), threading.Event(), []
    monkeypatch.setattr(threading.Thread, "start", _none)
    first = crew(lambda: go_on.wait(PATIENCE_S))
    second = crew(lambda: done.append(2))
    third = crew(lambda: done.append(3))
    assert [first.is_set(), second.is_set()] == [False, False]
    go_on.set()
    assert third.wait(PATIENCE_S)
    assert (first.is_set(), second.is_set(), done) == (True, True, [2, 3])


def test_it_takes_more_if_all_are_busy_and_there_are_some() -> None:
    crew, go_on = Crew("test", 1), threading.Event()
    busy = [crew(lambda: go_on.wait(PATIENCE_S)) for _ in range(3)]
    assert crew(lambda: None).wait(PATIENCE_S)
    go_on.set()
    assert all(each.wait(PATIENCE_S) for each in busy)


def test_what_fails_is_told_and_hurts_no_other(caplog: pytest.LogCaptureFixture) -> None:
    crew = Crew("test", 1)
    assert crew(lambda: 1 / 0).wait(PATIENCE_S)
    assert crew(lambda: None).wait(PATIENCE_S)
    assert "ZeroDivisionError" in caplog.text


def test_its_threads_leave_once_all_is_done_and_it_can_be_asked_again() -> None:
    crew, go_on, done = Crew("leaving", 2), threading.Event(), []
    ours = [each for each in threading.enumerate() if each.name == "leaving"]
    waits = [crew(lambda: go_on.wait(PATIENCE_S)) for _ in range(2)]
    last = crew(lambda: done.append(1))
    ours += [each for each in threading.enumerate() if each.name == "leaving" and each not in ours]
    crew.close()
    go_on.set()
    for each in ours:
        each.join(PATIENCE_S)
    assert ([each.is_set() for each in [*waits, last]], done) == ([True] * 3, [1])
    assert not any(each.is_alive() for each in ours)
    assert crew(lambda: done.append(2)).wait(PATIENCE_S)
    assert done == [1, 2]
    crew.close()
