"""Report of the benchmarks: a JSON file and pictures for each, all of them in ``benchmarks.md``; and the machine."""

import json
import math
import os
import platform
import re
import shutil
import subprocess
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.figures import text
from benchmarks.result import Result, Target

PACKAGES = ("hybrid-ha", "kazoo", "hdfs-native", "hdfs", "pyspark")


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts about the machine that may influence figures."""

    processor: str  # its model
    cores: int  # number that this process may use
    memory_gb: float  # of the machine
    load: float  # average number of runnable processes in the minute before; other work disturbs the figures
    kernel: str  # its version
    python: str  # its version
    java: str  # its version
    packages: dict[str, str]  # version by name


def this_machine() -> Machine:
    return Machine(
        processor=_field("/proc/cpuinfo", "model name") or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / 2**20, 1),
        load=round(os.getloadavg()[0], 2),
        kernel=platform.release(),
        python=platform.python_version(),
        java=_java(),
        packages={name: _version(name) for name in PACKAGES},
    )


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    command = [str(Path(home, "bin", "java")) if home else "java", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return said.partition("\n")[0]


MARKDOWN = "benchmarks.md"

VERSIONS = "Versions and raw numbers are in the JSON files that a run writes."

WIDTH = 120
HEADING = "## "
MET, MISSED = "Met", "**NOT met**"

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark's run."""

    name: str  # of the benchmark
    title: str  # what it measures
    when: str  # its start on the wall clock; for display only
    command: str  # the command line of the run
    machine: Machine  # the machine of the run
    result: Result  # the result


def write(folder: Path, entry: Entry) -> None:
    """Write one benchmark's part of a report; other benchmarks' parts stay."""
    folder.mkdir(parents=True, exist_ok=True)
    result = entry.result
    document = json.dumps(_finite(asdict(entry)), indent=1, allow_nan=False)
    (folder / f"{entry.name}.json").write_text(f"{document}\n", encoding="utf-8")
    for old in folder.glob(f"{entry.name}-*.svg"):
        old.unlink()
    for picture in result.pictures:
        (folder / _picture(entry, picture.name)).write_text(picture.svg + "\n", encoding="utf-8")
    _add(_section(entry), folder / MARKDOWN)


def publish(folder: Path, into: Path) -> None:
    """Put the benchmarks of a report, without the raw numbers, into a folder of documents; others stay there."""
    into.mkdir(parents=True, exist_ok=True)
    _add((folder / MARKDOWN).read_text(encoding="utf-8"), into / MARKDOWN)
    for path in folder.glob("*.svg"):
        shutil.copy(path, into / path.name)
    shown = (into / MARKDOWN).read_text(encoding="utf-8")
    for document in folder.glob("*.json"):
        for path in into.glob(f"{document.stem}-*.svg"):
            if f"({path.name})" not in shown:
                path.unlink()


def _add(said: str, document: Path) -> None:
    """Put these sections into a document, in place of those with the same headings."""
    before = document.read_text(encoding="utf-8") if document.exists() else ""
    sections: dict[str, str] = {}
    for each in (*f"\n{before}".split(f"\n{HEADING}")[1:], *f"\n{said}".split(f"\n{HEADING}")[1:]):
        sections[each.partition("\n")[0]] = f"{HEADING}{each.strip(chr(10))}\n"
    found = "\n".join(sections.values())
    met, missed = (found.count(f"\n{word}: ") for word in (MET, MISSED))
    count = f"{met} of {met + missed} targets were met.\n{VERSIONS}\n\n" if met + missed else ""
    document.write_text(f"# Benchmarks\n\n{count}{found}", encoding="utf-8")


def _section(entry: Entry) -> str:
    result = entry.result
    blocks = [f"{HEADING}{_plain(entry.title)}", _wrapped(_about(entry)), _table(result.columns, result.rows)]
    blocks += [_wrapped(_target(target)) for target in result.targets]
    if result.notes:
        blocks.append("\n".join(_wrapped(f"- {_plain(note)}", "  ") for note in result.notes))
    blocks += [f"![{_plain(p.title)}]({_picture(entry, p.name)})" for p in result.pictures]
    return "\n\n".join(blocks) + "\n"


def _about(entry: Entry) -> str:
    machine = entry.machine
    command = re.sub(r" --docs| --report \S+", "", entry.command)
    return (
        f"Measured {_plain(entry.when)} with `{command}` on {machine.cores} cores ({_plain(machine.processor)}), "
        f"load {machine.load:g} before."
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    numbers = [bool(rows) and not any(isinstance(row[n], str) for row in rows) for n in range(len(columns))]
    lines = [
        [_plain(column) for column in columns],
        *([_plain(cell) if isinstance(cell, str) else text(cell) for cell in row] for row in rows),
    ]
    head, *body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, f"|{'|'.join('---:' if number else '---' for number in numbers)}|", *body])


def _target(target: Target) -> str:
    verdict = MET if target.met else MISSED
    bound = "at most" if target.at_most else "at least"
    measured = "not measured" if math.isnan(target.measured) else text(target.measured)
    return (
        f"{verdict}: {_plain(target.sentence)}: {measured} ({_plain(f'{bound} {text(target.wanted)} {target.unit}')})"
    )


def _picture(entry: Entry, name: str) -> str:
    return f"{entry.name}-{name}.svg"


def _wrapped(said: str, indent: str = "") -> str:
    return textwrap.fill(said, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _plain(said: str) -> str:
    """Escape a text for Markdown, in one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(said.split())).replace("&", "&amp;")


def _finite(value: Any) -> Any:
    """Return JSON data in which a number that is not finite is a word."""
    if isinstance(value, float) and not math.isfinite(value):
        return text(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
