"""Books: a simulated job at its end, and the ways to spoil it: what does the ledger tell?

python -m tests.system.spark.books --gaps 1000 --batches 100000
"""

import json
import random
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import click
import msgspec

from ha.leadership import fenced_rename
from ha.outputs import layout
from ha.outputs.lines import LINE
from ha.outputs.record import FILES, Record
from leader.job.fenced_directory import FencedDirectory
from leader.layout.packed_names import read, written
from store.bounded import BoundedFiles
from tests.system.spark.plain_reader import JOB, OUT, QUERY, Directory, OneByOne, Run, Target, Watched


class Books:
    """What is told of a job at its end, and the ways to spoil it."""

    def __init__(self, seed: int) -> None:
        self.run = Run(seed, rate=0.05).go()
        self.choose = random.Random(seed)  # noqa: S311  # a simulation
        self.tree = self.run.store.tree
        self.leader = f"{JOB}/{self.run.home.name}"
        (self.home,) = [
            each for each in self.tree.below(f"{self.leader}/out") if each.count("/") == self.leader.count("/") + 2
        ]
        self.batch = self.choose.randrange(self.run.batches - 1)  # a later one shows whose record was changed
        self.committed = self.run.batches - 1
        self.done = f"{self.home}/{layout.done(self.batch)}"

    def told(self) -> list[str]:
        """Return what `ha output verify` would tell."""
        found = [gap.why for gap in self.run.gaps()]
        directory = Directory(self.run.store, self.leader)
        reader = OneByOne(lambda: cast("FencedDirectory", directory))
        (output,) = reader.outputs()
        ids = [each for ids in reader.ids(output, range(1 << 62)) for each in ids]
        rows = reader.verified(output, ids, cast("BoundedFiles", Target(self.tree)))
        return found + [path for row in rows for path in (*row.missing, *row.surplus)]

    def told_by_leader(self) -> list[str]:
        """Return what the next leader tells when it takes over."""
        return Watched(self.run.store, self.leader).committed(self.committed)

    def drop_batch(self) -> None:
        """A batch was committed by Spark, and never published."""
        self.tree.delete(self.done, recursive=True)
        for each in [each for each in self.tree.below(OUT) if each.endswith(f"/batch={self.batch}")]:
            self.tree.delete(each, recursive=True)

    def drop_marker(self) -> None:
        self.tree.delete(self.done, recursive=True)

    def drop_record(self) -> None:
        for each in self.tree.below(self.done):
            if "/files=" in each:
                self.tree.delete(each, recursive=True)

    def drop_file(self) -> None:
        files = [
            path for path, content in self.tree.nodes.items() if content is not None and path.startswith(f"{OUT}/")
        ]
        del self.tree.nodes[self.choose.choice(sorted(files))]

    def shorten_file(self) -> None:
        files = [path for path, content in self.tree.nodes.items() if content and path.startswith(f"{OUT}/")]
        path = self.choose.choice(sorted(files))
        self.tree.nodes[path] = cast("bytes", self.tree.nodes[path])[:-1]

    def replace_line(self) -> None:
        for each in [each for each in self.tree.below(self.home) if each.rpartition("/")[2].startswith(LINE)]:
            self.tree.rename(each, each.replace(f"~{self.run_id}~", f"~{uuid.UUID(int=self.choose.getrandbits(128))}~"))

    def replace_query(self) -> None:
        text = json.dumps({"id": str(uuid.UUID(int=self.choose.getrandbits(128)))})
        self.tree.nodes[f"{self.leader}/spark/{QUERY}/metadata"] = text.encode()

    def put_checkpoint_back(self) -> None:
        self.committed = self.choose.randrange(self.run.batches - 2) - 1
        for number in range(self.committed + 1, self.run.batches):
            for log in ("commits", "offsets"):
                self.tree.nodes.pop(f"{self.leader}/spark/{QUERY}/{log}/{number}", None)

    def forge_marker(self) -> None:
        """The journal says that a batch is complete, and has never decided it."""
        self.tree.make_directory(f"{self.home}/{layout.done(self.run.batches + self.choose.randrange(3))}")

    def forge_record(self) -> None:
        self.tree.delete(self.done, recursive=True)
        other = f"{self.home}/{layout.done((self.batch + 1) % self.run.batches)}"
        for each in [other, *self.tree.below(other)]:
            self.tree.make_directory(self.done + each[len(other) :])

    def _record_anew(self, change: Callable[[Record], Record]) -> None:
        names = [each.name for each in self.tree.list(self.done)]
        old = read(FILES, Record, names)
        assert old is not None
        self.drop_record()
        for name in written(FILES, change(old)):
            self.tree.make_directory(f"{self.done}/{name}")

    def _files_anew(self, change: Callable[[dict[str, int]], object]) -> None:
        """Change the files that a record names in one of its partitions."""

        def changed(record: Record) -> Record:
            partitions = {each: dict(files) for each, files in record.partitions.items()}
            change(partitions[self.choose.choice(sorted(partitions))])
            return msgspec.structs.replace(record, partitions=partitions)

        self._record_anew(changed)

    def forge_file_more(self) -> None:
        self._files_anew(lambda files: files.update({"part-00009": 7}))

    def forge_file_less(self) -> None:
        self._files_anew(lambda files: files.pop(self.choose.choice(sorted(files))))

    def forge_bytes(self) -> None:
        self._files_anew(lambda files: files.update({self.choose.choice(sorted(files)): 1}))

    def forge_input(self) -> None:
        self._record_anew(lambda record: msgspec.structs.replace(record, plan=f"{record.plan}0"))

    def forge_order(self) -> None:
        by = self.choose.choice((-1, 1)) if self.batch else 1  # before the first one is -1, and nobody knows is -2
        self._record_anew(lambda record: msgspec.structs.replace(record, after=record.after + by))

    @property
    def run_id(self) -> str:
        metadata = cast("bytes", self.tree.nodes[f"{self.leader}/spark/{QUERY}/metadata"])
        return str(json.loads(metadata)["id"])


