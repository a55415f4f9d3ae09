"""Opening files: from a URI to files with deadlines."""

import re
from collections.abc import Callable, Mapping
from itertools import count
from urllib.parse import SplitResult, urlsplit

from store import paths, uris
from store.bounded import BoundedFiles
from store.counting import REQUESTS, CountedFiles, Requests
from store.errors import Invalid
from store.files import DIRECTORY_MODE, Files
from store.lazy_imports import will_import
from store.pool import CallHook

# A driver is imported when it is opened: Spark's Python workers should not pay for those they do not use.
_WEB = ("hdfs", "store.webhdfs")
_DRIVERS = {"file": ("store.local",), "hdfs": ("hdfs_native", "store.hdfs"), "webhdfs": _WEB, "swebhdfs": _WEB}

_VIEW = "viewfs"

NAMENODE_PORT = 8020  # a NameNode's RPC port, if its address has none

# A host name, a nameservice, an IPv4 address or an IPv6 address in brackets; then the port.
_AUTHORITY = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?")


def open_files(
    # `hdfs://host:port/path`, `hdfs://nameservice/path`, `hdfs:///path` on Hadoop's default file system, `webhdfs://`
    # with the HTTP port, `swebhdfs://` with the HTTPS port, `viewfs://table/path` for the root of HDFS that is mounted
    # there, or `file:///path`.
    uri: str,
    *,
    user: str | None = None,  # the user's name for `webhdfs://`; the others take theirs from the environment
    # For `webhdfs://`, seconds to connect and seconds between two bytes of an answer. The deadline of a call ends it in
    # any case; these only end its thread.
    timeout: tuple[float, float] = (2.0, 10.0),
    config: Mapping[str, str] | None = None,  # Hadoop settings over those of `HADOOP_CONF_DIR`
    directory_mode: int = DIRECTORY_MODE,  # permissions of directories that are made
    ca: str = "",  # for `swebhdfs://`, file with the certificates (PEM) of the authorities that sign the servers'
    workers: int = 8,  # most calls at the same time
    max_stuck: int = 32,  # most abandoned calls that have not come back
    # Told the name and outcome of every call, besides the listeners of `store.counting`.
    on_call: CallHook | None = None,
    # Also told what each operation of a driver costs the NameNode, if there is one.
    on_requests: Requests | None = None,
) -> BoundedFiles:
    """Return the files below a root; connects to nothing before the first call. Invalid for another URI."""
    open_driver = driver_of(uri, user=user, timeout=timeout, config=config, directory_mode=directory_mode, ca=ca)
    requests = REQUESTS.get(_split(uri).scheme)
    counted = (lambda: CountedFiles(open_driver(), requests, on_requests)) if requests is not None else open_driver
    return BoundedFiles(counted, workers=workers, max_stuck=max_stuck, on_call=on_call, uri=normal(uri))


def driver_of(
    uri: str,
    *,
    user: str | None = None,
    timeout: tuple[float, float] = (2.0, 10.0),
    config: Mapping[str, str] | None = None,
    directory_mode: int = DIRECTORY_MODE,
    ca: str = "",
) -> Callable[[], Files]:
    """Return a function that opens a driver for the URI, without deadlines; otherwise as :func:`open_files`."""
    # Of several NameNodes each new driver asks another one first.
    parts = _split(uri)
    root = _root(uri, parts)
    turns = count()

    will_import(*_DRIVERS[parts.scheme])

    def open_driver() -> Files:
        if parts.scheme == "file":
            from store.local import LocalFiles  # noqa: PLC0415

            return LocalFiles(root, directory_mode=directory_mode)
        if parts.scheme == "hdfs":
            from store.hdfs import HdfsFiles  # noqa: PLC0415

            return HdfsFiles(parts.netloc, root, config=config, turn=next(turns), directory_mode=directory_mode)
        from store.webhdfs import WebHdfsFiles  # noqa: PLC0415

        return WebHdfsFiles(
            parts.netloc,
            root,
            user=user,
            timeout=timeout,
            config=config,
            turn=next(turns),
            directory_mode=directory_mode,
            encrypted=parts.scheme == "swebhdfs",
            ca=ca,
        )

    return open_driver


