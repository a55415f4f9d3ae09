"""Writing a report into a folder: report.json, index.html, report.md and events/*.parquet.

Each file is replaced as a whole, so a browser or a query never sees half of one. The page comes last, when everything
that it links to is there. Other files in the folder stay.
"""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ha.drill.outcome import Outcome, Report
from ha.drill.report import pages
from ha.drill.report.lanes import window
from ha.drill.report.picture import timeline
from ha.drill.report.tables import Key, read_events, write_events
from ha.history.events import Event

Histories = Mapping[Key, Sequence[Event]] | Mapping[tuple[str, str, str], Sequence[Event]]
"""The events of each drill, by its name, its environment and its HA provider."""


def write(report: Report, histories: Histories, folder: Path) -> Report:
    """Write a report with everything that belongs to it.

    An outcome without a history here keeps the one that the folder has of it. So a report that was read can be written
    again, alone or together with new outcomes.

    Args:
        report: its outcomes differ in drill, environment or provider.
        histories: the events of its drills; may be empty.
        folder: made if it is not there.

    Returns:
        The report as it was written, with the names of the files of events.

    Raises:
        ValueError: two outcomes have the same key, or a file of events that is to be kept holds none.
        OSError: something cannot be written or read.
    """
    keys = [Key.of(outcome) for outcome in report.outcomes]
    if len({key.table for key in keys}) < len(keys):
        raise ValueError("Two outcomes of a report are of the same drill, environment and provider.")
    (folder / "events").mkdir(parents=True, exist_ok=True)
    found = {key: _history(outcome, histories, folder) for key, outcome in zip(keys, report.outcomes, strict=True)}
    outcomes = [
        msgspec.structs.replace(outcome, events=key.table if found[key] else "")
        for key, outcome in zip(keys, report.outcomes, strict=True)
    ]
    report = msgspec.structs.replace(report, outcomes=outcomes)
    _replace(folder / "report.json", lambda path: path.write_bytes(encode(report)))
    _replace(folder / "report.md", lambda path: _write_text(path, pages.table(report)))
    text = pages.render(report, _pictures(outcomes, found))
    _replace(folder / "index.html", lambda path: _write_text(path, text))
    return report


def read(folder: Path) -> Report:
    """Read the report of a folder.

    Raises:
        ValueError: what is there is not a report.
        OSError: it cannot be read.
    """
    try:
        # A duration can be endless, which JSON has no number for: see _finite.
        return msgspec.convert(msgspec.json.decode((folder / "report.json").read_bytes()), Report, strict=False)
    except msgspec.MsgspecError as error:
        raise ValueError(f"report.json is not a report of drills: {error}.") from error


def _history(outcome: Outcome, histories: Histories, folder: Path) -> Sequence[Event]:
    key = Key.of(outcome)
    path = folder / key.table
    events = histories.get(key)
    if events:
        _replace(path, lambda staged: write_events(events, key, staged))
        return events
    # Its name is not taken from the report, which may come from anywhere.
    return read_events(path) if events is None and outcome.events and path.exists() else []


def _pictures(outcomes: Sequence[Outcome], found: Mapping[Key, Sequence[Event]]) -> dict[Key, str]:
    """A timeline for each drill that ran; those of one drill share a time axis, so that they can be compared."""
    ran = [outcome for outcome in outcomes if outcome.status != "skipped"]
    longest: dict[str, float] = {}
    for outcome in ran:
        seconds = window(outcome, found[Key.of(outcome)]).seconds
        longest[outcome.drill] = max(longest.get(outcome.drill, 0.0), seconds)
    return {Key.of(each): timeline(each, found[Key.of(each)], longest[each.drill]) for each in ran}


def encode(result: Report | Sequence[Outcome]) -> bytes:
    """Return a report, or the outcomes alone, as JSON for people and machines."""
    return msgspec.json.format(msgspec.json.encode(_finite(msgspec.to_builtins(result))), indent=2) + b"\n"


def _finite(value: Any) -> Any:
    """The same without numbers that JSON does not have: they become the texts that they are read from again."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "replace"))


def _replace(path: Path, write_to: Callable[[Path], object]) -> None:
    """Write a file beside its place, and put it there when it is whole."""
    staged = path.with_name(f".{secrets.token_hex(4)}.tmp")
    try:
        write_to(staged)
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)