GAPS = [
    Books.drop_batch, Books.drop_marker, Books.drop_record, Books.drop_file, Books.shorten_file, Books.replace_line,
    Books.replace_query, Books.put_checkpoint_back, Books.forge_marker, Books.forge_record, Books.forge_file_more,
    Books.forge_file_less, Books.forge_bytes, Books.forge_input, Books.forge_order,
]  # fmt: skip


TAKEN_AWAY = (Books.drop_file, Books.shorten_file)
"""What readers may do as well: a leader counts it where it looks, and tells of no gap."""


def is_for_leader(gap: Callable[[Books], None], books: Books) -> bool:
    """Whether the next leader tells of a gap as it takes over: it looks once a query has committed something."""
    return gap not in TAKEN_AWAY and books.committed >= 0


@click.command()
@click.option("--gaps", default=1000, show_default=True, help="Gaps that are made, one in a job.")
@click.option("--batches", default=100_000, show_default=True, help="Batches of jobs that lack nothing.")
@click.option("--first", default=10_000, show_default=True, help="First seed.")
def main(gaps: int, batches: int, first: int) -> None:
    """Count the gaps that are found, and the alarms for nothing; exit code 1 if one of them is wrong."""
    fenced_rename.PATIENCE_S = 0.2
    cast("Any", fenced_rename).BOOT_CLOCK = SimpleNamespace(sleep=lambda _: None)  # a sleep of 0 gives the core away
    found = by_leader = for_leader = 0
    for seed in range(first, first + gaps):
        books = Books(seed)
        gap = GAPS[seed % len(GAPS)]
        gap(books)
        found += bool(books.told())
        if is_for_leader(gap, books):
            for_leader, by_leader = for_leader + 1, by_leader + bool(books.told_by_leader())
    done = alarms = drivers = 0
    seed = first
    while done < batches:
        seed += 1
        run = Run(seed).go()
        done, drivers = done + len(run.reader.complete), drivers + run.drivers
        alarms += bool(run.reader.wrong)
    click.echo(f"{found} of {gaps} gaps found, {by_leader} of {for_leader} by the next leader as it takes over")
    click.echo(f"{alarms} false alarms in {done} batches of {drivers} drivers")
    raise SystemExit(found < gaps or by_leader < for_leader or alarms > 0)


if __name__ == "__main__":
    main()
