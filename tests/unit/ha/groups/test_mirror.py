"""The copy that a move makes: rounds while the job runs, and a last one while it stands still."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from ha.groups.mirror import Mirror
from ha.groups.steps import Handover
from store.errors import Unknown
from tests.unit.ha.groups.moves import FILES, JOB, Leading, Process, content, held, home_of_job, mover
from tests.unit.ha.placement.roots import Roots


def test_a_file_with_other_content_under_its_name_is_copied_again(roots: Roots, source: str) -> None:
    def rewrite() -> None:
        path = home_of_job(roots, source) / "spark/q/offsets/0"
        path.write_bytes(b"O")
        os.utime(path, (1, 1))

    target = roots.others(JOB)[0]
    mover(Process(roots), roots, Leading(roots, rewrite)).move(target)
    assert content(roots, target)["spark/q/offsets/0"] == b"O"


def test_each_round_counts_the_bytes_of_what_has_changed(roots: Roots, source: str) -> None:
    target = roots.others(JOB)[0]
    steps = Handover(roots.group().roots, JOB, source, target)
    steps.prepare()
    leader, _ = held(roots.drivers[source])
    mirror = Mirror(roots.group().roots[source], roots.group().roots[target], JOB)
    home = home_of_job(roots, source)
    assert mirror.round(leader.name) == sum(map(len, FILES.values()))
    assert mirror.round(leader.name) == 0
    (home / "spark/q/offsets/1").write_bytes(b"new")
    os.utime(home / "spark/q/metadata", (1, 1))
    assert mirror.round(leader.name) == 3 + len(FILES["spark/q/metadata"])


class Copied:
    """A copy after one round, and what is changed in it from then on."""

    def __init__(self, roots: Roots, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
        target = roots.others(JOB)[0]
        self._leader, self._lease = held(roots.drivers[source])
        self.home = home_of_job(roots, source)
        self.driver = roots.drivers[target]
        self.tree = self.driver.path / JOB / "moving/tree"
        self.driver.make_root()
        self.driver.make_directory(JOB)
        roots_of = roots.group().roots
        self._mirror = Mirror(roots_of[source], roots_of[target], JOB)
        self.round()
        self.changes: list[str] = []
        self.dies = False
        for name in ("write", "make_directory", "delete"):
            monkeypatch.setattr(self.driver, name, partial(self._change, name, getattr(self.driver, name)))

    def _change(self, name: str, do: Callable[..., None], path: str, *more: Any, **options: Any) -> None:
        if self.dies and "/tree/record" in path:
            raise Unknown("It dies.")
        self.changes.append(f"{name} {path.removeprefix(f'{JOB}/moving/')}")
        do(path, *more, **options)

    def round(self) -> None:
        self._mirror.round(self._leader.name)

    def last(self) -> str:
        self._mirror.last(self._leader.name, self._lease)
        return f"make_directory tree/record/{self._lease.name}"


def test_while_a_job_stands_still_only_changes_move(roots: Roots, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = Copied(roots, source, monkeypatch)
    (copied.home / "status=RUNNING").rename(copied.home / "status=ENDED")
    lease = copied.last()
    assert [each for each in copied.changes if " tree/" in each] == [
        "make_directory tree/status=ENDED",
        "delete tree/record",
        "delete tree/status=RUNNING",
        "make_directory tree/record",
        lease,
    ]
    assert "write listing.json" not in copied.changes, "it would take half a second on HDFS"


def test_a_round_makes_folders_of_what_moves(roots: Roots, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = Copied(roots, source, monkeypatch)
    (copied.home / "spark/.x.tmp/below").mkdir(parents=True)
    copied.round()
    assert (copied.tree / "spark/.x.tmp/below").is_dir()


def test_a_last_round_that_died_leaves_no_newer(roots: Roots, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = Copied(roots, source, monkeypatch)
    name = "spark/q/state/0/0/1.zip"
    for number, end in enumerate((copied.last, copied.round, copied.last), 1):
        (copied.home / name).write_bytes(b"%05d" % number)
        os.utime(copied.home / name, (number, number))
        copied.dies = number == 1
        with pytest.raises(Unknown) if copied.dies else nullcontext():
            end()
        assert (copied.tree / name).read_bytes() == b"%05d" % number
