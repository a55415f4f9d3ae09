"""Progress without a terminal: a line every ten seconds, and none for what is quick or quiet."""

import contextlib
import io
import threading
from collections.abc import Callable
from contextlib import closing, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from ha.cli import progress
from tests.unit.ha.waiting import wait_until


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[[str], bool]:
    """Return whether a text has been written to standard error; ten seconds are ten milliseconds here."""
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.01)
    said: list[str] = []

    def written(text: str) -> bool:
        said.append(capfd.readouterr().err)
        return text in "".join(said)

    return written


def test_a_line_says_how_far_it_is(lines: Callable[[str], bool]) -> None:
    with progress.progress(False, "reading daily") as told:
        wait_until(lambda: lines("ha: reading daily (0 s)\n"))
        assert told is not None
        told(1200, 3000)
        wait_until(lambda: lines("ha: reading daily: 1,200 of 3,000 (0 s)\n"))
    with progress.copying(False) as copied:
        assert copied is not None
        copied(SimpleNamespace(files=7, files_done=3, bytes=9000, bytes_done=4000))
        wait_until(lambda: lines("ha: 3/7 files, bytes: 4,000 of 9,000 (0 s)\n"))


def test_a_line_comes_while_others_are_kept_off_standard_error(lines: Callable[[str], bool]) -> None:
    def aside() -> Any:
        return contextlib.redirect_stderr(None)

    with progress.status(False, "looking", aside) as say:
        say("rewriting\x1b[31m the state")
        wait_until(lambda: lines("the state (0 s)\n"))
    assert not lines("\x1b")


def test_a_wait_for_somebody_else_is_said_as_well(lines: Callable[[str], bool]) -> None:
    with progress.waiting("orders: waits for the answer"):
        wait_until(lambda: lines("ha: orders: waits for the answer (0 s)\n"))


def test_what_is_quiet_or_quick_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.progress(True, "reading") as told, progress.copying(True) as copied:
        assert (told, copied) == (None, None)
    with progress.progress(False, "reading") as quick:
        assert quick is not None
        quick(1, 2)
    with progress.status(True, "looking", nullcontext) as say:
        say("rewriting")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("terminal", [False, True])
def test_a_host_without_a_free_thread_shows_nothing_and_the_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    done = []
    with closing(Screen()) as screen, monkeypatch.context() as shown:
        if terminal:
            shown.setattr("sys.stderr", screen)
            shown.setattr("os.fdopen", lambda *_, **__: nullcontext(screen))
            shown.setenv("TERM", "xterm")
        with progress.progress(False, "reading") as told:
            assert told is not None
            told(1, 2)
            done.append("progress")
        with progress.status(False, "looking", nullcontext) as say:
            say("rewriting")
            done.append("status")
        with progress.waiting("an answer"):
            done.append("waiting")
    assert done == ["progress", "status", "waiting"]
