"""Programs beside the job of a drill: one feeds its input, one looks up its leader, one counts its output.

    python -m ha.drill.clients feed URI DIR S
    python -m ha.drill.clients read JOB S TIMEOUT
    python -m ha.drill.clients results URI
    python -m ha.drill.clients savepoints URI
    python -m ha.drill.clients files URI
    python -m ha.drill.clients rename ROOT SOURCE TARGET

``feed`` puts a text file into the input directory every S seconds, whatever is broken meanwhile. It writes the numbers
of these files into ``DIR/fed.jsonl``, one a line, and ends when ``DIR/_STOP`` exists; then it puts
the job's own stop marker in place. It repeats a call whose outcome is unknown until it is known. ``read`` looks up the
leader every S seconds until its process ends; the answers go into the history (``HA_HISTORY``). The others print JSON:
``results`` the batches that the word count has written and the counts in them, ``savepoints`` the names in a directory
of savepoints, each with its queries, or null if it is not complete, ``files`` the paths of all files below a directory.
``rename`` moves one, both paths below a root.
"""

import json
import random
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import ha
from ha.checkpoints.trees import Tree
from ha.config.sources import load
from ha.config.stores import Stores
from ha.spark.savepoints.places import MANIFEST
from leader.errors import LeaderError
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, NotFound, StoreError
from store.files import Files

WORDS_PER_FILE = 150
STOP = "_STOP"
FED = "fed.jsonl"

RETRY_S = 0.5
CALL_TIMEOUT_S = 15.0
FILE_LIMIT_S = 300.0  # for one file: longer than any fault of a drill lasts

LIST_TIMEOUT_S = 5.0
COUNT_TIMEOUT_S = 120.0
MAX_BYTES = 64_000_000  # of one output file

_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
_BATCH = re.compile(r"batch=(\d+)")
_WORD = re.compile(r"[a-z0-9']+")


def text(number: int) -> str:
    """Return the content of the file of that number: always the same."""
    rng = random.Random(number)  # noqa: S311  # words, not secrets
    found = ("".join(rng.choices(_SYLLABLES[: 5 + number % 40], k=2)) for _ in range(WORDS_PER_FILE))
    return " ".join(found) + "\n"


def words(text: str) -> list[str]:
    """Return the words of a text as the driver splits it, written once more for Python."""
    return _WORD.findall(text.lower())


def _open(root: str) -> BoundedFiles:
    """Open a directory, logged in as the settings say."""
    return Stores(load({"zookeeper": "", "history": "", "snapshots": "off"})).open(root)


# --- feed


def feed(uri: str, folder: str, every: str) -> None:
    root, job, name = uri.rstrip("/").rsplit("/", 2)
    files = _open(root)
    _until_done(lambda: files.call("prepare", lambda driver: _prepare(driver, f"{job}/{name}"), CALL_TIMEOUT_S), name)
    pause, number = threading.Event(), 0
    with Path(folder, FED).open("a", encoding="ascii") as fed:
        while not Path(folder, STOP).exists():
            _put(files, f"{job}/{name}/{number:05d}.txt", text(number).encode())
            fed.write(f"{number}\n")
            fed.flush()
            number += 1
            pause.wait(float(every))
    _put(files, f"{job}/{name}/{STOP}", b"")
    files.close()


def _prepare(driver: Files, path: str) -> None:
    driver.make_root()
    for directory in (path.rpartition("/")[0], path):
        with suppress(AlreadyExists):
            driver.make_directory(directory)


def _put(files: BoundedFiles, path: str, data: bytes) -> None:
    def write(driver: Files) -> None:
        with suppress(AlreadyExists):  # an earlier attempt whose answer was lost
            driver.write(path, data)

    _until_done(lambda: files.call("feed", write, CALL_TIMEOUT_S), path)


def _until_done(call: Callable[[], None], what: str) -> None:
    pause, tries = threading.Event(), int(FILE_LIMIT_S / RETRY_S)
    for left in reversed(range(tries)):
        try:
            return call()
        except StoreError as error:
            sys.stderr.write(f"{what} is not there yet: {error}\n")
            if not left:
                raise
        pause.wait(RETRY_S)
    return None


# --- read


def read(job: str, every: str, timeout: str) -> None:
    client, pause = ha.connect(), threading.Event()
    while True:
        with suppress(LeaderError):  # the history has it
            client.leader(job, timeout=float(timeout))
        pause.wait(float(every))


# --- results


def batches_done(files: BoundedFiles, directory: str) -> int:
    try:
        entries = files.call("batches", lambda driver: driver.list(directory), LIST_TIMEOUT_S)
    except NotFound:
        return 0
    return sum(_BATCH.fullmatch(entry.name) is not None for entry in entries)


def read_counts(files: BoundedFiles, directory: str) -> tuple[Counter[str], Counter[str]]:
    """Return each word's count, taken from the last batch that changed it, and how often each job master is named."""

    def read(driver: Files) -> tuple[Counter[str], Counter[str]]:
        counts: Counter[str] = Counter()
        job_masters: Counter[str] = Counter()
        found = [match for entry in driver.list(directory) if (match := _BATCH.fullmatch(entry.name))]
        for match in sorted(found, key=lambda match: int(match[1])):
            for part in driver.list(f"{directory}/{match[0]}"):
                if part.name.endswith(".json"):
                    for line in driver.read(f"{directory}/{match[0]}/{part.name}", MAX_BYTES).splitlines():
                        row = json.loads(line)
                        counts[row["word"]] = row["count"]
                        if "job_master" in row:
                            job_masters[row["job_master"]["address"]] += 1
        return counts, job_masters

    return files.call("counts", read, COUNT_TIMEOUT_S)


def results(output: str) -> None:
    root, _, directory = output.rstrip("/").rpartition("/")
    with _open(root) as files:
        counts, job_masters = read_counts(files, directory)
        found = {"words": counts, "batches": batches_done(files, directory), "job_masters": job_masters}
    json.dump(found, sys.stdout)


# --- savepoints


def savepoints(uri: str) -> None:
    root, _, directory = uri.rstrip("/").rpartition("/")

    def read(driver: Files) -> dict[str, list[str] | None]:
        found: dict[str, list[str] | None] = {}
        with suppress(NotFound):
            for entry in driver.list(directory):
                found[entry.name] = None
                with suppress(NotFound):
                    said = json.loads(driver.read(f"{directory}/{entry.name}/{MANIFEST}", MAX_BYTES))
                    found[entry.name] = [each["name"] for each in said["queries"]]
        return found

    with _open(root) as files:
        json.dump(files.call("savepoints", read, COUNT_TIMEOUT_S), sys.stdout)


# --- files


def files(uri: str) -> None:
    with _open(uri) as found:
        json.dump(sorted(Tree(found).listing()), sys.stdout)


def rename(uri: str, source: str, target: str) -> None:
    """Move a file; make the directories above its new name."""

    def move(driver: Files) -> None:
        for end in [place for place, letter in enumerate(target) if letter == "/"]:
            with suppress(AlreadyExists):
                driver.make_directory(target[:end])
        driver.rename(source, target)

    with _open(uri) as root:
        json.dump(root.call("rename", move, CALL_TIMEOUT_S), sys.stdout)


PROGRAMS: dict[str, Callable[..., None]] = {
    each.__name__: each for each in (feed, read, results, savepoints, files, rename)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
