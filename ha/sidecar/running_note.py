"""RunningNote: a leader says what it runs, and a standby says so if it would run something else."""

import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from ha.checkpoints import contents
from leader.job.fenced_directory import FencedDirectory
from leader.layout import tree
from leader.layout.names import RUNS, SPARK, WOULD
from leader.layout.running import Running, contradiction, others, runs
from store.errors import Invalid, NotFound, StoreError
from store.files import Files
from store.hadoop_errors import configuration, namenodes
from store.traits import traits

MOST_BYTES = 1 << 20  # longest entry that is read; a longer one is of many thousand files
PORT = 8020  # of a NameNode whose URI names none

_log = logging.getLogger("ha")


class RunningNote:
    """What one sidecar says of its command."""

    def __init__(self, job: str, contender: str, running: Running) -> None:
        self._job, self._contender, self.running = job, contender, running
        self.version = 0  # the stored one that the leader was last said to run; 0 for a command of the sidecar's own
        self._told: tuple[Running, Running] | None = None
        self._places = SourcePlaces(running.files)

    def lead(self, directory: FencedDirectory, version: int = 0) -> None:
        """Say what runs from now on; what standbys would run is said by them again. One list while nothing changes."""
        running = msgspec.structs.replace(self.running, program=f"version {version}") if version else self.running
        names, mine = [each.name for each in directory.list()], running.entry()
        for each in names:
            if each.startswith((RUNS, WOULD)) and each != mine:
                directory.delete(each)
        if mine not in names:
            directory.make_folder(mine)
        self.version = version

    def stand_by(self, files: Files) -> None:
        """Compare with what the leader runs, and with what the checkpoints say of their sources: a few lists."""
        # What the store does not answer is looked for the next time.
        with suppress(StoreError):
            self._compare(files)

    def _compare(self, files: Files) -> None:
        home = f"{self._job}/{tree.find(files, self._job).name}"
        names = [each.name for each in files.list(home)]
        running = msgspec.structs.replace(self.running, sources=self._places.other_name(files, home))
        present, mine = runs(names), running.entry(self._contender)
        differs = present is not None and present.differs(running)
        for each in names:
            if self._contender in others([each]) and not (differs and each == mine):
                with suppress(NotFound):
                    files.delete(f"{home}/{each}")
        if present is None or not differs:
            self._told = None
            return
        if mine not in names:
            files.make_directory(f"{home}/{mine}")
        if self._told != (present, running):
            self._told = present, running
            _log.warning("%s: %s.", self._job, contradiction(self._contender, running, present))


class SourcePlaces:
    """Whether a job's checkpoints call this host's file system by another name than this host does.

    A file source's log has whole URIs. Spark ends a query whose files it finds under another name of their NameNode.
    Each query is looked at once in an epoch: lists, and one small read for each of its sources.
    """

    def __init__(self, own: str) -> None:
        """Look at nothing yet; ``own`` is where paths are that name no file system, empty if that is not known."""
        self._own = own
        self._home, self._seen, self._found = "", set[str](), ""

    def other_name(self, files: Files, home: str) -> str:
        """Return the name under which the files of sources were read, if it is another one of the same NameNode."""
        # `home`: the leader directory, by its path.
        if home != self._home:
            self._home, self._seen, self._found = home, set(), ""
        for query in _names(files, f"{home}/{SPARK}") if self._own else ():
            if query in self._seen:
                continue
            for uri in _read(files, f"{home}/{SPARK}/{query}/sources"):
                self._seen.add(query)
                parts = urlsplit(uri)
                if same_server(self._own, name := f"{parts.scheme}://{parts.netloc}"):
                    self._found = name
        return self._found


def same_server(one: str, other: str) -> bool:
    """Whether two file systems have different names, and the same NameNode."""
    here, there = urlsplit(one), urlsplit(other)
    if here.scheme != there.scheme or here.netloc == there.netloc or not traits(one).address:
        return False
    return not _addresses(here.netloc).isdisjoint(_addresses(there.netloc))


def _addresses(name: str) -> set[tuple[str, int]]:
    """Return the addresses behind the name of a file system; none if nobody knows it."""
    try:
        servers = [name] if name.rpartition(":")[2].isdigit() else namenodes(configuration(), name, "rpc-address")
    except Invalid:
        servers = [f"{name}:{PORT}"]
    found = set()
    for host, _, port in (each.rpartition(":") for each in servers):
        try:
            known = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        except (OSError, ValueError):
            continue
        found |= {(str(address[0]), int(port)) for *_, address in known}
    return found


def _read(files: Files, folder: str) -> Iterator[str]:
    """Yield one file that each source of a query has read, or nothing for a source of another kind, by its log."""
    for source in _names(files, folder):
        entries = [int(each) for each in _names(files, f"{folder}/{source}") if each.isdecimal()]
        if entries:
            try:
                yield from contents.logged_files(files.read(f"{folder}/{source}/{max(entries)}", MOST_BYTES))[:1]
            except (NotFound, Invalid, contents.Unreadable):
                yield ""  # it is of another kind, or too long


def _names(files: Files, folder: str) -> list[str]:
    try:
        return [each.name for each in files.list(folder)]
    except (NotFound, Invalid):  # a file, perhaps
        return []
