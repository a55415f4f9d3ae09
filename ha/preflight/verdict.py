"""Verdict: whether a program fits a query's checkpoint, from the reports and files of its dry run. Pure."""

import fnmatch
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ha.checkpoints.layouts import Layout, changes
from ha.checkpoints.renumbering import Doubt, match
from ha.preflight.scratch import Copy
from ha.spark.queries.query_failures import Failure, failure
from ha.spark.session.frozen import differing

_SOURCES = (
    "Spark would take what it has read of the one for the other without an error: put the sources in the order that "
    "they had; if the input has moved, go on without the check"
)

_DAMAGED = re.compile(
    r"\[CANNOT_LOAD_STATE_STORE|Failed to read log file|Stream is corrupted|Stream ended prematurely"
    r"|ChecksumException|BlockMissingException|Corruption: |Error reading delta file|Error reading snapshot file"
)  # errors of a checkpoint whose files are damaged, whatever the program is

_HEALED = (
    "`ha checkpoint verify {} {} --checksums` names the damaged file, and says how to go back to a batch without it"
)

_NAMES = "The program has a source {}, which the checkpoint has not, and no source {}, which the checkpoint has."
_RENAMED = (
    "Spark would read what has a new name from its beginning, and its rows a second time: give it the old name; if one "
    "was replaced by another, go on without the check"
)


class PreflightProblem(msgspec.Struct, frozen=True):
    """One reason why the program does not fit."""

    kind: str  # what it is about
    text: str  # a sentence
    remedy: str = ""  # what to do
    silent: bool = False  # whether Spark would go on without an error, with wrong results


class PreflightVerdict(msgspec.Struct, frozen=True):
    """What a dry run has shown of one query."""

    query: str  # its name
    fits: bool  # whether it would restart
    batch: int | None = None  # the batch that was done in the dry run; null if none was to be done
    problems: list[PreflightProblem] = []  # why it does not fit
    notes: list[str] = []  # what has changed without harm, and what was not looked at
    before: list[Layout] = []  # operators with state that the checkpoint has
    after: list[Layout] = []  # those that the program has; empty if it has not come to that


class Told(msgspec.Struct):
    """The reports of the program's process on one query."""

    begun: bool = False  # whether its dry run was started
    done: bool = False  # whether its batch is complete
    error: str | None = None  # why it is not
    unseen: str | None = None  # where it keeps its checkpoint, if that is not in the job
    settings: dict[str, str] = {}  # of its session, as far as a checkpoint has them as well
    sources: list[str] = []  # how each source describes itself
    names: list[str] = []  # of the sources, if the program has named them
    waiting: bool = False  # whether the program waits for its queries to end; told of no query

    @property
    def over(self) -> bool:
        """Whether no further report of it will come."""
        return self.done or self.waiting or self.error is not None or (self.unseen is not None and not self.begun)


class DryRunEnd(msgspec.Struct, frozen=True):
    """How the program's process has ended, in a clause; and its error, if it has ended by itself."""

    text: str
    error: Failure | None = None


def told(lines: Iterable[bytes]) -> dict[str, Told]:
    """Read the report of the program's process, by query."""
    found: dict[str, Told] = {}
    for line in lines:
        said: dict[str, Any] = msgspec.json.decode(line)
        each = found.setdefault(said.pop("query"), Told())
        for name, value in said.items():
            setattr(each, name, value)
    return found


