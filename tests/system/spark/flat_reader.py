"""A plain reader beside a flat output whose files are merged: a :class:`Run` with a merger that also dies anywhere.

The merger is another process than the driver. It may know a leader directory that was claimed since.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

from ha.leadership.fenced_rename import FencedHome, FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.merging import CLOCK, Merging, Rule
from ha.outputs.reading import JournalBatch, JournalReader
from ha.spark import Output
from leader.errors import Fenced
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import StoreError
from store.files import Entry
from tests.system.spark.faulty_store import ROOT, FaultyStore
from tests.system.spark.plain_reader import JOB, OUT, Home, Reader, Run, SimulatedBatch


@dataclass
class FlatReader(Reader):
    """Sees the rows of all files, each a line; ``expected`` says of a try how many it has."""

    expected: dict[int, int] = field(default_factory=dict)
    merged: int = 0

    def poll(self) -> None:
        assert self.store is not None
        self.polls += 1
        seen = {
            path: content
            for path, content in self.store.tree.nodes.items()
            if content is not None and path.startswith(f"{OUT}/") and not layout.hidden(path.rpartition("/")[2])
        }
        if seen == self._last:
            return
        self._last = seen
        rows: dict[str, str] = {}
        tries: dict[int, dict[int, int]] = {}
        for path, content in seen.items():
            if content and not content.endswith(b"\n"):
                self.wrong.append(f"{path} ends within a row")
            for line in content.decode().splitlines():
                if line in rows:
                    self.wrong.append(f"{path} and {rows[line]} have the same row")
                rows[line] = path
                batch, number, _ = self.tries[line]
                counts = tries.setdefault(batch, {})
                counts[number] = counts.get(number, 0) + 1
        for batch, counts in tries.items():
            if len(counts) > 1:
                self.wrong.append(f"batch {batch} has rows of tries {sorted(counts)}")
        for batch in self.complete:
            (number, count), *_ = [*tries.get(batch, {}).items(), (-1, 0)]
            if self.expected.get(number) != count:
                self.wrong.append(f"batch {batch} is complete, and {count} of its rows are there")

    def check_complete(self) -> None:
        self._last = {}
        self.poll()


class Below:
    def __init__(self, store: FaultyStore, folder: str) -> None:
        self.store, self.folder, self.uri = store, folder, folder

    def list(self, path: str) -> list[Entry]:
        return self.store.tree.list(f"{self.folder}/{path}".rstrip("/"))

    def close(self) -> None:
        pass


class MergedRun(Run):
    def __init__(self, seed: int, **arguments: Any) -> None:
        super().__init__(seed, **{"batches": 12, **arguments})
        self.reader: FlatReader = FlatReader()
        self.reader.store = self.store
        self.store.changed = self.reader.poll
        self.homes: list[Home] = []
        self.merges = 0
        self.in_full = 0
        """Merges in a folder that takes no more entries."""
        self.beyond = 0
        """Batches that are planned for although they are not complete; a mistake."""

    def _lead(self, before: Home | None) -> Home:
        home = super()._lead(before)
        self.homes.append(home)
        return home

    def _open(self, home: Home) -> Any:
        run = self
        by = ["day"] if self.partitioned else []
        uri = f"file://{ROOT}/{OUT}"
        if self.reader.complete and self.choose.random() < 0.3:  # before the new driver has completed what was decided
            self.merge(home, max(self.reader.complete))
        output = Output(cast("Leadership", home), uri, source="json", partition_by=by, mergeable=True)

        class Both:
            def write(self, frame: Any, batch: int) -> None:
                if run.choose.random() < 0.6:
                    run.merge(run.choose.choice(run.homes[-2:]), batch - 1)
                output.write(frame, batch)

            def close(self) -> None:
                output.close()

        return Both()

    def _batch(self, batch: int) -> SimulatedBatch:
        self.tries += 1
        days = self.choose.sample(range(3), self.choose.randint(1, 3)) if self.partitioned else [0]
        rows: dict[str, dict[str, bytes]] = {}
        for day in days:
            lines = [
                f"batch {batch} try {self.tries} day {day} row {each}" for each in range(self.choose.randint(0, 2))
            ]
            partition = f"day={day}" if self.partitioned else ""
            rows[partition] = {"part-0-u.json": "".join(f"{each}\n" for each in lines).encode()}
            for each in lines:
                self.reader.tries[each] = (batch, self.tries, 0)
            self.reader.expected[self.tries] = self.reader.expected.get(self.tries, 0) + len(lines)
        if not self.reader.expected[self.tries]:
            return self._batch(batch)
        return SimulatedBatch(self.store, rows, self._planned(batch))

    def merging(self, home: Home) -> Merging:
        renames = FencedRename(cast("FencedHome", home), f"file://{ROOT}/{OUT}")
        (name,) = [each.name for each in self.store.tree.list(f"{JOB}/{self.homes[-1].name}/out")]
        return Merging(OutputFolder(renames, f"{renames.inside}/out/{name}", "output"), self.store.concat)

    def merge(self, home: Home, newest: int) -> None:
        rule = Rule(self.choose.randint(2, 4), 1 << 20, 0.0, rest=self.choose.random() < 0.5)
        with suppress(StoreError, Fenced), closing(self.merging(home)._renames):
            merging = self.merging(home)
            merging.sweep()
            for each in merging.pending():
                self.merges += merging.finish(each)
            now_ms, token = merging.now_ms(), f"{self.choose.getrandbits(32):08x}"
            for each in merging.planned(newest + self.beyond, now_ms, rule, token):
                merging.begin(each)
                with self._full(each.partition):
                    self.merges += merging.finish(each)

    @contextmanager
    def _full(self, partition: str) -> Iterator[None]:
        """Let the folder of a merge be full meanwhile, or not; it has had a chance to make room."""
        folder = f"{OUT}/{partition}".rstrip("/")
        if f"{folder}/{layout.ROOM}" in self.store.tree.nodes and self.choose.random() < 0.5:
            self.in_full += 1
            self.store.tree.full.add(folder)
        try:
            yield
        finally:
            self.store.tree.full.clear()

    def verified(self) -> list[JournalBatch]:
        home = self.homes[-1]
        leader = LeaderDirectory(home.epoch, home.session_id)
        with (
            BoundedFiles(lambda: self.store, uri="sim", workers=1) as files,
            BoundedFiles(lambda: cast("Any", Below(self.store, OUT)), uri="sim", workers=1) as target,
        ):
            directory = FencedDirectory(files, "orders", leader, 5.0, f"{JOB}/{home.name}")
            reader = JournalReader(lambda: directory)
            (output,) = reader.outputs()
            assert output.flat
            return [row for ids in reader.ids(output, range(1 << 40)) for row in reader.verified(output, ids, target)]

    def clean(self) -> list[str]:
        """What is left when nothing goes wrong any more and somebody merges once more: nothing."""
        self.store.alive, self.store.rate = True, 0.0
        self.store.catch_up()
        self.merge(self.homes[-1], -1)
        (name,) = [each.name for each in self.store.tree.list(f"{JOB}/{self.homes[-1].name}/out")]
        home = f"{JOB}/{self.homes[-1].name}/out/{name}"
        left = [each.name for each in self.store.tree.list(f"{home}/{layout.MERGING}")] if self.merges else []
        empty = [
            path
            for path, content in self.store.tree.nodes.items()
            if path.startswith(f"{OUT}/") and content == b"" and not path.endswith(f"/{layout.ROOM}")
        ]
        return [each for each in left if each != CLOCK] + empty


def runs(seeds: int, **arguments: Any) -> list[MergedRun]:
    return [cast("MergedRun", MergedRun(seed, **arguments).go()) for seed in range(seeds)]
