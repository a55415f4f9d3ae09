"""Places of one run: its input, its output, and the configuration directory of its Spark."""

import json
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from ha.sidecar.command.spark_overlay import spark_environment
from store.bounded import BoundedFiles
from store.errors import NotFound, StoreError
from store.files import Entry, Files
from store.open import open_files

ZOO = Path(__file__).parent
BIN = Path(sys.executable).parent
SPARK = {
    "spark.master": "local[1]",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
}
PER_FILE = 3
"""Events of a file, each of another user: so an aggregation by user has the same rows however files are batched."""
FAR = 900_000
"""Ids of the events that only move the watermark."""


def events(number: int) -> list[dict[str, object]]:
    """Return the events of an input file: one a user, a minute after those of the file before."""
    return [event(number * PER_FILE + each, number) for each in range(PER_FILE)]


def event(serial: int, minute: int) -> dict[str, object]:
    day, clock = 1 + minute // 1440, minute % 1440
    at = f"2026-01-{day:02}T{clock // 60:02}:{clock % 60:02}:00Z"
    return {"id": serial, "user": f"u{serial % PER_FILE}", "at": at}


APART = {"in", "out", "staged", "state", "offsets", "sources", "_metadata", "bronze", "read"}
"""Directories below which no query notes its batches."""


class Places:
    """One run's directories below a root in HDFS, and a folder of this host."""

    def __init__(self, root: str, folder: Path, environment: dict[str, str]) -> None:
        self.name, self.folder = uuid.uuid4().hex[:8], folder
        self.base = f"{root}/{self.name}"
        self.input, self.output = f"{self.base}/in", f"{self.base}/out"
        self.local = folder / "local"
        self.local.mkdir(parents=True)
        self.home = (
            f"{root.partition('://')[0]}://{root.split('/')[2]}/user/{environment['HADOOP_USER_NAME']}/{self.name}"
        )
        self.fed = 0
        self.environment = environment
        self._open = ExitStack()
        self._opened: dict[str, BoundedFiles] = {}
        self._lines: dict[tuple[str, Entry], list[str]] = {}
        for each in ("in/a", "in/b", "staged"):
            files = self._files(f"{self.base}/{each}")
            files.call("make", lambda it: it.make_root(), 30.0)

    def close(self, *jobs: str) -> None:
        """Delete what the run and its jobs have left in HDFS, so that later runs list less; close the connections."""
        for uri in (self.base, *(f"{self.environment['HA_FILES']}/{job}" for job in jobs)):
            with suppress(StoreError):
                folder, _, name = uri.rpartition("/")
                self._files(folder).call("delete", partial(_delete, name), 60.0)
        self._open.close()

    def _files(self, uri: str) -> BoundedFiles:
        if uri not in self._opened:
            self._opened[uri] = self._open.enter_context(open_files(uri))
        return self._opened[uri]

    def feed(self, count: int, folders: tuple[str, ...] = ("a",), copies: int = 0) -> None:
        """Move files with the next events into the input; ``copies``: with events of the file before as well."""
        for number in range(self.fed, self.fed + count):
            rows = events(number)
            if copies and number:
                rows += events(number - 1)[:copies]
            for each in folders:
                self._move(f"{number:04}.txt", rows, each)
        self.fed += count

    def flush(self, folders: tuple[str, ...] = ("a",)) -> None:
        """Move the watermark far ahead: by one event of each of two files."""
        for number in range(2):
            for each in folders:
                self._move(f"flush-{number}.txt", [event(FAR + number, 30_000 + 1000 * number)], each)

    def _move(self, name: str, rows: list[dict[str, object]], folder: str) -> None:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        files = self._files(self.base)
        files.call("stage", lambda it: it.write(f"staged/{name}", text.encode()), 30.0)
        files.call("move", lambda it: it.rename(f"staged/{name}", f"in/{folder}/{name}"), 30.0)

    def rows(self, *, local: bool = False, parts: bool = False, home: bool = False) -> list[str]:
        """Return the lines of all files of the output, as a reader of Spark sees it.

        Args:
            local: the output is in this host's folder.
            home: the output is in the user's directory in HDFS.
            parts: begin each line with the first folder below the output.
        """
        uri = self.local.as_uri() if local else self.home if home else self.output
        try:
            found: list[str] = self._files(uri).call("read", lambda it: list(self._read(it, "", parts)), 60.0)
        except NotFound:
            return []
        return found

    def _read(self, files: Files, path: str, parts: bool) -> Iterator[str]:
        entries = files.list(path)
        logged = _logged(files, path) if any(each.name == "_spark_metadata" for each in entries) else None
        for each in entries:
            below = f"{path}/{each.name}".lstrip("/")
            if each.name[0] in "._":
                continue
            if each.is_directory:
                yield from self._read(files, below, parts)
            elif logged is None or each.name in logged:
                if (lines := self._lines.get((below, each))) is None:
                    lines = self._lines[below, each] = files.read(below, 1_000_000).decode().splitlines()
                yield from (f"{below.split('/')[0]}:{line}" if parts else line for line in lines)

    def commits(self, job: str) -> int:
        return sum(self._committed(uri) for uri in (self.base, f"{self.environment['HA_FILES']}/{job}"))

    def _committed(self, uri: str) -> int:
        try:
            return self._files(uri).call("look", lambda it: _commits(it, ""), 60.0)
        except StoreError:  # it is not there yet, or another leader has renamed it meanwhile
            return 0

    def spark_conf(self, jars: Path, **settings: str) -> dict[str, str]:
        """Write a configuration directory with the archive of classes; returns the variables that name it."""
        theirs = self.folder / f"conf-{len(list(self.folder.iterdir()))}"
        theirs.mkdir()
        (theirs / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in {**SPARK, **settings}.items()))
        overlay = theirs.with_name(f"{theirs.name}-archive")
        spark_environment(overlay, {**self.environment, "SPARK_CONF_DIR": str(theirs)}, jars)
        return {"SPARK_CONF_DIR": str(overlay)}

    def variables(self) -> dict[str, str]:
        path = f"{BIN}{os.pathsep}{self.environment['PATH']}"
        names = {
            "BASE": self.base,
            "RELATIVE": self.name,
            "TOPICS": self.name,
            "BROKERS": self.environment.get("HA_SANDBOX_KAFKA", ""),
        }
        places = {"IN": f"{self.input}/a", "IN_B": f"{self.input}/b", "OUT": self.output, "LOCAL": str(self.local)}
        found = {**self.environment, **places, "PATH": path, "PYSPARK_PYTHON": sys.executable, **names}
        return {
            name: value for name, value in found.items() if name != "PYTHONDONTWRITEBYTECODE"
        }  # each start is cheaper


def _commits(files: Files, path: str) -> int:
    names = [each for each in files.list(path) if each.is_directory and each.name not in APART]
    if path.endswith("/commits"):
        return len(files.list(path))
    return sum(_commits(files, f"{path}/{each.name}".lstrip("/")) for each in names)


def _delete(name: str, files: Files) -> None:
    files.delete(name, recursive=True)


def _logged(files: Files, path: str) -> set[str]:
    """Return the names of the files that the log of Spark's file sink has: others belong to no batch."""
    text = "\n".join(
        files.read(f"{path}/_spark_metadata/{each.name}".lstrip("/"), 1_000_000).decode()
        for each in files.list(f"{path}/_spark_metadata".lstrip("/"))
        if each.name[0] != "."
    )
    return {json.loads(line)["path"].rpartition("/")[2] for line in text.splitlines() if line.startswith("{")}
