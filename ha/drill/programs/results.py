"""What the word count has written: its batches, and the counts in them.

python -m ha.drill.programs.results URI     prints them as JSON
"""

import json
import re
import sys
from collections import Counter

from store.bounded import BoundedFiles
from store.errors import NotFound
from store.files import Files
from store.opening import open_files

LARGEST = 64_000_000
"""Bytes of one output file."""

_BATCH = re.compile(r"batch=(\d+)")
_WORD = re.compile(r"[a-z0-9']+")


def words(text: str) -> list[str]:
    """What the driver takes for words, written once more for Python."""
    return _WORD.findall(text.lower())


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


def main() -> None:
    """Print the counts of an output directory."""
    root, _, directory = sys.argv[1].rstrip("/").rpartition("/")
    files = open_files(root)
    counts, job_masters = read_counts(files, directory)
    found = {"words": counts, "batches": batches_done(files, directory), "job_masters": job_masters}
    json.dump(found, sys.stdout)
    files.close()


if __name__ == "__main__":
    main()
