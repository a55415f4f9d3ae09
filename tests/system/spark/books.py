"""Books: a simulated job at its end, and the ways to spoil it: what does the ledger tell?

python -m tests.system.spark.books --gaps 1000 --batches 100000
"""

import json
import random
import uuid
from collections.abc import Callable
from typing import Any, cast

import click

from ha.leadership import fenced_rename
from ha.outputs import layout
from ha.outputs.lines import LINE
from ha.outputs.reading import JournalReader
from leader.job.fenced_directory import FencedDirectory
from store.bounded import BoundedFiles
from store.files import Entry
from tests.system.spark.plain_reader import JOB, OUT, QUERY, Directory, Run


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
        self.batch = self.choose.randrange(self.run.batches)
        self.done = f"{self.home}/{layout.done(self.batch)}"

    def told(self) -> list[str]:
        """Return what `ha output verify` would tell."""
        found = [gap.why for gap in self.run.gaps()]
        directory = Directory(self.tree, self.leader)
        reader = JournalReader(lambda: cast("FencedDirectory", directory))
        (output,) = reader.outputs()
        ids = [each for ids in reader.ids(output, range(1 << 62)) for each in ids]
        rows = reader.verified(output, ids, cast("BoundedFiles", _Target(self)))
        return found + [path for row in rows for path in row.missing]

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
        for number in range(self.choose.randrange(self.run.batches - 2), self.run.batches):
            for log in ("commits", "offsets"):
                self.tree.nodes.pop(f"{self.leader}/spark/{QUERY}/{log}/{number}", None)

    def forge_marker(self) -> None:
        """The journal says that a batch is complete, and has never decided it."""
        self.tree.make_directory(f"{self.home}/{layout.done(self.run.batches + self.choose.randrange(3))}")

    def forge_record(self) -> None:
        self.tree.delete(self.done, recursive=True)
        other = f"{self.home}/{layout.done((self.batch + 1) % self.run.batches)}"
        for each in [other, *self.tree.below(other)]:
            self.tree.nodes[self.done + each[len(other) :]] = self.tree.nodes[each]

    @property
    def run_id(self) -> str:
        metadata = cast("bytes", self.tree.nodes[f"{self.leader}/spark/{QUERY}/metadata"])
        return str(json.loads(metadata)["id"])


class _Target:
    def __init__(self, books: Books) -> None:
        self._tree = books.tree

    def call(self, _: str, operation: Callable[[Any], list[Entry]], __: float) -> list[Entry]:
        return operation(self)

    def list(self, path: str) -> list[Entry]:
        return self._tree.list(f"{OUT}/{path}".rstrip("/"))


GAPS = [
    Books.drop_batch, Books.drop_marker, Books.drop_record, Books.drop_file, Books.shorten_file, Books.replace_line,
    Books.replace_query, Books.put_checkpoint_back, Books.forge_marker, Books.forge_record,
]  # fmt: skip


@click.command()
@click.option("--gaps", default=1000, show_default=True, help="Gaps that are made, one in a job.")
@click.option("--batches", default=100_000, show_default=True, help="Batches of jobs that lack nothing.")
@click.option("--first", default=10_000, show_default=True, help="First seed.")
def main(gaps: int, batches: int, first: int) -> None:
    """Count the gaps that are found, and the alarms for nothing; exit code 1 if one of them is wrong."""
    fenced_rename.RETRY_S, fenced_rename.PATIENCE_S = 0.0, 0.2
    found = 0
    for seed in range(first, first + gaps):
        books = Books(seed)
        gap = GAPS[seed % len(GAPS)]
        gap(books)
        found += bool(books.told())
    done = alarms = drivers = 0
    seed = first
    while done < batches:
        seed += 1
        run = Run(seed).go()
        done, drivers = done + len(run.reader.complete), drivers + run.drivers
        alarms += bool(run.reader.wrong)
    click.echo(f"{found} of {gaps} gaps found; {alarms} false alarms in {done} batches of {drivers} drivers")
    raise SystemExit(found < gaps or alarms > 0)


if __name__ == "__main__":
    main()