def normal(uri: str) -> str:
    """Return the URI by which a root is known: with a host, without a slash at its end, and not of ViewFs."""
    parts = _split(uri)
    return f"{parts.scheme}://{'' if parts.scheme == 'file' else parts.netloc}{_root(uri, parts)}"


def _split(uri: str) -> SplitResult:
    parts = uris.split(uri)
    port = parts.port
    if uri.startswith("hdfs:///"):
        parts = parts._replace(netloc=_default_authority(uri))
        port = parts.port
    if parts.scheme not in {*_DRIVERS, _VIEW}:
        raise Invalid(
            f"{uri!r} has no known scheme; begin it with hdfs://, webhdfs://, swebhdfs://, viewfs:// or file://."
        )
    if "@" in parts.netloc:
        raise Invalid(f"{uri!r} names a user; leave it out and set HADOOP_USER_NAME.")
    if parts.scheme == _VIEW:
        return _mounted(uri)
    if parts.scheme != "file":
        _check_authority(uri, parts, port)
    elif parts.netloc not in {"", "localhost"}:
        raise Invalid(f"{uri!r} names a host, or lacks a slash; write file:///path.")
    return parts


def _mounted(uri: str) -> SplitResult:
    will_import("store.hadoop_errors", "store.viewfs")
    from store.hadoop_errors import configuration  # noqa: PLC0415  # few roots need them
    from store.viewfs import mounted  # noqa: PLC0415

    target = mounted(uri, configuration())
    try:
        return _split(target)
    except Invalid as error:
        raise Invalid(f"{uri!r} is mounted from {target!r}: {error}") from error


def _default_authority(uri: str) -> str:
    """Return the authority of Hadoop's default file system; of a NameNode without a port, with its usual one."""
    will_import("store.hadoop_errors")
    from store.hadoop_errors import configuration  # noqa: PLC0415  # few roots need it

    settings = configuration()
    default = settings.get("fs.defaultFS", "")
    found = re.fullmatch(rf"hdfs://({_AUTHORITY.pattern})/?", default)
    if default.startswith(f"{_VIEW}:"):
        raise Invalid(f"{uri!r} names no host, and fs.defaultFS is {default}: write {_VIEW}{uri.removeprefix('hdfs')}.")
    if not found:
        raise Invalid(
            f"{uri!r} names no host, and fs.defaultFS of the Hadoop configuration is {default!r}: write "
            "hdfs://host:port/path, or let HADOOP_CONF_DIR name a directory whose core-site.xml has one of HDFS."
        )
    authority = found[1]
    alone = urlsplit(default).port is None and not settings.get(f"dfs.ha.namenodes.{authority}")
    return f"{authority}:{NAMENODE_PORT}" if alone else authority


def _check_authority(uri: str, parts: SplitResult, port: int | None) -> None:
    if not parts.hostname:
        raise Invalid(f"{uri!r} names no host; write {parts.scheme}://host:port/path.")
    if parts.netloc.endswith(":") or port == 0:  # a port left out altogether means a nameservice
        raise Invalid(f"{uri!r} names no port; write {parts.scheme}://host:port/path.")
    if not _AUTHORITY.fullmatch(parts.netloc):
        raise Invalid(f"{uri!r} names an impossible host; write {parts.scheme}://host:port/path.")


def _root(uri: str, parts: SplitResult) -> str:
    path = parts.path.rstrip("/")
    if not parts.path.startswith("/"):
        raise Invalid(f"{uri!r} has no absolute path; write {parts.scheme}://{parts.netloc}/path.")
    if not path:
        if parts.scheme == "file":
            raise Invalid(f"{uri!r} is the whole file system; name a directory in it.")
        return "/"
    try:
        paths.check(path[1:])
    except Invalid as error:
        raise Invalid(f"{uri!r} cannot be a root: {error}") from error
    return path
