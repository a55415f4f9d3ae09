"""A store that is full: from each call on, each verb ends with a sentence, and a repeat completes or undoes it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

import ha
from ha.checkpoints.trees import Tree
from ha.cli.commands import exit_code
from ha.spark import Output
from ha.spark.tools import import_checkpoint
from leader.job.admin import JobAdmin
from leader.job.status import JobStatus, Status
from store.errors import NoSpace, Unknown
from store.local import LocalFiles
from store.open import open_files
from tests.system.spark.batches import batch, line_of
from tests.unit.ha.cli.test_replicate import Sides, closure_of
from tests.unit.ha.cli.test_sweep import tree, written
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.led import Led

NEEDS_A_NAME = ((LocalFiles, "make_directory"), (LocalFiles, "write"), (Tree, "read_into"), (Tree, "store"))
NEEDS_SPACE = NEEDS_A_NAME[1:]
NEEDS_ANYTHING = (*NEEDS_A_NAME, (LocalFiles, "rename"))
"""On a local disk that is full to the last block even a rename may be refused."""


class Full:
    def __init__(self, changes: tuple[tuple[type, str], ...], most: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.left, self.refused = most, False
        for owner, name in changes:
            self.patch.setattr(owner, name, self.limited(owner, getattr(owner, name)))

    def limited(self, owner: type, change: Callable[..., Any]) -> Callable[..., Any]:
        def limited(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                self.refused = True
                refusal = NoSpace("No space left on device: 'there'")
                raise Unknown(f"{refusal}") if owner is Tree else refusal
            return change(*arguments, **options)

        return limited


@contextmanager
def full(changes: tuple[tuple[type, str], ...], most: int) -> Iterator[Full]:
    made = Full(changes, most)
    try:
        yield made
    finally:
        made.patch.undo()


@dataclass
class Verb:
    """One verb: what comes before it, and whether what it is for has come about."""

    arguments: tuple[str, ...]
    ready: Callable[[Path], object]
    done: Callable[[Path], bool]


def names(root: Path, pattern: str) -> list[str]:
    return [each.name for each in root.glob(pattern)]


def led(root: Path) -> None:
    Led(root).claim("orders", "a:1")


def ended(root: Path) -> None:
    led(root)
    with open_files(root.as_uri()) as files:
        status = JobStatus(JobAdmin(files, None, 5.0).directory("orders"))
        for old, new in pairwise((Status.CREATED, Status.RUNNING, Status.FINISHED)):
            status.change(old, new)
    (home,) = root.glob("orders/0*")
    (home / "graph").mkdir()
    Led(root).release("orders")


def after(ready: Callable[[Path], object], *arguments: str) -> Callable[[Path], None]:
    def both(root: Path) -> None:
        ready(root)
        with suppress(SystemExit):
            assert exit_code(list(arguments)) == 0

    return both


def holds(*there: str, gone: tuple[str, ...] = ()) -> Callable[[Path], bool]:
    """Return whether there are names of each of these patterns, and none of those that are to be gone."""
    return lambda root: all(names(root, each) for each in there) and not any(names(root, each) for each in gone)


PAUSED = ("orders/*/record/lease~*_paused*",)
DRAINED = (".drained/barred~c~*", "orders/*/record/barred~c~*")
CLEANED = ("orders/*/status=FINISHED~cleaned*", "orders/*/trash/*/graph*")
PAUSE, DRAIN, CLEAN = ("job", "pause", "orders"), ("host", "drain", "c", "--unseen"), ("job", "clean", "orders")

CHEAP = {
    "pause": Verb(PAUSE, led, holds(*PAUSED)),
    "resume": Verb(("job", "resume", "orders"), after(led, *PAUSE), holds(gone=PAUSED)),
    "drain": Verb((*DRAIN, "--timeout", "1"), led, holds(*DRAINED)),
    "undrain": Verb(("host", "undrain", "c"), after(led, *DRAIN), holds(gone=DRAINED)),
    "clean": Verb(CLEAN, ended, holds(*CLEANED)),
    "restore": Verb(
        ("trash", "restore", "orders"),
        after(ended, *CLEAN),
        holds("orders/0*/graph", gone=("orders/*/status=FINISHED~clean*",)),
    ),
    "empty": Verb(("trash", "empty", "orders", "--yes"), after(ended, *CLEAN), holds(gone=("orders/*/trash/*",))),
    "submit": Verb(("job", "submit", "orders", "--no-preflight", "--", "true"), led, holds("orders/*/programs/1=*")),
}


def dies_at_each_step(
    root: Path, verb: Verb, changes: tuple[tuple[type, str], ...], cli: CommandLine, stride: int = 1
) -> None:
    """Run a verb on a store that is full after none, one, two ... changes, until it no longer notices."""
    verb.ready(root)
    arguments = [each.format(place=(root.parent / "elsewhere").as_uri()) for each in verb.arguments]
    before = root.with_name("before")
    shutil.copytree(root, before)
    for most in count(0, stride):
        shutil.rmtree(root)
        shutil.copytree(before, root)
        with full(changes, most) as disk:
            said = cli(*arguments, code=None)
        where = f"{' '.join(verb.arguments)} after {most} changes: {said.code}, {said.out}{said.err}"
        if said.code == 0:
            assert verb.done(root), where
        else:
            assert disk.refused, where
            assert "No space left on device" in said.out + said.err, where
            assert "free some" in said.out + said.err, where
            cli(*arguments)
            assert verb.done(root), where
        if not disk.refused:
            return


@pytest.mark.parametrize("changes", [NEEDS_SPACE, NEEDS_A_NAME, NEEDS_ANYTHING], ids=["space", "names", "anything"])
@pytest.mark.parametrize("verb", CHEAP)
def test_each_step_of_each_verb_dies_of_a_full_store(
    quick: Path, cli: CommandLine, verb: str, changes: tuple[tuple[type, str], ...]
) -> None:
    dies_at_each_step(quick, CHEAP[verb], changes, cli)


def copied(root: Path) -> bool:
    (place,) = root.glob("orders/0*/spark/sums")
    return tree(place) == tree(root.parent / "elsewhere")


def published(root: Path) -> None:
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", written(root.parent / "elsewhere").as_uri())
        with Output(leadership, f"{root.as_uri()}/out", "totals") as output:
            for each in range(7):
                output.write(batch(f"old{each}", line=line_of(leadership, "sums")), each)


def put_back(root: Path) -> bool:
    (commits,) = root.glob("orders/0*/spark/sums/commits")
    newest = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    return newest == 3 and sorted(names(root, "out/batch=*")) == [f"batch={each}" for each in range(4)]


def undone(root: Path) -> bool:
    return copied(root) and len(names(root, "out/batch=*")) == 7


def free(root: Path) -> None:
    written(root.parent / "elsewhere")
    led(root)
    Led(root).release("orders")


REWIND = ("checkpoint", "rewind", "orders", "sums", "--to", "3", "--outputs", "aside", "--yes")
DEAR = {
    "adopt": Verb(("checkpoint", "import", "orders", "sums", "{place}", "--timeout", "1"), free, copied),
    "rewind": Verb(REWIND, published, put_back),
    "undo": Verb(("checkpoint", "rewind", "orders", "sums", "--undo", "--yes"), after(published, *REWIND), undone),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "changes", "stride"),
    [("adopt", NEEDS_SPACE, 9), ("rewind", NEEDS_A_NAME, 4), ("undo", NEEDS_A_NAME, 3)],
    ids=["adopt", "rewind", "undo"],
)
def test_a_verb_that_leads_the_job_does_so_too(
    quick: Path, cli: CommandLine, verb: str, changes: tuple[tuple[type, str], ...], stride: int
) -> None:
    dies_at_each_step(quick, DEAR[verb], changes, cli, stride)


def test_whoever_is_not_granted_a_job_is_told_why(quick: Path, cli: CommandLine) -> None:
    free(quick)
    arguments = [each.format(place=(quick.parent / "elsewhere").as_uri()) for each in DEAR["adopt"].arguments]
    with full(NEEDS_ANYTHING, 0):
        said = cli(*arguments, code=1)
    assert "in 1 s. It could not seize the lease: No space left on device: 'there': free some space there" in said.err


@pytest.mark.slow
def test_a_promotion_does_so_too(tmp_path: Path, quick: Path, cli: CommandLine) -> None:
    del quick
    sides = Sides(tmp_path, cli)
    sides.commit(3)
    sides.replicate("--once")

    def promoted(root: Path) -> bool:
        (place,) = root.glob("orders/0*/spark/daily")
        return {path: (place / path).read_bytes() for path in tree(place)} == closure_of(3)

    verb = Verb(
        ("replica", "promote", "orders", "--yes", "--files", sides.there, "--timeout", "2"), lambda _: None, promoted
    )
    dies_at_each_step(tmp_path / "there", verb, NEEDS_A_NAME, cli, 3)


@pytest.mark.parametrize("verb", ["job stop", "job cancel", "job restart", "savepoint take"])
@pytest.mark.parametrize("changes", [NEEDS_SPACE, NEEDS_A_NAME, NEEDS_ANYTHING], ids=["space", "names", "anything"])
def test_a_request_is_left_or_it_is_said_that_it_is_not(
    quick: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch, verb: str, changes: tuple[tuple[type, str], ...]
) -> None:
    monkeypatch.setattr("ha.cli.requests.ANSWERING_S", 0.0)
    for most in count():
        shutil.rmtree(quick, ignore_errors=True)
        led(quick)
        with full(changes, most) as disk:
            said = cli(f"{verb} orders --timeout 0.01", code=None)
        left = names(quick, "orders/*/requests/*=1*")
        if not disk.refused:
            assert (said.code, len(left)) == (1, 1), "nobody answers"
            return
        assert said.code == 4, said.err
        assert "No space left on device: 'there': free some space there" in said.err
        assert bool(left) == ("is left, and it is unknown whether the leader noticed: ask again" in said.err)
