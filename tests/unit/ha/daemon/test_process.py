"""Eligibility: a process that may not write is not eligible until it may; a silent store says nothing about it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ha.daemon.process import AGAIN_S, Eligibility
from leader.layout import tree
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import AlreadyExists, HasSnapshots, Invalid, NotWritable, PermissionDenied, StoreError
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until


class Refusing(LocalFiles):
    error: StoreError | None = None
    asked = 0

    def rename(self, source: str, destination: str) -> None:
        type(self).asked += 1
        if self.error is not None:
            raise self.error
        super().rename(source, destination)


class Later:
    """The runtime's thread, as far as it is needed here: what is to be called later is kept."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def post(self, callback: Callable[[], object]) -> None:
        callback()

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        self.waiting.append((when, callback))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BoundedFiles]:
    monkeypatch.setattr(Refusing, "asked", 0)
    monkeypatch.setattr(Refusing, "error", None)
    tree.create(LocalFiles(tmp_path, durable=False), "orders")
    with BoundedFiles(lambda: Refusing(tmp_path, durable=False), uri="file:///jobs") as opened:
        yield opened


def test_it_is_not_eligible_until_it_may_write(files: BoundedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later()
    eligibility = Eligibility(later, files, Timing())  # type: ignore[arg-type]
    monkeypatch.setattr(Refusing, "error", PermissionDenied("user=bob, access=WRITE"))
    before = now()
    eligibility.check("orders")
    wait_until(lambda: later.waiting)
    sentence = eligibility.obstacle("orders")
    assert sentence is not None
    assert "may not write in file:///jobs/orders" in sentence
    ((when, again),) = later.waiting
    assert before + AGAIN_S <= when <= now() + AGAIN_S
    monkeypatch.setattr(Refusing, "error", NotWritable("safe mode"))
    again()
    wait_until(lambda: len(later.waiting) == 2)
    assert eligibility.obstacle("orders") == sentence, "a store that takes no writes does not say that it may"
    monkeypatch.setattr(Refusing, "error", None)
    later.waiting[-1][1]()
    wait_until(lambda: eligibility.obstacle("orders") is None)
    wait_until(lambda: len(later.waiting) == 3)
    assert later.waiting[-1][0] > now() + AGAIN_S, "it is asked again, but rarely"


def test_what_bars_every_takeover_is_told_also_if_it_comes_later(
    files: BoundedFiles, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    later = Later()
    eligibility = Eligibility(later, files, Timing())  # type: ignore[arg-type]
    eligibility.check("orders")
    wait_until(lambda: later.waiting)
    assert eligibility.obstacle("orders") is None
    what = "The directory /j/a cannot be deleted since /j/a/b is snapshottable and already has snapshots"
    monkeypatch.setattr(Refusing, "error", HasSnapshots(what))
    later.waiting[-1][1]()
    wait_until(lambda: len(later.waiting) == 2)
    assert "The job cannot be taken over: " in caplog.text
    assert "hdfs dfs -deleteSnapshot /j/a/b NAME" in (eligibility.obstacle("orders") or "")


def test_any_refusal_of_what_a_takeover_renames_is_told(files: BoundedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the record's directory has the sticky bit, and another user has made the lease."""

    def rename(_: Refusing, source: str, __: str) -> None:
        raise Invalid(f"no move of {source}") if "/record/lease" in source else AlreadyExists(source)

    monkeypatch.setattr(Refusing, "rename", rename)
    later = Later()
    eligibility = Eligibility(later, files, Timing())  # type: ignore[arg-type]
    eligibility.check("orders")
    wait_until(lambda: later.waiting)
    assert "The job cannot be taken over: no move of orders/00" in (eligibility.obstacle("orders") or "")


@pytest.mark.parametrize("error", [None, NotWritable("safe mode")])
def test_nothing_bars_it(files: BoundedFiles, monkeypatch: pytest.MonkeyPatch, error: StoreError | None) -> None:
    later = Later()
    eligibility = Eligibility(later, files, Timing())  # type: ignore[arg-type]
    monkeypatch.setattr(Refusing, "error", error)
    eligibility.check("orders")
    wait_until(lambda: Refusing.asked)
    files.call("drain", lambda driver: driver.list(""), PATIENCE_S)
    assert eligibility.obstacle("orders") is None
    wait_until(lambda: later.waiting)
    assert later.waiting[0][0] > now() + AGAIN_S


def test_a_refusal_lasts_although_the_process_may_write(files: BoundedFiles) -> None:
    later = Later()
    eligibility = Eligibility(later, files, Timing())  # type: ignore[arg-type]
    eligibility.refuse("orders", "Another process has this name.")
    eligibility.check("orders")
    wait_until(lambda: later.waiting)
    assert eligibility.obstacle("orders") == "Another process has this name."


def test_an_installation_that_was_replaced_is_said_once(
    files: BoundedFiles, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    eligibility = Eligibility(Later(), files, Timing())  # type: ignore[arg-type]
    assert eligibility.obstacle("orders") is None
    monkeypatch.setattr("ha.daemon.process.replaced", lambda: "Start it anew.")
    assert [eligibility.obstacle("orders") for _ in range(3)] == ["Start it anew."] * 3
    assert caplog.messages == ["orders: Start it anew."]
