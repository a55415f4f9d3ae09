"""An output of a job that this process leads, on a local disk; a batch of it is one file."""

from collections.abc import Sequence
from pathlib import Path

from ha.leadership.fenced_rename import FencedRename, LeaderFiles
from ha.outputs.batch import Batch
from ha.outputs.folder import OutputFolder
from ha.outputs.journal import Journal
from ha.outputs.partition_commit import PartitionCommit
from ha.outputs.record import Record
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory, newest
from store.bounded import BoundedFiles
from store.local import LocalFiles
from tests.unit.ha.led import Led


class Place:
    def __init__(self, root: Path) -> None:
        led = Led(root / "jobs")
        led.claim("orders", "a:1")
        directory = newest([each.name for each in led.files.list("orders")])
        assert directory is not None
        self.root, self.home = root, root / "jobs" / "orders" / directory.name
        self.opened: list[BoundedFiles] = []
        self.leader = LeaderFiles("orders", directory.epoch, directory.session_id, self.home.as_uri(), self._open)

    def _open(self, uri: str) -> BoundedFiles:
        root = Path(uri.removeprefix("file://"))
        self.opened.append(BoundedFiles(lambda: LocalFiles(root, durable=False), uri=uri))
        return self.opened[-1]

    def journal(
        self,
        name: str = "output",
        *,
        flat: bool = False,
        files: tuple[str, Sequence[str]] = ("", ()),
        commit: PartitionCommit | None = None,
        out: str = "out",
    ) -> Journal:
        return Journal(self.leader, (self.root / out).as_uri(), name, commit, flat=flat, files=files)

    def output_folder(self, name: str = "output") -> OutputFolder:
        return OutputFolder.of(FencedRename(self.leader, (self.root / "out").as_uri()), name)

    def directory(self) -> FencedDirectory:
        leader = LeaderDirectory(self.leader.epoch, self.leader.session_id)
        return FencedDirectory(self._open((self.root / "jobs").as_uri()), "orders", leader, 10.0)

    def publish(
        self,
        journal: Journal,
        batch: Batch,
        rows: str = "rows",
        late: str = "",
        *,
        days: Sequence[str] = ("",),
        file: str = "part-0",
        least: int = 0,
    ) -> bool:
        """Write an attempt, with a file that a task has added which does not count, and publish it."""
        self.attempts = getattr(self, "attempts", 0) + 1
        for day in days:
            folder = Path(journal.staged.removeprefix("file://"), f"{self.attempts}", "rows", day)
            folder.mkdir(parents=True)
            (folder / file).write_text(rows)
            if late:
                (folder / late).write_text("late")
        record = Record({day: {file: len(rows)} for day in days})
        return journal.publish(f"{self.attempts}", batch, record, least)

    @property
    def found(self) -> dict[str, str]:
        return {
            f"{path.relative_to(self.root / 'out')}": path.read_text() for path in (self.root / "out").rglob("part*")
        }

    def names(self, word: str) -> list[str]:
        return sorted(each.name for each in self.home.glob(f"out/output-*/{word}*"))
