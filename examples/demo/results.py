"""What the job has written: its batches, and the counts in them."""

import json
import re
from collections import Counter

from store.bounded import BoundedFiles
from store.errors import NotFound
from store.files import Files

LARGEST = 64_000_000
"""Bytes of one output file."""

_BATCH = re.compile(r"batch=(\d+)")


def word_pattern() -> "re.Pattern[str]":
    """What the driver takes for a word, written once more for Python."""
    return re.compile(r"[a-z0-9']+")


def batches_done(files: BoundedFiles, directory: str) -> int:
    """How many batches have been published."""
    try:
        entries = files.call("batches", lambda driver: driver.list(directory), 5.0)
    except NotFound:
        return 0
    return sum(_BATCH.fullmatch(entry.name) is not None for entry in entries)


def read_counts(files: BoundedFiles, directory: str) -> tuple[Counter[str], Counter[str]]:
    """Return each word's count, as the last batch that changed it says, and how often which job master was named."""

    def read(driver: Files) -> tuple[Counter[str], Counter[str]]:
        counts: Counter[str] = Counter()
        job_masters: Counter[str] = Counter()
        found = [match for entry in driver.list(directory) if (match := _BATCH.fullmatch(entry.name))]
        for match in sorted(found, key=lambda match: int(match[1])):
            for part in driver.list(f"{directory}/{match[0]}"):
                if part.name.endswith(".json"):
                    for line in driver.read(f"{directory}/{match[0]}/{part.name}", LARGEST).splitlines():
                        row = json.loads(line)
                        counts[row["word"]] = row["count"]
                        job_masters[row["job_master"]["address"]] += 1
        return counts, job_masters

    return files.call("counts", read, 120.0)
