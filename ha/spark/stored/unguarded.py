"""Unguarded: the queries of one program that may lose rows or repeat them, counted by an entry of the leader directory.

``ha job list`` and the page list that directory anyway. A driver tells of its queries before they start
(:mod:`ha.hook.guarding`); of a program in another language the names of its checkpoints tell, after its first batch.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from ha.hook import query_rules
from ha.hook.query_rules import NAMELESS, called, fault, note, noted
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import UNGUARDED, unguarded_in

_log = logging.getLogger("ha")


class Unguarded:
    """What is known of them; every method but :meth:`look` returns at once."""

    def __init__(self, directory: FencedDirectory, file: Callable[[], Path | None]) -> None:
        """Know none; ``file`` is that of the program's present run, which its metrics read; None without one."""
        self._directory, self._file = directory, file
        self.found: dict[str, str] = {}  # by query, the report on it, in this process
        self._before: set[str] | None = None
        self._shown = ""
        self._lock = threading.Lock()

    def tell(self, query: str, why: str) -> None:
        """Warn of a query, and count it; or take that back, if there is no reason."""
        with self._lock:
            if not why and not self.found.get(query):
                return
            self.found[query] = why
        level = logging.WARNING if why else logging.INFO
        _log.log(level, "%s: %s is %s", self._directory.job, called(query), why or query_rules.EXACT)
        if (file := self._file()) is not None:
            note(file, query, why)

    def look(self, checkpoints: Iterable[str]) -> None:
        """Show how many there are, given all names among the job's checkpoints; free while that does not change."""
        file = self._file()
        found = {**self.found, **(noted(file) if file is not None else {})}
        found = {query: why for query, why in found.items() if why}
        odd = {name for name in checkpoints if fault(name)}
        self._before = odd if self._before is None else self._before
        for name in sorted(odd - self._before):
            self._before.add(name)
            told = any(each.startswith(query_rules.UNGUARDED) for each in found.values())
            if not (NAMELESS.fullmatch(name) and told):  # else it is the one's that was told before it started
                why = f"{query_rules.UNGUARDED}: its checkpoint is spark/{name}: set queryName."
                self.tell("" if NAMELESS.fullmatch(name) else name, why)
                found |= self.found
        repeated = sum(why.startswith(query_rules.REPEATED) for why in found.values())
        entry = f"{UNGUARDED}{len(found) - repeated}~{repeated}"
        if self._shown != entry:
            self._show(entry)

    def _show(self, entry: str) -> None:
        directory = self._directory
        entries = [each.name for each in directory.list() if any(unguarded_in([each.name]))]
        for each in entries:
            if each != entry:
                directory.delete(each)
        if any(unguarded_in([entry])) and entry not in entries:
            directory.make_folder(entry)
        self._shown = entry
