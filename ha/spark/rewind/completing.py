"""Completing: what a rewind does, written down before it is decided, so that any leader can do it.

<leader directory>/rewinding/<query>/to-<batch>/     being prepared: the plan and a copy; the query is untouched
<leader directory>/rewinding/<query>/decided/        one rename of it: the query resumes from there
    plan                                             the plan
    tree/                                            the checkpoint after the batch; of an undo it is in back
    back/                                            what an undo takes out of the trash
    apart                                            everything that goes into the trash is there
<leader directory>/trash/<trash>/rewound=<query>/    what was there before
    plan
    checkpoint/
    <output>/<batch>/<number>                        a partition of a batch; its number is that in the record
    <output>/<batch>/ready or done                   the batch's folder in the journal, with its record

No query may run; after a crash the next leader repeats it. Everything goes into the trash before anything comes out of
it, so a step that is done twice changes nothing: decision 37 has the order.
"""

import threading
import weakref
from contextlib import closing
from urllib.parse import urlsplit

import msgspec

from ha.leadership.fenced_rename import FencedHome, FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs.folder import OutputFolder
from ha.outputs.setting_aside import SettingAside
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import OUT, REWINDING, REWOUND, SPARK, TRASH
from store.errors import Invalid, NotFound
from store.paths import parent

PLAN, TREE, BACK, APART, CHECKPOINT, DECIDED = "plan", "tree", "back", "apart", "checkpoint", "decided"

FORMAT = 1


class RewoundOutput(msgspec.Struct, frozen=True):
    """The fate of one output."""

    name: str  # given by the program
    folder: str  # of its journal, below `out`
    target: str  # path of the directory in which its batches appear
    stays: int  # newest id that stays; batches with higher ones go into the trash
    lines: list[str]  # the names `line=...` that the journal has afterwards
    before: list[str]  # those that it has now, for an undo


class RewindPlan(msgspec.Struct, frozen=True):
    """One rewind, or the undo of one."""

    query: str  # its name
    batch: int | None  # newest batch that the query has committed afterwards; None if it had committed none
    trash: str  # name of the folder in the trash
    epoch: int  # of the leader that decided it
    number: int  # higher than that of every plan of the query that lies in the trash: an undo is of the newest
    outputs: list[RewoundOutput]  # those that follow
    back: str = ""  # name of the folder in the trash that an undo takes back; empty for a rewind
    format: int = FORMAT  # of this file and of what is beside it


def encoded(plan: RewindPlan) -> bytes:
    """Return the file."""
    return msgspec.json.encode(plan)


def decoded(data: bytes) -> RewindPlan:
    """Read the file; ``Invalid`` if it is none, or that of a later version of this package."""
    try:
        found = msgspec.json.decode(data, type=RewindPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"The plan of a rewind says something else ({error}).") from error
    if found.format != FORMAT:
        raise Invalid(f"The plan of a rewind has format {found.format}: this version of the package reads {FORMAT}.")
    return found


_settled: "weakref.WeakSet[Leadership]" = weakref.WeakSet()
_settling = threading.Lock()


def settle(leadership: Leadership) -> None:
    """Complete what an earlier leader has decided, once in each leadership: before a query, and before an output."""
    # It costs one list.
    with _settling:
        if leadership not in _settled:
            complete(leadership, leadership.own)
            _settled.add(leadership)


def complete(home: FencedHome, directory: FencedDirectory) -> list[RewindPlan]:
    """Complete the rewinds that were decided in a leader directory, and return them."""
    # AlreadyExists: something is in the way of what an undo brings back.
    # Invalid: the plan of a rewind, or the record of a batch, is damaged.
    # NotFound: the trash was emptied before an undo has taken anything out of it; nothing was changed.
    if not any(entry.name == REWINDING for entry in directory.list()):
        return []
    done = []
    for query in directory.list(REWINDING):
        place = f"{REWINDING}/{query.name}/{DECIDED}"
        if any(entry.name == DECIDED for entry in directory.list(f"{REWINDING}/{query.name}")):
            plan = _Completing(home, directory, place).run()
            done += [plan] if plan is not None else []
    return done


class _Completing:
    """One rewind, as far as it has come."""

    def __init__(self, home: FencedHome, directory: FencedDirectory, place: str) -> None:
        self._home, self._directory, self._place = home, directory, place

    def run(self) -> RewindPlan | None:
        directory, place = self._directory, self._place
        names = self._names(place)
        if PLAN not in names:  # it is in the trash already, as the last of all
            directory.delete(parent(place))
            return None
        plan = decoded(directory.read(f"{place}/{PLAN}"))
        trash = f"{TRASH}/{plan.trash}/{REWOUND}{plan.query}"
        if plan.back and BACK not in names:
            self._take_back(plan)
        for folder in (TRASH, f"{TRASH}/{plan.trash}", trash):
            directory.make_folder(folder)
        if APART not in names:
            for output in plan.outputs:
                with closing(self._renames(output)) as renames:
                    self._aside(renames, output).put_away(output.stays, f"{renames.inside}/{trash}/{output.folder}")
            self._put_checkpoint_away(plan, trash)
            directory.make_folder(f"{place}/{APART}")
        for output in plan.outputs:
            with closing(self._renames(output)) as renames:
                aside = self._aside(renames, output)
                aside.number(output.lines)
                if plan.back:
                    aside.bring_back(f"{renames.inside}/{place}/{BACK}/{output.folder}")
        self._show_checkpoint(plan)
        directory.rename(f"{place}/{PLAN}", f"{trash}/{PLAN}")
        directory.delete(parent(place))
        return plan

    def _take_back(self, plan: RewindPlan) -> None:
        try:
            self._directory.rename(f"{TRASH}/{plan.back}/{REWOUND}{plan.query}", f"{self._place}/{BACK}")
        except NotFound as error:
            self._directory.delete(self._place)
            raise NotFound(
                f"The rewind of query {plan.query!r} cannot be undone: the trash has been emptied meanwhile. Nothing "
                "was changed."
            ) from error
        self._directory.delete(f"{TRASH}/{plan.back}")

    def _put_checkpoint_away(self, plan: RewindPlan, trash: str) -> None:
        if CHECKPOINT not in self._names(trash) and plan.query in self._names(SPARK):
            self._directory.rename(f"{SPARK}/{plan.query}", f"{trash}/{CHECKPOINT}")

    def _show_checkpoint(self, plan: RewindPlan) -> None:
        folder, name = (f"{self._place}/{BACK}", CHECKPOINT) if plan.back else (self._place, TREE)
        if name in self._names(folder):
            self._directory.rename(f"{folder}/{name}", f"{SPARK}/{plan.query}")

    def _renames(self, output: RewoundOutput) -> FencedRename:
        parts = urlsplit(self._home.directory)
        return FencedRename(self._home, f"{parts.scheme}://{parts.netloc}{output.target}")

    def _aside(self, renames: FencedRename, output: RewoundOutput) -> SettingAside:
        return SettingAside(OutputFolder(renames, f"{renames.inside}/{OUT}/{output.folder}", output.name))

    def _names(self, folder: str) -> set[str]:
        return {entry.name for entry in self._directory.list(folder)}