def judge(copy: Copy, said: Told, after: Mapping[int, Layout], end: DryRunEnd) -> PreflightVerdict:
    """Judge one query: ``after`` has the operators with state that its dry run has planned, if it has come to that."""
    notes = [f"The checkpoint's setting stays: {each}." for each in differing(copy.offsets.settings, said.settings)]
    problems = []
    planned = said.done or bool(after)
    if planned:
        problems += [
            PreflightProblem(f"state: {each.kind.value}", each.text, each.remedy, each.silent)
            for each in changes(copy.layouts, after)
        ]
    if problems and _only_renumbered(copy, after):
        notes.append(
            "Its operators have other numbers, and nothing else: --map of `ha checkpoint import` makes one that fits."
        )
    if said.error is not None and not problems:
        problems.append(_error(copy, said.error))
    if said.done:
        problems += _sources(copy, said)
        gone, new = _changed_names(copy, said)
        if gone and new:
            problems.append(
                PreflightProblem("sources", _NAMES.format(", ".join(new), ", ".join(gone)), _RENAMED, silent=True)
            )
        else:
            notes += [f"Source {each} is new: it is read from its beginning." for each in new]
            notes += [f"Source {each} is gone; what was read of it stays noted." for each in gone]
        if not copy.replayed:
            notes.append("The batch before was not there any more, so the batch was done with new input.")
    elif said.error is None:
        problems.append(_unfinished(copy, said, end))
    return PreflightVerdict(
        *(copy.query, not problems, copy.batch if said.done else None, problems, notes),
        *(list(copy.layouts.values()), list(after.values()) if planned else []),
    )


def _only_renumbered(copy: Copy, after: Mapping[int, Layout]) -> bool:
    try:
        match(copy.layouts, after)
    except Doubt:
        return False
    return True


def _error(copy: Copy, text: str) -> PreflightProblem:
    found = failure(copy.query, text.partition("=== Streaming Query ===")[0])
    if not found.remedy and _DAMAGED.search(text):
        return PreflightProblem("checkpoint", found.error, _HEALED.format(copy.job, shlex.quote(copy.query)))
    return PreflightProblem("error", found.error, found.remedy or "correct the program, and check it again")


def _unfinished(copy: Copy, said: Told, end: DryRunEnd) -> PreflightProblem:
    if said.begun:
        more = "allow more time with --timeout"
        if not copy.replayed:
            more += "; it needs new input, because the batch before the newest one cannot be done again"
        return PreflightProblem("time", f"Batch {copy.batch} did not get complete: {end.text}", more)
    if said.unseen:
        return PreflightProblem(
            "location",
            f"The program keeps its checkpoint at {said.unseen}, so it would start from scratch there.",
            "let it keep its checkpoint below the leader directory",
        )
    if end.error is not None:
        text = f"The program has not started it: {end.text} {end.error.error}"
        return PreflightProblem(
            "ended", text, end.error.remedy or "correct the program, or give it what it needs on this host"
        )
    return PreflightProblem(
        "missing",
        f"The program has not started it: {end.text}",
        "if it has another name now, give it its old one; if the program has dropped it, say --without "
        f"{copy.query}, or remove its checkpoint with `ha checkpoint sweep {copy.job} --remove "
        f"{shlex.quote(copy.query)}`",
    )


def _changed_names(copy: Copy, said: Told) -> tuple[list[str], list[str]]:
    """Return the names that only the checkpoint has, and those that only the program has; none without names."""
    if not copy.offsets.named or not said.names:
        return [], []
    before = [name for name, offset in copy.offsets.sources.items() if offset is not None]
    return [each for each in before if each not in said.names], [each for each in said.names if each not in before]


def _sources(copy: Copy, said: Told) -> list[PreflightProblem]:
    """Compare where each file source has read with where it reads."""
    found = []
    named = len(said.names) == len(said.sources)
    for number, description in enumerate(said.sources):
        kind, bracket, place = description.partition("[")
        name = said.names[number] if named else str(number)
        files = copy.read.get(name, [])
        if kind != "FileStreamSource" or not bracket or not files:
            continue
        if not any(_below(file, place.rstrip("]")) for file in files):
            text = f"Source {name} reads {place.rstrip(']')}, and its checkpoint has read {files[-1]}."
            found.append(PreflightProblem("sources", text, _SOURCES, silent=True))
    return found


def _below(file: str, place: str) -> bool:
    """Whether a file is in a directory, or matches a pattern, at whatever depth."""
    path, folder = (re.sub(r"^(\w+):/+", r"\1:/", each) for each in (file, place.rstrip("/")))
    return path.startswith(f"{folder}/") or any(fnmatch.fnmatchcase(path, each) for each in (folder, f"{folder}/*"))
