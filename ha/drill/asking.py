"""A drill's questions about its job, by the commands that people use, and the faults that it puts into its queries."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ha.drill.fixture import CONTENDERS, FAULTS, Fixture, Setup
from ha.drill.ha_provider import HYBRID, WORD_REGIONS
from ha.drill.judge import RECOVERY_SLACK_S, expected_words, wrong_words
from ha.history.events import Ran
from store.clock import now

ASK_S = 60.0  # until a command has ended: on a busy machine, Python alone takes some seconds to start

HA = ("python", "-m", "ha.cli")

STOP_GRACE = {"stop_grace": 10.0}
"""The default. A query that does not stop in time gives its region up; in a busy client of HDFS that takes seconds."""

PATIENT = Setup(
    settings=STOP_GRACE,
    program=WORD_REGIONS,
    others={"restart_strategy": "fixed-delay", "restart_attempts": "1000", "restart_delay": "1"},
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A query, as ``ha job queries`` shows it."""

    state: str | None
    restarts: int
    run_id: str | None
    error: str


def asked(fixture: Fixture, *arguments: str, seconds: float = ASK_S) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(fixture.environment.call([*HA, *arguments, "--json"], fixture.folder, seconds))


def client(fixture: Fixture, *arguments: str) -> Any:
    """Return what a program of :mod:`ha.drill.clients` prints as JSON."""
    command = ["python", "-m", "ha.drill.clients", *arguments]
    return json.loads(fixture.environment.call(command, fixture.folder, ASK_S))


def queries(fixture: Fixture) -> dict[str, Shown]:
    found = asked(fixture, "job", "queries", fixture.job.name)["queries"]
    return {
        each["query"]: Shown(each["state"], each["restarts"] or 0, each["run_id"], each["error"] or "")
        for each in found
    }


def state(fixture: Fixture) -> str:
    found = [each for each in asked(fixture, "job", "list") if each["job"] == fixture.job.name]
    return f"{found[0]['state']}" if found else ""


def poison(fixture: Fixture, query: str) -> None:
    """Let each batch of a query fail until :func:`heal`."""
    _trouble(fixture, query, "poison")


def trouble(fixture: Fixture, query: str, what: Literal["fail", "hang"]) -> int:
    """Let a batch of a query go wrong, and return its number once it does."""
    path = _trouble(fixture, query, what)
    fixture.wait_for(f"a batch of {query} to {what}", lambda: not path.exists())
    return int(path.with_name(f"{query}.met").read_text(encoding="ascii"))


def _trouble(fixture: Fixture, query: str, what: str) -> Path:
    path = fixture.folder / FAULTS / query
    staged = path.with_name(f"{query}.new")
    staged.write_text(what, encoding="ascii")
    staged.chmod(0o666)
    staged.rename(path)
    return path


def heal(fixture: Fixture, query: str) -> None:
    """Let nothing go wrong any more."""
    (fixture.folder / FAULTS / query).unlink()


def starts(fixture: Fixture, since: float) -> int:
    """Return how often a contender has started its command since a time."""
    return sum(isinstance(each, Ran) and each.running and each.at > since for each in fixture.observer.events)


def runs_of_late_contender(fixture: Fixture) -> int:
    """Start a contender that has nothing to do; return how often it has started its command until it ended."""
    since = now()
    late = fixture.contend(CONTENDERS[0])
    fixture.wait_for("the end of one that comes late", lambda: not late.running)
    return starts(fixture, since)


# --- checks


def check_untouched(fixture: Fixture, names: Iterable[str], before: Mapping[str, Shown], done: int) -> None:
    """Check that these queries have lost no batch: they run as before, and have completed ``done`` meanwhile."""
    after = queries(fixture)
    same = all(
        (after[name].run_id, after[name].restarts) == (before[name].run_id, before[name].restarts) for name in names
    )
    detail = f"{', '.join(names)}: {'the same run' if same else 'another run'}, {done} batches meanwhile"
    fixture.check("other queries lose no batch", same and done > 0, detail)


def check_named(fixture: Fixture, query: str, words: str) -> None:
    """Check that ``ha job exceptions`` names the query and the cause."""
    found = [each for each in asked(fixture, "job", "exceptions", fixture.job.name) if each["query"] == query]
    named = [each for each in found if words in each["message"]]
    last = found[-1]["message"].splitlines()[0] if found else "nothing"
    fixture.check("the root cause is named", bool(named), f"{len(named)} times; the last of {query}: {last[:120]}")


def check_recovered(fixture: Fixture, began: float, limit: float, promise: str) -> None:
    """Check that the time from the fault until now has kept its bound."""
    took = now() - began
    fixture.measures |= {"takeover_seconds": round(took, 3), "takeover_bound_seconds": round(limit, 3)}
    detail = f"{took:.1f} s until the next batch, promised within {limit:.1f} s ({promise})"
    fixture.check("recovered in time", took <= limit + RECOVERY_SLACK_S, detail)


def check_words(fixture: Fixture, name: str, output: str, what: str) -> None:
    """Check that an output beside the job's own counts every word of the input once, after all was fed."""
    results = fixture.environment.call([*HYBRID.results, output], fixture.folder, ASK_S)
    counted, expected = Counter(json.loads(results)["words"]), expected_words(fixture.observer.fed())
    wrong = wrong_words(counted, expected)
    fixture.check(name, not wrong, f"{what}: {counted.total()} counted, {expected.total()} expected, {wrong} wrong")
