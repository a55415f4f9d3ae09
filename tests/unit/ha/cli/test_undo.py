"""Undo: a verb that changes something says in its last line how that is undone, or asks before it acts."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ha
from ha.cli import app
from ha.cli.commands import VERBS
from ha.spark import Output
from ha.spark.tools import import_checkpoint
from ha.verbs.table import VERBS as ROWS
from tests.system.spark import test_output_verbs
from tests.system.spark.batches import batch, line_of
from tests.unit.ha.cli import test_move, test_replicate, test_rewind, test_sweep
from tests.unit.ha.cli.test_full_store import ended
from tests.unit.ha.cli.test_sweep import written
from tests.unit.ha.cli.test_verbs import OFFERED, commands, fault
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.doctor.test_doctor import FORGED
from tests.unit.ha.led import Led
from tests.unit.ha.noting import Notes, run
from tests.unit.ha.programs import Workplace
from tests.unit.ha.sidecar.test_savepoints import QUERY, commit, elsewhere
from tests.unit.ha.waiting import wait_until

roots, sides, sought, swept = test_move.roots, test_replicate.sides, test_rewind.sought, test_sweep.job
rescaled, published = test_rewind.rescaled, test_output_verbs.job

READS = {
    "job list", "job show", "job leader", "job watch", "job queries", "job exceptions", "job logs", "job history",
    "job preflight", "job roots", "checkpoint list", "checkpoint newest", "checkpoint inspect", "checkpoint state",
    "checkpoint verify", "savepoint list", "replica status", "output list", "output verify", "trash list",
    "host status", "host config", "lab check",
}  # fmt: skip
SERVES = {"run", "replica run", "host agent", "host daemon", "lab sandbox", "lab drill"}
NOTHING_TO_UNDO = {
    "job restart --query": "the query goes on from where it was",
    "checkpoint export": "it writes a new directory, and changes nothing of the job",
    "output repair": "it completes what was decided, as the next start of the job does",
    "output merge": "each row is there once, before and after",
}


class Scene:
    """The place of one test."""

    def __init__(self, request: pytest.FixtureRequest, cli: CommandLine, root: Path) -> None:
        self.request, self.cli, self.root = request, cli, root
        self.places = {word: (root.parent / word.lower()).as_uri() for word in ("COPY", "SAVED", "THERE")}

    def given(self, fixture: str) -> Any:
        return self.request.getfixturevalue(fixture)

    def said(self, line: str, code: int = 0) -> list[str]:
        for word, place in self.places.items():
            line = line.replace(word, place)
        said = self.cli(line, code=code)
        return (said.err if code else said.out).splitlines()

    def shape(self) -> set[str]:
        """Return what an undo brings back: files of checkpoints and graphs, and what is paused or drained."""
        names = {str(each.relative_to(self.root)) for each in self.root.rglob("*")}
        kept = {name for name in names if name.split("/")[2:3] in (["spark"], ["graph"])}
        marks = {name.partition("~")[0] for name in names if name.startswith(".drained/") or "_paused" in name}
        leaves = {name for name in kept if not any((self.root / name).glob("*"))}
        return {name.split("/", 2)[2] for name in leaves} - {"spark"} | marks

    # --- what is there before

    def led(self) -> None:
        self.root.mkdir(exist_ok=True)
        Led(self.root).claim("orders", "a:1")

    def ended(self) -> None:
        self.root.mkdir()
        ended(self.root)

    def copy(self) -> None:
        written(self.root.parent / "copy")

    def query(self) -> None:
        """Let a job at rest have a query "sums", which has committed batch 5."""
        self.copy()
        with ha.lead("orders") as leadership:
            import_checkpoint(leadership, "sums", self.places["COPY"])
        copy = self.root.parent / "copy/offsets"
        (copy / "6").write_bytes((copy / "5").read_bytes())  # another one, if it is imported again

    def output(self) -> None:
        self.query()
        with ha.lead("orders") as leadership, Output(leadership, self.places["THERE"], "totals") as output:
            output.write(batch("rows", line=line_of(leadership, "sums")), 0)

    def lost(self, renames: int) -> None:
        """Let the batch of an output be decided, and a file of it be gone."""
        shutil.rmtree(self.given("published").crash(1, renames) / "rows" / "day=2")

    def saved(self) -> None:
        self.led()
        manifest = {"job": "orders", "epoch": 1, "id": "7", "at": "", "by": "", "stopped": False, "spark": ""}
        (self.root.parent / "saved").mkdir()
        (self.root.parent / "saved/savepoint.json").write_text(json.dumps({**manifest, "queries": []}))

    def group(self) -> None:
        self.places["ROOT"] = self.given("roots")[1]

    def stray(self) -> None:
        self.led()
        (self.root / f"orders/{FORGED}").mkdir()

    def replica(self) -> None:
        self.given("sides").replicate("--once")


@dataclass
class Change:
    """A verb that changes something, and what comes before it."""

    line: str
    before: Callable[[Scene], object] = lambda _: None
    earlier: str = ""  # a command before it
    undo: bool = True  # whether the undo can be given at once


QUIET = {
    "job pause": Change("job pause orders", Scene.led),
    "job resume": Change("job resume orders", Scene.led, "job pause orders"),
    "job clean": Change("job clean orders", Scene.ended),
    "job submit": Change("job submit orders --no-preflight -- false", earlier="job submit orders -- true"),
    "job move": Change("job move orders --to ROOT", Scene.group, undo=False),
    "checkpoint import": Change("checkpoint import orders sums COPY", Scene.copy),
    "checkpoint import --replace": Change("checkpoint import orders sums COPY --replace", Scene.query),
    "checkpoint rewind": Change("checkpoint rewind orders sums --to 3 --yes", Scene.query),
    "checkpoint rewind --undo": Change(
        "checkpoint rewind orders sums --undo --yes", Scene.query, "checkpoint rewind orders sums --to 3 --yes"
    ),
    "checkpoint seek": Change(
        "checkpoint seek orders sums --to latest --kafka kafka:9092 --yes", lambda scene: scene.given("sought")
    ),
    "checkpoint rescale": Change(
        "checkpoint rescale orders sums --partitions 8 --yes", lambda scene: scene.given("rescaled")
    ),
    "checkpoint sweep": Change("checkpoint sweep orders", lambda scene: scene.given("swept")),
    "checkpoint sweep --undo": Change(
        "checkpoint sweep orders --undo", lambda scene: scene.given("swept"), "checkpoint sweep orders"
    ),
    "trash restore": Change("trash restore orders", Scene.ended, "job clean orders"),
    "trash restore --query": Change(
        "trash restore orders --query sums", Scene.query, "checkpoint sweep orders --remove sums"
    ),
    "trash restore --query, while there is another": Change(
        "trash restore orders --query sums", Scene.query, "checkpoint import orders sums COPY --replace"
    ),
    "host drain": Change("host drain b --unseen", Scene.led),
    "host undrain": Change("host undrain b", Scene.led, "host drain b --unseen", undo=False),
}

OF_LEADER = {
    "job stop": Change("job stop orders", undo=False),
    "job cancel": Change("job cancel orders", undo=False),
    "job stop --savepoint": Change("job stop orders --savepoint", undo=False),
    "job restart": Change("job restart orders --exclude host9"),
    "job restart --from": Change(
        "job restart orders --from before --discard-newer", earlier="savepoint take orders --request-id before"
    ),
    "savepoint take": Change("savepoint take orders"),
    "job handover": Change("job handover orders --to b"),
}

ASKS = {
    **{name: QUIET[name] for name in ("checkpoint rewind", "checkpoint seek", "checkpoint rescale")},
    "trash empty": Change("trash empty orders --yes", Scene.ended, "job clean orders"),
    "savepoint dispose": Change("savepoint dispose orders SAVED --yes", Scene.saved),
    "replica promote": Change("replica promote orders --files THERE --yes", Scene.replica),
    "output repair --accept-loss": Change("output repair orders --accept-loss --yes", lambda scene: scene.lost(2)),
    "output repair --write-again": Change("output repair orders --write-again --yes", lambda scene: scene.lost(1)),
    "output begin-anew": Change("output begin-anew orders totals --yes", Scene.output),
    "host doctor --mend": Change("host doctor orders --mend --yes", Scene.stray),
}


def verbs(*names: str) -> set[str]:
    return {name.partition(" --")[0] for name in names}


def test_each_verb_is_in_a_table() -> None:
    changing = verbs(*QUIET, *OF_LEADER, *ASKS, *NOTHING_TO_UNDO)
    assert READS | SERVES | changing == set(VERBS)
    assert not (READS | SERVES) & changing
    taking = {name for name, each in commands(app).items() if any("--yes" in option.opts for option in each.params)}
    assert verbs(*ASKS) == taking


@pytest.mark.parametrize("name", ROWS)
def test_each_row_is_undone_or_asks_or_leaves_nothing_to_undo(name: str) -> None:
    row = ROWS[name]
    assert (row.command in QUIET or row.command in OF_LEADER) == bool(row.undo)
    assert (row.command in ASKS) == row.asks
    assert row.undo or row.asks or row.command in NOTHING_TO_UNDO


def undo(said: list[str]) -> str:
    """Return the command that the last line offers."""
    offered = OFFERED.findall(said[-1])
    assert offered, said
    assert [fault(each.split()) for each in offered] == [""] * len(offered)
    return str(offered[0])


@pytest.fixture
def scene(request: pytest.FixtureRequest, cli: CommandLine, quick: Path) -> Scene:
    return Scene(request, cli, quick)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUIET)
def test_the_last_line_says_how_it_is_undone(name: str, scene: Scene) -> None:
    change = QUIET[name]
    change.before(scene)
    if change.earlier:
        scene.said(change.earlier)
    shape = scene.shape()
    back = undo(scene.said(change.line))
    if change.undo:
        assert name == "job submit" or scene.shape() != shape
        scene.said(f"{back} --yes" if "rewind" in back else back)
        assert scene.shape() == shape


@pytest.mark.parametrize("name", OF_LEADER)
def test_what_a_leader_is_asked_for_says_so_too(name: str, workplace: Workplace, notes: Notes, scene: Scene) -> None:
    change = OF_LEADER[name]
    elsewhere(workplace, 4)
    leader = run(workplace, "a", QUERY)
    notes.until(1, leader)
    if name == "job handover":
        run(workplace, "b", QUERY).until_said("contending as b")
    if change.earlier:
        scene.said(change.earlier)
        commit(workplace, "orders", 5)
    back = undo(scene.said(change.line))
    if name == "job restart --from":
        scene.said("job stop orders")
        leader.wait()
    if change.undo:
        scene.said(f"{back} --yes" if "dispose" in back else back)
    if name == "job handover":
        # A leader writes itself into the history after its grant, which is what the command waits for.
        wait_until(lambda: scene.cli("job history orders --json").json[-1]["contender"] == "a", what="it is told")


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKS)
def test_what_nothing_undoes_asks_before_it_acts(name: str, scene: Scene) -> None:
    change = ASKS[name]
    change.before(scene)
    if change.earlier:
        scene.said(change.earlier)
    before = names(scene.root.parent)
    said = " ".join(scene.said(change.line.removesuffix(" --yes"), code=2))
    assert "asks before it changes anything: without a terminal give --yes." in said
    assert names(scene.root.parent) == before
    scene.said(change.line)
    assert names(scene.root.parent) != before


def names(place: Path) -> set[Path]:
    return set(place.rglob("*"))
