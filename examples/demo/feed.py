"""Feed: puts real text into the input, from the licences and documents of the installed packages."""

import re
import sysconfig
import threading
from collections import Counter
from pathlib import Path

from ha.drill.clients import words
from store.bounded import BoundedFiles

LARGEST = 60_000
"""Longest file in bytes; longer documents are left out, so that a batch stays small."""

_NAMES = re.compile(r"(LICEN[CS]E|NOTICE|README|COPYING|AUTHORS|CHANGELOG).*|.*\.(txt|md|rst)", re.IGNORECASE)


def texts(count: int) -> list[str]:
    """Return so many texts, shortest names first; always the same ones on one machine."""
    found: list[str] = []
    seen: set[str] = set()
    for path in sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*"), key=lambda path: (len(path.parts), path)):
        if not _NAMES.fullmatch(path.name) or not path.is_file() or not 200 < path.stat().st_size < LARGEST:  # noqa: PLR2004
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if text not in seen:
            seen.add(text)
            found.append(text)
        if len(found) == count:
            break
    return found


class Feeder:
    """Puts one text after another into the input directory, until it is stopped."""

    def __init__(self, files: BoundedFiles, directory: str, sources: list[str], every: float) -> None:
        self.fed: list[str] = []
        self._files = files
        self._directory = directory
        self._sources = sources
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the present text."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        for number, text in enumerate(self._sources):
            if self._stop.wait(self._every):
                return
            path = f"{self._directory}/{number:05d}.txt"
            self._files.call("feed", lambda files, path=path, text=text: files.write(path, text.encode()), 30.0)  # type: ignore[misc]
            self.fed.append(text)


def count_words(sources: list[str]) -> Counter[str]:
    """Count the words in one pass, with the standard library alone."""
    return Counter(word for text in sources for word in words(text))
