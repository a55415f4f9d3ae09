"""Hadoop's jars, packed again so that its servers start twice as fast.

While it starts, a NameNode (Jersey, in it) searches every jar that holds one of WebHDFS's packages for annotated
classes, by reading that jar from end to end: 2.2 of 4.6 s. Here those packages get a small jar of their own. Nothing is
compressed, and the libraries for Hadoop's own tests are left out.
"""

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

from ha.sandbox.cache import cache_directory, cached, sha256

_RECIPE = 2
"""Raise it whenever the content of the jars changes."""

_WEB = (
    # What is searched, and what is unpacked, at every start.
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
    """Return the cached jars that stand for Hadoop's client and server jars, made if they are missing or damaged.

    Args:
        client: PySpark's ``hadoop-client-api`` jar.
        minicluster: returns the jar with the servers; called only if something has to be made.
        progress: is told about it.

    Raises:
        SandboxError: the cache cannot be used; and whatever ``minicluster`` raises.
    """
    key = hashlib.sha256(f"{_RECIPE} {sha256(client)}".encode("ascii")).hexdigest()[:12]

    def make(folder: Path, name: str, web: bool) -> None:
        sources = [minicluster(), client]
        progress(f"Repacking Hadoop into {name} (once)")
        _write(folder / name, sources, lambda entry: entry.startswith(_WEB) == web)

    web, rest = f"hadoop-web-{key}.jar", f"hadoop-{key}.jar"
    return [
        cached(cache_directory() / web, lambda folder: make(folder, web, web=True)),
        cached(cache_directory() / rest, lambda folder: make(folder, rest, web=False)),
    ]


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
