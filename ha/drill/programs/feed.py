"""Puts text files into the input directory of a job, one after the other, whatever is broken meanwhile.

    python -m ha.drill.programs.feed --input URI --every S --folder DIR

It tells what is there in ``DIR/fed.jsonl``, one number a line, and ends when ``DIR/_STOP`` exists, or after so many
files: then it puts the job's own stop marker in place. A call whose outcome is unknown is made again until it is known.
"""

import argparse
import random
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from store.bounded import BoundedFiles
from store.errors import AlreadyExists, StoreError
from store.files import Files
from store.opening import open_files

WORDS = 150
"""In each file."""

STOP = "_STOP"
FED = "fed.jsonl"
RETRY = 0.5
CALL_TIMEOUT = 15.0
PATIENCE = 300.0
"""Seconds for one file: longer than any fault of a drill lasts."""

_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


def text(number: int) -> str:
    """Return what the file of that number holds: always the same."""
    dice = random.Random(number)  # noqa: S311  # words, not secrets
    words = ("".join(dice.choices(_SYLLABLES[: 5 + number % 40], k=2)) for _ in range(WORDS))
    return " ".join(words) + "\n"


def main() -> int:
    """Feed until told to stop."""
    parser = argparse.ArgumentParser(description="Feed a job with text files.")
    parser.add_argument("--input", required=True, metavar="URI")
    parser.add_argument("--every", type=float, default=0.5, metavar="S", help="seconds between two files (%(default)s)")
    parser.add_argument("--files", type=int, default=10**9, metavar="N", help="end after so many")
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR", help="of the drill")
    options = parser.parse_args()
    root, job, name = options.input.rstrip("/").rsplit("/", 2)
    files = open_files(root)
    _insist(lambda: files.call("prepare", lambda driver: _prepare(driver, f"{job}/{name}"), CALL_TIMEOUT), name)
    pause = threading.Event()
    number = 0
    with (options.folder / FED).open("a", encoding="ascii") as fed:
        while number < options.files and not (options.folder / STOP).exists():
            _put(files, f"{job}/{name}/{number:05d}.txt", text(number).encode())
            fed.write(f"{number}\n")
            fed.flush()
            number += 1
            pause.wait(options.every)
    _put(files, f"{job}/{name}/{STOP}", b"")
    files.close()
    return 0


def _prepare(driver: Files, path: str) -> None:
    driver.make_root()
    for directory in (path.rpartition("/")[0], path):
        with suppress(AlreadyExists):
            driver.make_directory(directory)


def _put(files: BoundedFiles, path: str, data: bytes) -> None:
    def write(driver: Files) -> None:
        try:
            driver.write(path, data)
        except AlreadyExists:
            return  # an earlier try whose answer was lost

    _insist(lambda: files.call("feed", write, CALL_TIMEOUT), path)


def _insist(call: Callable[[], None], what: str) -> None:
    pause, tries = threading.Event(), int(PATIENCE / RETRY)
    for left in reversed(range(tries)):
        try:
            return call()
        except StoreError as error:
            sys.stderr.write(f"{what} is not there yet: {error}\n")
            if not left:
                raise
        pause.wait(RETRY)
    return None


if __name__ == "__main__":
    sys.exit(main())
