"""Faster starts: Hadoop's jars repacked, and an archive of loaded classes.

On two busy cores a sandbox starts in 9 s with both, in 14 s without the archive, and in 24 s without either.

While it starts, a NameNode (Jersey, in it) searches every jar that holds one of WebHDFS's packages for annotated
classes, and reads each of these jars from end to end. Here those packages get a small jar of their own. Nothing is
compressed, and the libraries for Hadoop's own tests are left out.

The archive holds classes as the JVM wants them in memory. The first ``up`` notes which classes its servers load, and
makes the archive from that. A JVM ignores an unsuitable archive, but a truncated one would crash it: the checksum in
the cache rules that out.
"""

import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

from ha.hosts.cache import cache_directory, cached, forget_old, sha256
from ha.sandbox.polling import SandboxError, ran

_RECIPE = 2  # raise it whenever the content of the jars changes

_WEB = (
    # Entries that are searched, and entries that are unpacked, at every start.
    "org/apache/hadoop/hdfs/web/resources/",
    "org/apache/hadoop/hdfs/server/namenode/web/resources/",
    "webapps/",
)
_LEFT_OUT = (
    "META-INF/maven/",
    "META-INF/versions/9/net/bytebuddy/",
    "org/apache/hadoop/shaded/net/bytebuddy/",
    "org/apache/hadoop/shaded/org/mockito/",
)
_SERVICES = "META-INF/services/"


def repack(client: Path, minicluster: Callable[[], Path], progress: Callable[[str], None]) -> list[Path]:
    """Return the cached jars that stand for Hadoop's client and server jars, made if they are missing or damaged."""
    # ``client`` is PySpark's ``hadoop-client-api`` jar. ``minicluster`` returns the jar with the servers, and is called
    # only if something has to be made.
    key = hashlib.sha256(f"{_RECIPE} {sha256(client)}".encode("ascii")).hexdigest()[:12]

    def jar(name: str, *, web: bool) -> Path:
        def make(folder: Path) -> None:
            sources = [minicluster(), client]
            progress(f"Repacking Hadoop into {name} (once)")
            _write(folder / name, sources, lambda entry: entry.startswith(_WEB) == web)

        return cached(cache_directory() / name, make)

    return [jar(f"hadoop-web-{key}.jar", web=True), jar(f"hadoop-{key}.jar", web=False)]


def _write(target: Path, sources: list[Path], wanted: Callable[[str], bool]) -> None:
    """Copy the entries that are wanted; of two with one name the first one counts, as on a class path."""
    seen = set()
    services: dict[str, bytes] = {}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as jar:
        for source in sources:
            with zipfile.ZipFile(source) as original:
                for entry in original.infolist():
                    name = entry.filename
                    if name.startswith(_LEFT_OUT) or not wanted(name):
                        continue
                    if name.startswith(_SERVICES):  # of these lists Java reads all
                        services[name] = services.get(name, b"") + original.read(entry) + b"\n"
                    elif name not in seen:
                        seen.add(name)
                        jar.writestr(zipfile.ZipInfo(name, entry.date_time), original.read(entry))
        for name, providers in services.items():
            jar.writestr(name, providers)


# --- the archive of classes

DUMP_TIMEOUT_S = 120


def make_archive(
    archive: Path, java: list[str], jars: list[Path], lists: list[Path], progress: Callable[[str], None]
) -> None:
    """Make the archive from lists of classes that servers wrote; does nothing if it is there by now."""
    names = {line for path in lists for line in path.read_text(encoding="utf-8").splitlines(keepends=True)}
    whole = sorted(line for line in names if line.endswith("\n"))  # a server may be in the middle of a line

    def dump(folder: Path) -> None:
        progress("Preparing faster starts (once)")
        classes = folder / "classes.txt"
        classes.write_text("".join(whole), encoding="utf-8")
        command = [
            *(*java, "-Xmx512m", "-Xshare:dump"),
            *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={folder / archive.name}"),
            *("-cp", os.pathsep.join(map(str, jars))),
        ]
        ended = ran(f"Making {archive.name}", command, DUMP_TIMEOUT_S)
        if ended.returncode != 0:
            raise SandboxError(f"Java made no class data archive (exit code {ended.returncode}).")

    cached(archive, dump)
    forget_old(archive.parent)
