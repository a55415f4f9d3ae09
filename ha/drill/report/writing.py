"""Writing a report into a folder: report.json, index.html and events/*.jsonl.

Each file is replaced as a whole, so a browser or a query never sees half of one. The page comes last, when everything
that it links to is there. Other files in the folder stay.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ha.drill.outcome import DrillOutcome, Key, Report
from ha.drill.report import pages
from ha.history import events as lines
from ha.history.events import Event
from ha.program.files import replace

Histories = Mapping[Key, Sequence[Event]] | Mapping[tuple[str, str, str], Sequence[Event]]
"""The events of each drill, by its name, its environment and its HA provider."""


def write(report: Report, histories: Histories, folder: Path) -> Report:
    """Write a report and the histories of its drills, and return it with the names of the files of events."""
    # An outcome without a history here keeps the one that the folder has of it. So a report that was read can be
    # written again, alone or together with new outcomes.
    # ValueError: two outcomes have the same key, or a file of events that is to be kept holds none.
    keys = [Key.of(outcome) for outcome in report.outcomes]
    if len({key.events for key in keys}) < len(keys):
        raise ValueError("Two outcomes of a report are of the same drill, environment and provider.")
    (folder / "events").mkdir(parents=True, exist_ok=True)
    found = {key: _history(outcome, histories, folder) for key, outcome in zip(keys, report.outcomes, strict=True)}
    outcomes = [
        msgspec.structs.replace(outcome, events=key.events if found[key] else "")
        for key, outcome in zip(keys, report.outcomes, strict=True)
    ]
    report = msgspec.structs.replace(report, outcomes=outcomes)
    replace(folder / "report.json", encode(report))
    replace(folder / "index.html", pages.render(report, found).encode("utf-8", "replace"))
    return report


def read(folder: Path) -> Report:
    """Read the report of a folder; ``ValueError`` if what is there is not one."""
    try:
        return msgspec.json.decode((folder / "report.json").read_bytes(), type=Report)
    except msgspec.MsgspecError as error:
        raise ValueError(f"report.json is not a report of drills: {error}.") from error


def _history(outcome: DrillOutcome, histories: Histories, folder: Path) -> Sequence[Event]:
    key = Key.of(outcome)
    path = folder / key.events
    if events := histories.get(key):
        ordered = sorted(events, key=lambda event: event.at)
        replace(path, b"".join(map(lines.encode, ordered)))
        return ordered
    # Its name is not taken from the report, which may come from anywhere.
    if events is not None or not outcome.events or not path.exists():
        return []
    with path.open("rb") as file:
        return list(lines.decode(file))


def encode(result: Report | Sequence[DrillOutcome]) -> bytes:
    """Return a report, or the outcomes alone, as JSON for people and machines."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"
