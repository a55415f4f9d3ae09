"""A second try: a retry buys a label, not a pass. And the ledger of tests that have needed one.

Tried again, at the end and alone, is a test of whole systems that failed in the form of a time-out, and that the change
has not touched. Two leaders, lost rows, a wrong value, a unit test or a dead process are never tried again.
"""

import json
import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from tests.gate.lane import ROOT, Result

LEDGER = Path(__file__).with_name("flaky.json")
MOST = 5
REMEMBERED = timedelta(days=14)
TIME_OUT = re.compile(
    r"(AssertionError: (not within|not so after|it did not end)|TooLateError|TimeoutExpired|TimeoutError)\b"
)
NEVER = re.compile(r"breaks a promise|violation|Fenced|two leaders|twice|lost", re.IGNORECASE)
NEVER_OF = (
    "tests/unit/",
    "tests/system/simulation/",
    "tests/system/exhaustive/",
    "tests/system/hostile/",
    "tests/system/flink_scenarios/",
)


def retried(failed: Sequence[Result], touched: Collection[str]) -> list[Result]:
    """Return the failures to try again: all of them, or none.

    Args:
        failed: the tests that failed.
        touched: files that the change has touched.
    """
    allowed = [each for each in failed if may_be_luck(each) and each.id.partition("::")[0] not in touched]
    return allowed if allowed == list(failed) and len(failed) <= MOST else []


def may_be_luck(result: Result) -> bool:
    return (
        not result.id.startswith(NEVER_OF)
        and bool(TIME_OUT.match(result.error))
        and not NEVER.search("\n".join([result.error, *re.findall(r"^E .*", result.text, re.MULTILINE)]))
    )


def git(*words: str) -> list[str]:
    """Return the words that git answers."""
    ended = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)  # noqa: S607
    return ended.stdout.split()


def touched_lately() -> set[str]:
    """Return the files of the commits of the last half a day before the newest one, and what is not committed."""

    newest = git("log", "-1", "--format=%ct")
    since = git("log", f"--since={int(newest[0]) - 43200}", "--name-only", "--format=") if newest else []
    return {*since, *changed()}


def changed() -> list[str]:
    """Return the files that are not as they are committed, new ones among them."""
    return [*git("diff", "--name-only", "HEAD"), *git("ls-files", "--others", "--exclude-standard")]


def known(ledger: Path = LEDGER) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ledger.read_text()) if ledger.exists() else []
    return found


def too_often(test: str, today: date, entries: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a test has needed a second try in the last 14 days already."""
    return any(each["test"] == test and today - date.fromisoformat(each["date"]) < REMEMBERED for each in entries)


def entered(result: Result, commit: str, today: date, machine: str, ledger: Path = LEDGER) -> None:
    """Enter a test that passed on its second try."""
    line = {
        "test": result.id,
        "date": today.isoformat(),
        "commit": commit,
        "error": result.error.splitlines()[0][:200],
        "machine": machine,
    }
    ledger.write_text(json.dumps([*known(ledger), line], indent=1) + "\n")
