"""Report of the benchmarks: ``benchmarks.json`` holds everything; ``benchmarks.md`` and pictures are made from it."""

import json
import math
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import catalogue
from benchmarks.figures import text
from benchmarks.machine import Machine
from benchmarks.result import Result, Target

JSON = "benchmarks.json"
MARKDOWN = "benchmarks.md"

WIDTH = 120
HEADING = "## "
MET, MISSED = "met", "**NOT met**"

_ENDLESS = {text(value): value for value in (math.nan, math.inf)}

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark's run. With ``--merge`` a report may have entries of several runs.

    Attributes:
        when: its start on the wall clock; for display only.
        command: the command line of the run.
        machine: the machine of the run.
        result: the result.
    """

    when: str
    command: str
    machine: Machine
    result: Result


def write(folder: Path, entries: Sequence[Entry], *, merge: bool = False) -> None:
    """Write the report.

    Args:
        folder: created if it does not exist.
        entries: of this run.
        merge: whether to keep the other benchmarks' entries of an existing report.

    Raises:
        ValueError: the existing file is not a report.
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    new = {entry.result.name for entry in entries}
    kept = [entry for entry in load(folder) if entry.result.name not in new] if merge else []
    order = {name: number for number, name in enumerate(catalogue.names())}
    every = sorted([*kept, *entries], key=lambda entry: order.get(entry.result.name, len(order)))
    document = {"entries": [_document(entry) for entry in every]}
    (folder / JSON).write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for old in folder.glob("*.svg"):
        old.unlink()
    for entry in every:
        for picture in entry.result.pictures:
            _picture(folder, entry.result, picture.name).write_text(picture.svg + "\n", encoding="utf-8")
    (folder / MARKDOWN).write_text(markdown(every), encoding="utf-8")


def load(folder: Path) -> list[Entry]:
    """Read the entries of a report; none if there is none.

    Raises:
        ValueError: the file is not a report.
    """
    try:
        found = json.loads((folder / JSON).read_text(encoding="utf-8"))
        for target in [target for entry in found["entries"] for target in entry["result"]["targets"]]:
            if isinstance(target["measured"], str):
                target["measured"] = _ENDLESS[target["measured"]]
        return msgspec.convert(found["entries"], list[Entry])
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:  # msgspec's own are ValueErrors
        raise ValueError(f"{folder / JSON} is not a report of benchmarks ({error}).") from error


def publish(folder: Path, into: Path) -> None:
    """Put the benchmarks of a report, without the raw numbers, into a folder of documents; others stay there."""
    into.mkdir(parents=True, exist_ok=True)
    document = into / MARKDOWN
    sections = _sections(document.read_text(encoding="utf-8")) if document.exists() else {}
    sections |= _sections((folder / MARKDOWN).read_text(encoding="utf-8"))
    document.write_text(_whole(list(sections.values())), encoding="utf-8")
    for path in folder.glob("*.svg"):
        shutil.copy(path, into / path.name)
    shown = document.read_text(encoding="utf-8")
    for path in into.glob("*.svg"):
        if f"({path.name})" not in shown:
            path.unlink()


def markdown(entries: Sequence[Entry]) -> str:
    """Return the report as Markdown, each benchmark under its own heading."""
    return _whole([_section(entry) for entry in entries])


def _section(entry: Entry) -> str:
    result = entry.result
    blocks = [f"{HEADING}{_plain(result.title)}", _wrapped(_about(entry)), _table(result.columns, result.rows)]
    blocks += [_wrapped(_target(target)) for target in result.targets]
    if result.notes:
        blocks.append("\n".join(_wrapped(f"- {_plain(note)}", "  ") for note in result.notes))
    blocks += [f"![{_plain(p.title)}]({_picture(Path(), result, p.name)})" for p in result.pictures]
    return "\n\n".join(blocks) + "\n"


def _sections(document: str) -> dict[str, str]:
    """Return the sections of a report by their headings."""
    found = (HEADING + each for each in f"\n{document}".split(f"\n{HEADING}")[1:])
    return {each.partition("\n")[0]: each.strip("\n") + "\n" for each in found}


def _whole(sections: Sequence[str]) -> str:
    blocks = ["# Benchmarks\n"]
    met, missed = (sum(each.count(f"\nTarget {word}: ") for each in sections) for word in (MET, MISSED))
    if met + missed:
        blocks.append(f"{met} of {met + missed} targets were met.\n")
    return "\n".join([*blocks, *sections])


def _about(entry: Entry) -> str:
    machine = entry.machine
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    return (
        f"Measured {_plain(entry.when)} with `{entry.command}` on {machine.cores} cores ({_plain(machine.processor)}), "
        f"{machine.memory_gb:g} GB, load {machine.load:g} before; Linux {_plain(machine.kernel)}, "
        f"Python {machine.python}, {_plain(machine.java)}, {_plain(packages)}."
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    numbers = [
        bool(rows) and all(not isinstance(row[n], str) or row[n] in _ENDLESS for row in rows)
        for n in range(len(columns))
    ]
    lines = [
        [_plain(column) for column in columns],
        ["---:" if number else "---" for number in numbers],
        *([_plain(cell) if isinstance(cell, str) else text(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _target(target: Target) -> str:
    verdict = MET if target.met else MISSED
    bound = "at most" if target.at_most else "at least"
    measured = "not measured" if math.isnan(target.measured) else f"measured {text(target.measured)} {target.unit}"
    wanted = f"{bound} {text(target.wanted)} {target.unit}"
    return f"Target {verdict}: {_plain(target.sentence)} ({_plain(wanted)}; {_plain(measured)})"


def _picture(folder: Path, result: Result, name: str) -> Path:
    return folder / f"{result.name}-{name}.svg"


def _wrapped(said: str, indent: str = "") -> str:
    return textwrap.fill(said, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _plain(said: str) -> str:
    """Escape a text for Markdown, in one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(said.split())).replace("&", "&amp;")


def _document(entry: Entry) -> Any:
    """Return an entry as JSON data: a number that is not finite becomes a word in tables, and null in the raw data."""
    found = asdict(entry)
    result = found["result"]
    raw, said = _finite(result.pop("raw"), lambda _: None), _finite(found, text)
    said["result"]["raw"] = raw
    return said


def _finite(value: Any, instead: Callable[[float], Any]) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return instead(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(each, instead) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each, instead) for each in value]
    return value
