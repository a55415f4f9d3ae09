"""ViewFs: the root that a ``viewfs://`` URI names, by a mount table in Hadoop's configuration. Pure.

    fs.viewfs.mounttable.<table>.link./ha        hdfs://ns1/ha    what is mounted at /ha
    fs.viewfs.mounttable.<table>.linkFallback    hdfs://ns1/      what lies below no mount point

Jobs are renamed below their root, and no rename leads from one mounted file system to another. So a root is at one
mount point, or below it, and no other one is below the root. See decision 77.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from store import paths
from store.errors import Invalid
from store.uris import split

SCHEME = "viewfs"
DEFAULT_TABLE = "default"

_PREFIX = "fs.viewfs.mounttable"
_WHOLE = ("linkFallback", "linkMergeSlash")  # links that stand for all that lies below no other one
_SEVERAL = ("linkMerge", "linkNfly", "linkRegex")  # links to several places, or to one that depends on the path


def mounted(uri: str, settings: Mapping[str, str]) -> str:
    """Return the URI of the root at which a ``viewfs://`` URI is mounted; without a table's name by the default one."""
    # Invalid: there is no such table, or the root does not lie in one file system.
    parts = split(uri)
    table = parts.netloc or _default_table(settings)
    path = parts.path.rstrip("/")
    if path:
        _check(uri, path)
    links = _links(uri, table, settings)
    below = sorted(point for point in links if point.startswith(f"{path}/"))
    if below:
        raise Invalid(
            f"{uri!r} does not lie in one file system, because {below[0]} is another mount point below it: "
            "name a directory below which nothing is mounted."
        )
    above = [point for point in links if f"{path}/".startswith(f"{point}/")]
    if not above:
        raise Invalid(
            f"{uri!r} lies in no file system, because no mount point of {table!r} is at it or above it: "
            f"name a directory below one of {', '.join(sorted(links))}."
        )
    point = max(above, key=len)
    target = links[point]
    if urlsplit(target).scheme == SCHEME:
        raise Invalid(
            f"{uri!r} is mounted from {target}, which is another ViewFs: name the root that is mounted there."
        )
    where = f"{target.rstrip('/')}{path[len(point) :]}"
    return where if urlsplit(where).path else f"{where}/"


def _default_table(settings: Mapping[str, str]) -> str:
    default = urlsplit(settings.get("fs.defaultFS", ""))
    return (default.scheme == SCHEME and default.netloc) or DEFAULT_TABLE


def _check(uri: str, path: str) -> None:
    try:
        paths.check(path[1:])
    except Invalid as error:
        raise Invalid(f"{uri!r} cannot be a root: {error}") from error


def _links(uri: str, table: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return what is mounted at each path; the empty one stands for the rest."""
    links = dict[str, str]()
    for key, value in settings.items():
        if not key.startswith(f"{_PREFIX}.{table}."):
            continue
        kind, _, point = key.removeprefix(f"{_PREFIX}.{table}.").partition(".")
        if kind in _SEVERAL:
            raise Invalid(
                f"{uri!r} has a mount table with {key}, which can lead to several file systems: leave that out."
            )
        if kind == "link":
            links[point.rstrip("/")] = value
        elif kind in _WHOLE:
            links[""] = value
    if not links:
        raise Invalid(
            f"{uri!r} has no mount table {table!r} in the Hadoop configuration: let HADOOP_CONF_DIR name a directory "
            f"whose core-site.xml has {_PREFIX}.{table}.link./PATH, or name the root that is mounted there."
        )
    return links
