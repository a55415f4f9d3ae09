"""A job whose query publishes and commits batches, and what its leader asks of the stores."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ha.checkpoints import contents
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch, plan_of
from ha.outputs.lines import Line
from ha.outputs.record import FILES, Record
from ha.spark.stored.ledger import Ledger
from ha.spark.stored.ledger_watch import PAUSE_S, LedgerWatch
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from leader.layout.packed_names import read, written
from store.bounded import BoundedFiles
from store.files import Entry
from store.local import LocalFiles
from tests.unit.ha.outputs.place import Place

IDENTITY = "00000000-0000-0000-0000-00000000000a"


class Job(Place):
    """A job whose query publishes and commits batches; its leader's lists are counted."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        files = BoundedFiles(lambda: LocalFiles(root / "jobs", durable=False), uri=(root / "jobs").as_uri())
        self.opened.append(files)
        self.lists: list[str] = []
        self.at = 0.0
        self.next = 0
        self.kept: list[tuple[str, str, str]] = []
        directory = FencedDirectory(files, "orders", LeaderDirectory.parse(self.home.name), 5.0)  # type: ignore[arg-type]
        self.books = Ledger(self._counting(directory))
        self.leadership = SimpleNamespace(
            own=self._counting(directory), job="orders", keep_failure=self._keep,
            directory=self.home.as_uri(), open_files=self._target,
        )  # fmt: skip
        self.report = root / "report"
        self.take_over()
        self.line = Line(IDENTITY, "words")
        (self.home / "spark/words/commits").mkdir(parents=True)
        (self.home / "spark/words/offsets").mkdir()
        (self.home / "spark/words/metadata").write_text(json.dumps({"id": IDENTITY}))
        self.out = self.journal("clicks")

    def take_over(self) -> None:
        """Have a leader that knows nothing yet."""
        self.watch = LedgerWatch(cast("Leadership", self.leadership), lambda: self.report, lambda: self.at)

    def _counting(self, directory: FencedDirectory) -> Any:
        def listed(folder: str = "") -> list[Entry]:
            self.lists.append(folder)
            return directory.list(folder)

        return SimpleNamespace(list=listed, read=directory.read)

    def _target(self, uri: str) -> BoundedFiles:
        root = Path(uri.removeprefix("file://"))
        return BoundedFiles(
            lambda: LocalFiles(root, durable=False), uri=uri, on_call=lambda *_: self.lists.append(root.name)
        )

    def _keep(self, kind: str, message: str, *, query: str) -> None:
        self.kept.append((kind, message, query))

    def do(self, number: int, *, every: bool = True, publish: bool = True) -> None:
        self.next = number + 1
        said = {"batchWatermarkMs": 0, "batchTimestampMs": number, "conf": {}}
        offsets = f'v1\n{json.dumps(said)}\n{{"logOffset":{number}}}'.encode()
        (self.home / f"spark/words/offsets/{number}").write_bytes(offsets)
        if publish:
            plan = plan_of(contents.offsets(offsets), offsets)
            self.publish(self.out, Batch(number, self.line, plan, every=every))
        (self.home / f"spark/words/commits/{number}").write_text("v1\n{}")

    def whole(self) -> list[str]:
        (home,) = [each.name for each in (self.home / "out").iterdir()]
        return [each.why for each in self.books.whole(home, {}, {}, ())]

    def folder(self) -> Path:
        (found,) = (self.home / "out").iterdir()
        return found

    def forge(self, number: int, change: Callable[[Record], Record | None]) -> None:
        """Give a complete batch another record, or none; nobody else changes it after a later batch's."""
        folder = self.folder() / f"done/0/{number}"
        names = [each.name for each in folder.iterdir()]
        old = read(FILES, Record, names)
        assert old is not None
        for each in names:
            (folder / each).rmdir()
        for each in [] if (new := change(old)) is None else written(FILES, new):
            (folder / each).mkdir()
        newest = max(folder.parent.iterdir(), key=lambda each: int(each.name))
        while newest != folder and _ms(folder) <= _ms(newest):  # one tick of the store's clock
            (folder / "tick").mkdir()
            (folder / "tick").rmdir()

    def rounds(self, lists: int) -> None:
        """Have the leader make so many lists, with a new batch before each."""
        for _ in range(lists):
            self.do(self.next)
            self.watch.committed("words", self.next - 1)
            self.at += PAUSE_S

    def told(self) -> list[str]:
        return [message for _, message, _ in self.kept]


def _ms(folder: Path) -> int:
    return folder.stat().st_mtime_ns // 1_000_000
