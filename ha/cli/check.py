"""``ha lab check``: checks the recorded history of the processes of one host against the protocol's guarantees."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ha.cli.context import Context, command
from ha.cli.options import flag_option
from ha.history import edits
from ha.history.checker import GUARANTEES, check
from ha.history.events import (
    Believed,
    CheckpointsRead,
    Completed,
    Counted,
    Event,
    Granted,
    LookedUp,
    Stored,
    Violation,
    load,
)
from ha.history.timeline import timeline
from store.open import normal

_SHOWN = {
    "S1": ("at most one contender believes that it leads, or that no other can", (Believed,)),
    "S2": ("a process writes only under its own epoch", (Stored,)),
    "S3": ("epochs only increase", (Granted, Stored)),
    "S4": ("each checkpoint id is used once; checkpoints never go back", (Counted, Completed, CheckpointsRead)),
    "S5": ("nothing that was acknowledged is lost", (Counted, Completed)),
    "R1": ("no reader is told an older epoch than before", (LookedUp,)),
    "R2": ("every answer was published before it was given", (LookedUp,)),
}
"""The guarantees in words, and the kinds of events that can show a violation."""


class Unusable(click.ClickException):
    """There is nothing to check."""

    exit_code = 2


@command("check")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--job", help="Check only the events of this job.  [default: all jobs]")
@click.option(
    "--edits",
    "segments",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A segment of the NameNode's edit log, as printed by `hdfs oev -p xml`. Give all segments of the time span.",
)
@flag_option("--timeline", "First print all changes in the order of time.", name="with_timeline")
def check_history(
    context: Context, directory: Path, job: str | None, segments: tuple[Path, ...], with_timeline: bool
) -> None:
    """Check the history that processes with the setting `history` have written into DIR.

    Exits with 0 if the history violates no guarantee, with 1 if it violates one, with 2 if there is nothing to check.
    All processes must have run on one host, because only they share a clock.
    """
    events = _events(context, directory, segments)
    events = [event for event in events if job is None or event.job in ("", job)]
    if not any(event.job for event in events):
        raise Unusable(f"There are no events{f' of job {job!r}' if job else ''} in {directory}: was `history` set?")
    violations = check(events, tolerance=edits.TOLERANCE)
    shown = timeline(events, violations) if with_timeline else ()
    context.show(_fields(events, violations), chain(shown, _lines(events, violations)))
    click.get_current_context().exit(1 if violations else 0)


def _events(context: Context, directory: Path, segments: Sequence[Path]) -> list[Event]:
    try:
        events = load(directory)
        if segments:
            texts = [segment.read_text(encoding="utf-8") for segment in segments]
            events += edits.stored(texts, normal(context.settings.stores.files))
            events.sort(key=lambda event: event.at)
    except OSError as error:
        raise Unusable(f"{error.filename} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise Unusable(f"{directory} holds no history: {error}") from error
    return events


def _kinds(events: Sequence[Event]) -> dict[str, int]:
    return dict(sorted(Counter(type(event).__name__ for event in events).items()))


def _fields(events: Sequence[Event], violations: Sequence[Violation]) -> dict[str, Any]:
    return {
        "events": len(events),
        "kinds": _kinds(events),
        "seconds": round(events[-1].at - events[0].at, 3),
        "jobs": {job: _job([event for event in events if event.job == job]) for job in _jobs(events)},
        "checked": {name: _seen(events, name) for name in GUARANTEES},
        "violations": violations,
    }


def _jobs(events: Sequence[Event]) -> list[str]:
    return sorted({event.job for event in events} - {""})


def _job(events: Sequence[Event]) -> dict[str, int]:
    return {
        "grants": sum(isinstance(event, Granted) for event in events),
        "contenders": len({event.contender for event in events if isinstance(event, Believed)}),
        "readers": len({event.reader for event in events if isinstance(event, LookedUp)}),
        "lookups": sum(isinstance(event, LookedUp) for event in events),
        "changes": sum(isinstance(event, Stored) for event in events),
    }


def _seen(events: Sequence[Event], guarantee: str) -> int:
    """The number of events that could have shown a violation of the guarantee."""
    if guarantee == "S2":  # HDFS does not say who sent a change
        return sum(isinstance(event, Stored) and event.by != "" for event in events)
    _, kinds = _SHOWN[guarantee]
    return sum(isinstance(event, kinds) for event in events)


def _lines(events: Sequence[Event], violations: Sequence[Violation]) -> Iterator[str]:
    kinds = ", ".join(f"{kind} {number}" for kind, number in _kinds(events).items())
    yield f"{len(events)} events in {events[-1].at - events[0].at:.1f} s: {kinds}."
    for job in _jobs(events):
        counts = _job([event for event in events if event.job == job])
        yield f"{job}: " + ", ".join(f"{name} {number}" for name, number in counts.items()) + "."
    for guarantee in GUARANTEES:
        seen = _seen(events, guarantee)
        broken = sum(found.guarantee == guarantee for found in violations)
        verdict = f"broken {broken} times" if broken else "kept" if seen else "not seen"
        yield f"  {guarantee}  {verdict:14s} {seen:7d} events  {_SHOWN[guarantee][0]}"
    for found in violations:
        yield f"{found.guarantee} is broken at {found.at:.3f}: {found.sentence}"
