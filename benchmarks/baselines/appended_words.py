"""Count of the words that the baselines' driver has appended.

python -m benchmarks.baselines.appended_words URI     prints it as JSON
"""

import json
import sys
from collections import Counter

from store.bounded import BoundedFiles
from store.errors import NotFound
from store.files import Files
from store.open import open_files

MAX_BYTES = 64_000_000  # Of one output file
TIMEOUT_S = 120.0  # For all of them


def read_counts(files: BoundedFiles, directory: str) -> Counter[str]:
    """Count the words in all files that Spark has committed; nothing if there is no such directory."""

    def read(driver: Files) -> Counter[str]:
        counts: Counter[str] = Counter()
        for entry in driver.list(directory):
            if entry.name.endswith(".json") and entry.name[0] not in "_.":
                lines = driver.read(f"{directory}/{entry.name}", MAX_BYTES).splitlines()
                counts.update(json.loads(line)["word"] for line in lines)
        return counts

    try:
        return files.call("counts", read, TIMEOUT_S)
    except NotFound:
        return Counter()


def main() -> None:
    root, _, directory = sys.argv[1].rstrip("/").rpartition("/")
    with open_files(root) as files:
        json.dump({"words": read_counts(files, directory)}, sys.stdout)


if __name__ == "__main__":
    main()
