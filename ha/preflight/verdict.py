"""Verdict: whether a program fits a query's checkpoint, from what its dry run has told and written. Pure."""

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ha.checkpoints.changes import changes
from ha.checkpoints.layouts import Layout
from ha.checkpoints.renumbering import Doubt, match
from ha.preflight.scratch import Copy
from ha.spark.failures import Failure, failure
from ha.spark.frozen import differing

_SOURCES = (
    "Spark would take what it has read of the one for the other without an error: put the sources in the order that "
    "they had; if the input has moved, go on without the check"
)

_NAMES = "The program has a source {}, which the checkpoint has not, and no source {}, which the checkpoint has."
_RENAMED = (
    "Spark would read what has a new name from its beginning, and its rows a second time: give it the old name; if one "
    "was replaced by another, go on without the check"
)


class Problem(msgspec.Struct, frozen=True):
    """One reason why the program does not fit.

    Attributes:
        kind: what it is about.
        text: a sentence.
        remedy: what to do.
        silent: whether Spark would go on without an error, with wrong results.
    """

    kind: str
    text: str
    remedy: str = ""
    silent: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """What a dry run has shown of one query.

    Attributes:
        query: its name.
        fits: whether it would restart.
        batch: the batch that was done in the dry run; null if none was to be done.
        problems: why it does not fit.
        notes: what has changed without harm, and what was not looked at.
        before: operators with state that the checkpoint has.
        after: those that the program has; empty if it has not come to that.
    """

    query: str
    fits: bool
    batch: int | None = None
    problems: list[Problem] = []
    notes: list[str] = []
    before: list[Layout] = []
    after: list[Layout] = []


class Told(msgspec.Struct):
    """What the program's process has told of one query.

    Attributes:
        begun: whether its dry run was started.
        done: whether its batch is complete.
        error: why it is not.
        unseen: where it keeps its checkpoint, if that is not in the job.
        settings: of its session, as far as a checkpoint has them as well.
        sources: how each source describes itself.
        names: of the sources, if the program has named them.
        waiting: whether the program waits for its queries to end; told of no query.
    """

    begun: bool = False
    done: bool = False
    error: str | None = None
    unseen: str | None = None
    settings: dict[str, str] = {}
    sources: list[str] = []
    names: list[str] = []
    waiting: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more will be told of it."""
        return self.done or self.waiting or self.error is not None or (self.unseen is not None and not self.begun)


class End(msgspec.Struct, frozen=True):
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


def judge(copy: Copy, said: Told, after: Mapping[int, Layout], end: End) -> Verdict:
    """Judge one query.

    Args:
        copy: its checkpoint.
        said: what was told of it.
        after: the operators with state that its dry run has planned; empty if it has not come to that.
        end: how the dry run has ended.
    """
    notes = [f"The checkpoint's setting stays: {each}." for each in differing(copy.offsets.settings, said.settings)]
    problems = []
    planned = said.done or bool(after)
    if planned:
        problems += [
            Problem(f"state: {each.kind.value}", each.text, each.remedy, each.silent)
            for each in changes(copy.layouts, after)
        ]
    if problems and _only_renumbered(copy, after):
        notes.append(
            "Its operators have other numbers, and nothing else: `ha adopt --map` makes a checkpoint that fits."
        )
    if said.error is not None and not problems:
        problems.append(_error(copy.query, said.error))
    if said.done:
        problems += _sources(copy, said)
        gone, new = _changed_names(copy, said)
        if gone and new:
            problems.append(Problem("sources", _NAMES.format(", ".join(new), ", ".join(gone)), _RENAMED, silent=True))
        else:
            notes += [f"Source {each} is new: it is read from its beginning." for each in new]
            notes += [f"Source {each} is gone; what was read of it stays noted." for each in gone]
        if not copy.replayed:
            notes.append("The batch before was not there any more, so the batch was done with new input.")
    elif said.error is None:
        problems.append(_unfinished(copy, said, end))
    return Verdict(
        *(copy.query, not problems, copy.batch if said.done else None, problems, notes),
        *(list(copy.layouts.values()), list(after.values()) if planned else []),
    )


def _only_renumbered(copy: Copy, after: Mapping[int, Layout]) -> bool:
    try:
        match(copy.layouts, after)
    except Doubt:
        return False
    return True


def _error(query: str, text: str) -> Problem:
    found = failure(query, text.partition("=== Streaming Query ===")[0])
    return Problem("error", found.error, found.remedy or "correct the program, and check it again")


def _unfinished(copy: Copy, said: Told, end: End) -> Problem:
    if said.begun:
        more = "allow more time with --timeout"
        if not copy.replayed:
            more += "; it needs new input, because the batch before the newest one cannot be done again"
        return Problem("time", f"Batch {copy.batch} did not get complete: {end.text}", more)
    if said.unseen:
        return Problem(
            "location",
            f"The program keeps its checkpoint at {said.unseen}, so it would begin anew there.",
            "let it keep its checkpoint below the leader directory",
        )
    if end.error is not None:
        text = f"The program has not started it: {end.text} {end.error.error}"
        return Problem("ended", text, end.error.remedy or "correct the program, or give it what it needs on this host")
    return Problem(
        "missing",
        f"The program has not started it: {end.text}",
        "if it has another name now, give it its old one; if the program has it no more, say --without "
        f"{copy.query}, or remove its checkpoint with `ha sweep --remove {copy.query}`",
    )


def _changed_names(copy: Copy, said: Told) -> tuple[list[str], list[str]]:
    """Return the names that only the checkpoint has, and those that only the program has; none without names."""
    if not copy.offsets.named or not said.names:
        return [], []
    before = [name for name, offset in copy.offsets.sources.items() if offset is not None]
    return [each for each in before if each not in said.names], [each for each in said.names if each not in before]


def _sources(copy: Copy, said: Told) -> list[Problem]:
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
            found.append(Problem("sources", text, _SOURCES, silent=True))
    return found


def _below(file: str, place: str) -> bool:
    """Whether a file is in a directory, or matches a pattern, at whatever depth."""
    path, folder = (re.sub(r"^(\w+):/+", r"\1:/", each) for each in (file, place.rstrip("/")))
    return path.startswith(f"{folder}/") or any(fnmatch.fnmatchcase(path, each) for each in (folder, f"{folder}/*"))
