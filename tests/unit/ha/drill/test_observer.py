"""Tests of the observer: it reads histories while they are being written."""

import io
from pathlib import Path

import pytest

from ha.drill.observer import HISTORY, Observer
from ha.history.events import Completed, Ended, Event, Fault, LookedUp, encode

LINES = encode(Fault(1.0, "orders", "first")) + encode(Fault(2.0, "orders", "second"))


class _Growing(io.RawIOBase):
    """A file that is half a line long when it is read, and grows whenever its end has been reached."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = [part for each in parts for part in (each, b"")]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, _whence: int = 0) -> int:
        return offset

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._parts.pop(0) if self._parts else b""
        buffer[: len(part)] = part
        return len(part)


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    (tmp_path / HISTORY).mkdir()
    return Observer(tmp_path)


def test_a_line_that_is_being_written_while_it_is_read_waits_for_the_next_look(
    observer: Observer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / HISTORY / "a.jsonl"
    path.write_bytes(LINES)
    with monkeypatch.context() as patch:
        growing = io.BufferedReader(_Growing([LINES[:60], LINES[60:]]))
        patch.setattr(Path, "open", lambda *_args, **_kwargs: growing)
        observer.look()
    observer.look()
    assert [event.at for event in observer.events] == [1.0, 2.0]


def test_what_was_read_is_not_read_again(observer: Observer, tmp_path: Path) -> None:
    path = tmp_path / HISTORY / "a.jsonl"
    path.write_bytes(LINES[:10])
    observer.look()
    assert observer.events == []
    path.write_bytes(LINES)
    observer.look()
    with path.open("ab") as file:
        file.write(encode(Ended(3.0, "", "a")))
    observer.look()
    assert [event.at for event in observer.events] == [1.0, 2.0, 3.0]


def test_the_newest_answer_of_each_reader(observer: Observer, tmp_path: Path) -> None:
    def told(reader: str, at: float, outcome: str = "leader") -> Event:
        return LookedUp(at, "orders", at + 0.1, 2.0, reader, outcome, epoch=int(at))

    events = [told("r1", 1.0), told("r2", 2.0), told("r1", 3.0), told("r2", 4.0, "unreachable"), told("r3", 0.5)]
    (tmp_path / HISTORY / "r.jsonl").write_bytes(b"".join(map(encode, events)))
    observer.look()
    assert sorted((each.reader, each.epoch) for each in observer.answers(1.0)) == [("r1", 3), ("r2", 2)]
    assert observer.answers(3.5) == []


@pytest.mark.parametrize(
    ("query", "batch", "completed"),
    [("counts", 6, True), ("counts", 7, True), ("counts", 8, False), ("words", 7, False)],
)
def test_a_batch_is_complete_by_its_number_not_by_the_time_of_an_acknowledgement(
    observer: Observer, query: str, batch: int, completed: bool
) -> None:
    observer.events = [Completed(1.0, "orders", 2.0, "a", 1, "counts", 7)]
    assert observer.has_completed(query, batch) is completed
