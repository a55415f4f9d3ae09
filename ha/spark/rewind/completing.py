"""Completing: does what a rewind has decided. No query may run; after a crash the next leader repeats it.

Everything goes into the trash before anything comes out of it, so a step that is done twice changes nothing: see
:mod:`ha.spark.rewind.plan` for the places, and decision 37 for the order.
"""

import threading
import weakref
from contextlib import closing
from urllib.parse import urlsplit

from ha.leadership.fenced_rename import FencedHome, FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs.folder import OutputFolder
from ha.outputs.setting_aside import SettingAside
from ha.spark.rewind.plan import APART, BACK, CHECKPOINT, DECIDED, PLAN, TREE, RewindPlan, RewoundOutput, decoded
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import OUT, REWINDING, REWOUND, SPARK, TRASH
from store.errors import NotFound
from store.paths import parent

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
