"""The report of failover drills in a folder: index.html for people, report.json and events/*.jsonl to be queried.

Each file is replaced as a whole, so a browser or a query never sees half of one. The page needs nothing but a browser,
and comes last, when everything that it links to is there. Other files in the folder stay.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
import msgspec

from ha.drill.outcome import DrillOutcome, Key, Report, Status
from ha.history.events import Event, decode
from ha.history.events import encode as encode_event
from ha.history.timeline import timeline
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
    replace(folder / "index.html", render(report, found).encode("utf-8", "replace"))
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
        replace(path, b"".join(map(encode_event, ordered)))
        return ordered
    # Its name is not taken from the report, which may come from anywhere.
    if events is not None or not outcome.events or not path.exists():
        return []
    with path.open("rb") as file:
        return list(decode(file))


def encode(result: Report | Sequence[DrillOutcome]) -> bytes:
    """Return a report, or the outcomes alone, as JSON for people and machines."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"


# --- the page

FIRST = "hybrid-ha"
"""The HA provider that is shown first, and the only one whose failures count; others follow as they ran."""

VERDICTS: dict[Status, str] = {"failed": "FAILED", "skipped": "NOT RUN", "passed": "passed"}
"""Label of each status, the bad news first and in capitals."""


def render(report: Report, histories: Mapping[Key, Sequence[Event]]) -> str:
    """Return the whole HTML document; ``histories`` has the events of each outcome, by its key."""
    outcomes = arranged(report.outcomes)
    providers = dict.fromkeys(each.provider for each in outcomes)
    return _pages.get_template("page.html.j2").render(
        report=report,
        outcomes=outcomes,
        verdicts=VERDICTS,
        tallies={each: tally(each, outcomes) for each in sorted(providers, key=lambda each: each != FIRST)},
        timelines={key.stem: "\n".join(timeline(events)) for key, events in histories.items()},
    )


def arranged(outcomes: Sequence[DrillOutcome]) -> list[DrillOutcome]:
    """Return outcomes as they are shown: groups and drills as they ran, the providers of one drill together."""
    groups = list(dict.fromkeys(each.group for each in outcomes))
    drills = list(dict.fromkeys(each.drill for each in outcomes))
    return sorted(
        outcomes,
        key=lambda one: (groups.index(one.group), drills.index(one.drill), one.environment, one.provider != FIRST),
    )


def tally(provider: str, outcomes: Sequence[DrillOutcome]) -> str:
    """Return the verdict on a provider in a few words, such as ``1 FAILED, 41 passed``."""
    counts = Counter(each.status for each in outcomes if each.provider == provider)
    return ", ".join(f"{counts[status]} {said}" for status, said in VERDICTS.items() if counts[status])


def why(outcome: DrillOutcome) -> str:
    """Return what failed, or why it was not run; empty if it passed."""
    failed = [f"{check.name}: {check.detail}" for check in outcome.checks if not check.passed]
    return "; ".join(filter(None, [outcome.reason.removeprefix("NOT RUN: "), *failed]))


def figure(outcome: DrillOutcome, name: str) -> str:
    """Return a measure with the unit that its name says, and with its bound; a dash if it was not measured."""
    measures = outcome.measures
    if name not in measures:
        return "\N{EN DASH}"
    if not name.endswith("_seconds"):
        return f"{measures[name]:,.0f}"
    bound = measures.get(f"{name.removesuffix('_seconds')}_bound_seconds")
    return _seconds(measures[name]) + (f" of {_seconds(bound)}" if bound is not None else "")


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 0.1 else f"{value:,.2f} s"  # noqa: PLR2004


_pages = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_pages.filters |= {"figure": figure, "stem": lambda outcome: Key.of(outcome).stem, "why": why}
