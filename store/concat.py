"""Concat: appends files of HDFS to one another, without a byte being read or written.

Only WebHDFS offers that here, hdfs-native does not. So a process that reaches HDFS over its RPC port needs the HTTP
port of the NameNodes as well, for this alone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, cast
from urllib.parse import urlsplit

from store.bounded import BoundedFiles
from store.errors import Invalid
from store.hadoop_errors import configuration
from store.open import driver_of

if TYPE_CHECKING:
    from store.webhdfs import WebHdfsFiles

TIMEOUT_S = 20.0  # time for one call: a NameNode takes 20 ms for a hundred files
PORTS = {"http": 9870, "https": 9871}  # a NameNode's port, if Hadoop's configuration names none


class Concat:
    """Concatenates below one root; call it with a path and those whose content comes behind it."""

    def __init__(self, uri: str, *, address: str = "", ca: str = "") -> None:
        """Connect to nothing yet; Invalid if the root is not on HDFS."""
        # `address` is host:port of a NameNode for HTTP (default: by Hadoop's configuration), `ca` for HTTPS a file with
        # the certificates (PEM) of the authorities that sign the servers'.
        web = web_uri(uri, address)
        self._files = BoundedFiles(driver_of(web, ca=ca), uri=web, workers=1)

    def __call__(self, path: str, sources: Sequence[str]) -> None:
        """Do it, or raise ``StoreError``; see :meth:`store.webhdfs.WebHdfsFiles.concat`."""
        self._files.call("concat", lambda files: cast("WebHdfsFiles", files).concat(path, sources), TIMEOUT_S)

    def close(self) -> None:
        """Close the connections."""
        self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def web_uri(uri: str, address: str = "") -> str:
    """Return the URI of the same root over HTTP, with arguments and errors of :class:`Concat`."""
    parts = urlsplit(uri)
    if parts.scheme not in ("hdfs", "webhdfs", "swebhdfs"):
        raise Invalid(f"Only HDFS can put files behind each other, and {uri!r} is not on it.")
    if parts.scheme != "hdfs" and not address:
        return uri
    settings = configuration()
    kind = "https" if settings.get("dfs.http.policy") == "HTTPS_ONLY" or parts.scheme == "swebhdfs" else "http"
    netloc = address or (parts.netloc if parts.port is None else _of(settings, kind, parts.hostname or ""))
    return f"{'swebhdfs' if kind == 'https' else 'webhdfs'}://{netloc}{parts.path}"


def _of(settings: dict[str, str], kind: str, host: str) -> str:
    """Return the address of the only NameNode; a wildcard in the configuration stands for its host."""
    found = settings.get(f"dfs.namenode.{kind}-address", "")
    name, _, port = found.rpartition(":")
    return f"{host if name in ('', '0.0.0.0') else name}:{port or PORTS[kind]}"  # noqa: S104  # not bound to
