"""Exceptions of a job: the newest are kept, in order, behind the fence, and survive a change of leader."""

import base64
import hashlib
import socket
import zlib

import pytest

from leader.errors import Fenced
from leader.job.admin import JobAdmin
from leader.job.exceptions import DUMP_BYTES, MESSAGE_BYTES, TRACE_BYTES, UNSAID, Exceptions, cut
from leader.job.fenced_directory import MAX_BYTES, FencedDirectory
from store.bounded import BoundedFiles
from store.counting import REQUESTS, CountedFiles
from tests.unit.leader.faulty import Place
from tests.unit.leader.owned import CALL, FIRST, HOME, Owned


def test_a_failure_says_what_where_and_when(owned: Owned) -> None:
    exceptions = Exceptions(owned.own)
    assert exceptions.list() == []
    exceptions.add("ValueError", "no such column", query="daily", trace="line 1\nline 2", dump="main")
    (found,) = exceptions.list()
    assert (found.kind, found.message, found.query) == ("ValueError", "no such column", "daily")
    assert (found.trace, found.dump) == ("line 1\nline 2", "main")
    assert (found.epoch, found.host) == (1, socket.gethostname())
    (entry,) = owned.direct.list(f"{HOME}/exceptions")
    assert found.at_ms == entry.modified_ms > 0


def test_a_failure_without_a_text_says_so(owned: Owned) -> None:
    exceptions = Exceptions(owned.own)
    exceptions.add("exit-3", "")
    assert [each.message for each in exceptions.list()] == [UNSAID]


def test_the_oldest_go(owned: Owned) -> None:
    exceptions = Exceptions(owned.own, retained=2)
    for number in range(12):  # 10 comes after 9, though not as text
        exceptions.add("E", str(number))
        newest = [str(each) for each in range(max(0, number - 1), number + 1)]
        assert [each.message for each in exceptions.list()] == newest
        assert len(owned.names("exceptions")) == min(number + 1, 2)


def test_a_reader_of_fewer_sees_the_newest(owned: Owned) -> None:
    for number in range(4):
        Exceptions(owned.own).add("E", str(number))
    assert [each.message for each in Exceptions(owned.own, retained=3).list()] == ["1", "2", "3"]


def test_they_survive_a_change_of_leader_and_the_former_one_adds_none(owned: Owned) -> None:
    former = Exceptions(owned.own)
    former.add("E", "first")
    later = Exceptions(owned.claim())
    with pytest.raises(Fenced):
        former.add("E", "late")
    with pytest.raises(Fenced):
        former.list()
    later.add("E", "second")
    found = JobAdmin(owned.files, None, CALL).exceptions("orders")
    assert [(each.epoch, each.message) for each in found] == [(1, "first"), (2, "second")]


def test_two_writers_with_one_number_keep_both(owned: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned.own, "list", lambda *_: [])
    for message in ("a", "b"):
        Exceptions(owned.own).add("E", message)
    monkeypatch.undo()
    assert sorted(each.message for each in Exceptions(owned.own).list()) == ["a", "b"]


DEEP = b'{"x":' + b"[" * 100_000


def test_what_is_damaged_newer_or_foreign_is_left_out(owned: Owned) -> None:
    exceptions = Exceptions(owned.own)
    exceptions.add("E", "readable")
    owned.direct.write(f"{HOME}/exceptions/2-00000000", b"\xff{")
    owned.direct.write(f"{HOME}/exceptions/3-00000000", b'{"format":999,"kind":"E","message":"newer"}')
    owned.direct.write(f"{HOME}/exceptions/5-00000000", DEEP)
    owned.direct.write(f"{HOME}/exceptions/6-00000000", b" " * (MAX_BYTES + 1))
    owned.direct.make_directory(
        f"{HOME}/exceptions/7-00000000={base64.urlsafe_b64encode(zlib.compress(DEEP)).decode().rstrip('=')}"
    )
    owned.direct.write(f"{HOME}/exceptions/notes.txt", b"")
    for name in ("9-00000000", "4-00000000=A", "4-00000000=eJyrrgUAAXUA-Q"):
        owned.direct.make_directory(f"{HOME}/exceptions/{name}")
    owned.direct.write(f"{HOME}/exceptions/{next(iter(owned.names('exceptions'))).replace('1-', '9-')}", b"a file")
    assert [each.message for each in exceptions.list()] == ["readable"]
    exceptions.add("E", "next")
    assert [name.partition("-")[0] for name in owned.names("exceptions")][:6] == ["1", "2", "3", "4", "4", "5"]


@pytest.mark.usefixtures("hurt")
def test_a_short_one_costs_a_list_and_a_folder(place: Place) -> None:
    """The lease is given back soon after: a file would take half a second in HDFS."""
    asked: list[str] = []
    counted = CountedFiles(place.direct, REQUESTS["hdfs"], lambda operation, _: asked.append(operation))
    with BoundedFiles(lambda: counted) as files:
        exceptions = Exceptions(FencedDirectory(files, "orders", FIRST, CALL))
        exceptions.add("signal-9", "The command has ended with 137: see its output.")
        assert asked == ["list", "list", "make_directory", "make_directory"], "the first one of a job"
        asked.clear()
        exceptions.add("signal-9", "The command has ended with 137: see its output.")
        assert asked == ["list", "make_directory"]
        asked.clear()
        assert [each.kind for each in exceptions.list()] == ["signal-9", "signal-9"]
        assert asked == ["list"]


def test_whatever_its_length_it_is_read(hurt: Owned) -> None:
    texts = [hashlib.shake_256(b"x").hexdigest(300)[:length] for length in range(100, 300, 7)]
    exceptions = Exceptions(hurt.own, len(texts))
    for text in texts:
        exceptions.add("E", text)
    assert [each.message for each in exceptions.list()] == texts
    entries = sorted(hurt.own.list("exceptions"), key=lambda each: int(each.name.partition("-")[0]))
    kinds = [each.is_directory for each in entries]
    assert kinds == sorted(kinds, reverse=True), "the short ones are folders"
    assert set(kinds) == {True, False}


def test_long_texts_lose_their_middle(owned: Owned) -> None:
    exceptions = Exceptions(owned.own)
    exceptions.add("E", "m" * 9_999, trace="first" + "ä" * 9_999 + "last", dump="d" * 999_999)
    (found,) = exceptions.list()
    assert found.trace.startswith("firstä")
    assert found.trace.endswith("älast")
    for text, most in ((found.message, MESSAGE_BYTES), (found.trace, TRACE_BYTES), (found.dump, DUMP_BYTES)):
        assert most - 10 < len(text.encode()) <= most


def test_a_text_of_just_that_length_is_whole() -> None:
    assert cut("x" * 100, 100) == "x" * 100
    assert cut("x" * 101, 100) != "x" * 101
    assert cut("a\ud800b", 100) == "a?b"
