"""Files on HDFS over HTTP (``webhdfs://``, ``swebhdfs://``), through HdfsCLI: for where the RPC port cannot be reached.

HdfsCLI's own methods cannot be used for changes. Its plain ``rename`` moves *into* an existing directory, and with
several NameNodes it repeats a request whose answer was lost, so that the second answer denies what the first request
did. So its client is used one request at a time, and its answer is read in full: a gateway, as HttpFS is, drops
options that it does not know. And ``MKDIRS`` and ``CREATE`` create missing parents. A new entry is
therefore made in ``.staging`` below the root and renamed into place, which fails if the parent is gone.
"""

import getpass
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from store import paths
from store.errors import (
    AlreadyExists,
    ConnectionLost,
    DeadlineExceeded,
    Invalid,
    NotFound,
    NotSent,
    NotWritable,
    PermissionDenied,
    Refused,
    StoreError,
    Unknown,
)
from store.files import DIRECTORY_MODE, Entry
from store.hadoop_errors import configuration, in_turn, namenodes, refusal

if TYPE_CHECKING:
    import requests

MAX_ANSWER_BYTES = 64 * 1024 * 1024  # a listing of some 200,000 entries. No NameNode sends a longer answer
MAX_ERROR_BYTES = 1024 * 1024  # longest refusal that is read: an exception, two paths and a stack trace
_PREFIX = "/webhdfs/v1"


@contextmanager
def _classified() -> Iterator[None]:
    """Turn errors of requests and urllib3 into ours; an error that is not known to be harmless is Unknown."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        raise _classify(error) from error


def _classify(error: Exception) -> StoreError:
    import requests  # noqa: PLC0415 - loaded already, or there would be no error
    from urllib3.exceptions import HTTPError, NewConnectionError  # noqa: PLC0415

    reason = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(error, requests.ConnectTimeout) or isinstance(reason, NewConnectionError):
        return NotSent(f"No connection: {reason or error}")
    if isinstance(error, requests.exceptions.SSLError) and "certificate verify failed" in str(error):
        return NotSent("The server's certificate is not signed by an authority that is trusted here: set webhdfs_ca.")
    if isinstance(error, requests.exceptions.InvalidURL):
        return Invalid(str(error))
    if isinstance(error, requests.Timeout):
        return DeadlineExceeded(str(error))
    if isinstance(error, requests.RequestException | HTTPError | OSError):
        return ConnectionLost(str(error))
    return Unknown(f"{type(error).__name__}: {error}")


class WebHdfsFiles:
    """A :class:`store.files.Files` on HDFS over HTTP.

    ``list``, ``rename`` and ``delete`` take one request, ``make_directory`` and ``read`` two, ``write`` three. If the
    *root* itself was deleted, making something new brings back an empty root with the staging directory in it.
    """

    def __init__(
        self,
        authority: str,  # `host:port` of a NameNode's HTTP address, or a nameservice of Hadoop's configuration
        root: str,  # absolute path of the root directory
        *,
        user: str | None = None,  # whose name is sent; by default HADOOP_USER_NAME, else the user of this process
        timeout: tuple[float, float] = (2.0, 10.0),  # seconds to connect, and seconds between two bytes of an answer
        config: Mapping[str, str] | None = None,  # Hadoop settings over those of HADOOP_CONF_DIR
        turn: int = 0,  # number of the NameNode that is asked first, modulo; see `store.hadoop_errors.in_turn`
        directory_mode: int = DIRECTORY_MODE,  # permissions of directories that are made
        encrypted: bool = False,  # whether to speak HTTPS, `swebhdfs://`
        ca: str = "",  # file with certificates (PEM) of authorities that sign the servers'; empty for this host's
    ) -> None:
        import requests  # noqa: PLC0415 - 170 ms with hdfs, which only users of WebHDFS should pay

        self.uri = f"{'swebhdfs' if encrypted else 'webhdfs'}://{authority}{root}"
        self._scheme = "https" if encrypted else "http"
        self._root = "" if root == "/" else root
        self._permission = f"{directory_mode:o}"
        nodes, known = [authority], configuration(config)
        if ":" not in authority:
            nodes = namenodes(in_turn(known, authority, turn), authority, f"{self._scheme}-address")
        self._session = requests.Session()
        self._session.trust_env = False  # proxies are for the internet, and looking for them costs a millisecond
        self._session.verify = ca or True
        self._session.mount(f"{self._scheme}://", requests.adapters.HTTPAdapter(pool_maxsize=32, max_retries=0))
        urls = ";".join(f"{self._scheme}://{node}" for node in nodes)
        kerberos = known.get("hadoop.security.authentication", "").lower() == "kerberos"
        self._client = (
            _with_kerberos(urls, self._session, timeout) if kerberos else _by_name(urls, self._session, timeout, user)
        )
        self._timeout = timeout
        self._active = 0

    def list(self, path: str) -> list[Entry]:
        """Return the entries of a directory; see :meth:`store.files.Files.list`."""
        answer = self._json("GET", self._at(path, root=True), "LISTSTATUS")
        with _classified():
            found = [_entry(each) for each in answer["FileStatuses"]["FileStatus"]]
        if len(found) == 1 and not found[0].name:
            raise Invalid(f"Not a directory: {path!r}")
        return [entry for entry in found if not paths.hidden(entry.name)]

    def make_directory(self, path: str) -> None:
        """Create one directory; see :meth:`store.files.Files.make_directory`."""
        target = self._at(path)
        staged = self._staged()
        try:
            self._make(staged)
        except Unknown as error:
            raise NotWritable(f"No directory could be staged, so none was put into place: {error}") from error
        try:
            self._rename(staged, target, "NONE")
        except Refused as error:
            self._discard(staged)
            # The NameNode words it differently if a file is in the way.
            if not isinstance(error, AlreadyExists) or "must both be directories" in str(error):
                raise

    def make_root(self) -> None:
        """Create the root and its parents; no error if it exists."""
        self._make(self._root or "/")

    def rename(self, source: str, destination: str) -> None:
        """Rename atomically, never over an existing entry; see :meth:`store.files.Files.rename`."""
        self._rename(self._at(source), self._at(destination), "NONE")

    def read(self, path: str, limit: int) -> bytes:
        """Return a small file's content; see :meth:`store.files.Files.read`."""
        response = self._ask("GET", self._at(path), "OPEN", length=str(limit + 1))
        data = self._follow(response, "GET", HTTPStatus.OK, limit + 1)
        if len(data) > limit:
            raise Invalid(f"Longer than {limit} bytes: {path!r}")
        return data

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically; see :meth:`store.files.Files.write`."""
        target = self._at(path)
        staged = self._staged()
        try:
            response = self._ask("PUT", staged, "CREATE", overwrite="false")
            self._follow(response, "PUT", HTTPStatus.CREATED, MAX_ANSWER_BYTES, data)
        except Unknown as error:
            raise NotWritable(f"The content could not be written, so nothing was replaced: {error}") from error
        try:
            self._rename(staged, target, "OVERWRITE")
        except Refused as error:
            self._discard(staged)
            if isinstance(error, AlreadyExists):
                raise Invalid(f"A directory cannot be replaced by a file: {path!r}") from error
            raise

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete an entry; see :meth:`store.files.Files.delete`."""
        if not self._affirmed("DELETE", self._at(path), "DELETE", recursive="true" if recursive else "false"):
            raise NotFound(f"No such entry: {path!r}")

    def concat(self, path: str, sources: Sequence[str]) -> None:
        """Append files of one folder to another one of it, and take them away: at once, or not at all."""
        # NotFound: one of them does not exist. Invalid: HDFS does not do that with these, or there is a comma.
        if any("," in each for each in sources):
            raise Invalid("A path with a comma cannot be named in such a request.")
        answer = self._send("POST", self._at(path), "CONCAT", sources=",".join(map(self._at, sources)))
        if answer:
            raise Unknown(f"Not an answer of a NameNode: {answer!r:.100}")

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _at(self, path: str, *, root: bool = False) -> str:
        checked = paths.check(path, root=root)
        return f"{self._root}/{checked}" if checked else self._root or "/"

    def _staged(self) -> str:
        return f"{self._root}/{paths.STAGING}/{uuid.uuid4().hex}"

    def _rename(self, source: str, destination: str, option: str) -> None:
        answer = self._send("PUT", source, "RENAME", destination=destination, renameoptions=option)
        if answer:  # a NameNode that keeps the options has nothing to say
            kind = Unknown if _truth(answer) else Invalid
            raise kind(
                f"{self.uri} can hold no jobs, because its server ignores `renameoptions`, as an HttpFS gateway does: "
                f"let `files` name the WebHDFS of the NameNodes themselves, or hdfs://"
            )

    def _make(self, folder: str) -> None:
        if not self._affirmed("PUT", folder, "MKDIRS", permission=self._permission):
            raise Unknown(f"The server did not make {folder}, and does not say why.")

    def _discard(self, staged: str) -> None:
        try:
            self._send("DELETE", staged, "DELETE", recursive="true")
        except StoreError:
            return  # a leftover is hidden and harmless; the first error is the one to report

    def _send(self, method: str, path: str, operation: str, **parameters: str) -> bytes:
        response = self._ask(method, path, operation, **parameters)
        if response.status_code != HTTPStatus.OK:
            raise Unknown(f"The NameNode answered {operation} with status {response.status_code}.")
        return _body(response, MAX_ANSWER_BYTES)

    def _json(self, method: str, path: str, operation: str, **parameters: str) -> dict[str, Any]:
        return _object(self._send(method, path, operation, **parameters))

    def _affirmed(self, method: str, path: str, operation: str, **parameters: str) -> bool:
        return _truth(self._send(method, path, operation, **parameters))

    def _ask(self, method: str, path: str, operation: str, **parameters: str) -> "requests.Response":
        """Send one request to the active NameNode; another is asked only if the first did certainly nothing."""
        nodes = self._client.urls
        first = self._active
        last: StoreError = NotSent("No NameNode is known.")
        for index in (*range(first, len(nodes)), *range(first)):
            try:
                response = self._request(method, nodes[index] + _PREFIX + quote(path), op=operation, **parameters)
                error = _error(response)
            except NotSent as refused:
                # A standby that answered tells more than a NameNode that cannot be reached.
                last = last if isinstance(last, NotWritable) else refused
                continue
            if error is None:
                self._active = index
                return response
            if not isinstance(error, NotWritable):
                raise error
            last = error
        raise last

    def _request(self, method: str, url: str, **parameters: str) -> "requests.Response":
        with _classified():
            response: requests.Response = self._client._request(  # noqa: SLF001 - its one plain request
                method, url, params=parameters, allow_redirects=False, stream=True
            )
            return response

    def _follow(
        self, response: "requests.Response", method: str, done: HTTPStatus, limit: int, data: bytes | None = None
    ) -> bytes:
        """Follow the NameNode's redirect to the DataNode that takes or gives the bytes."""
        location = response.headers.get("Location", "")
        _body(response, MAX_ANSWER_BYTES)
        if response.status_code != HTTPStatus.TEMPORARY_REDIRECT or not location.startswith(f"{self._scheme}://"):
            raise Unknown(f"The NameNode answered with status {response.status_code} and points to {location!r:.100}.")
        with _classified():
            answer = self._session.request(
                method, location, data=data, timeout=self._timeout, stream=True, allow_redirects=False
            )
        error = _error(answer)
        if error is not None:
            raise error
        if answer.status_code != done:
            raise Unknown(f"The DataNode answered with status {answer.status_code}.")
        return _body(answer, limit)


def _error(response: "requests.Response") -> StoreError | None:
    """Return the error with which a NameNode or DataNode refused or failed; None if it did neither."""
    status = response.status_code
    if status < HTTPStatus.BAD_REQUEST:
        return None
    body = _body(response, MAX_ERROR_BYTES)
    if status == HTTPStatus.UNAUTHORIZED:
        return PermissionDenied(
            "The NameNode asks for a login: get a Kerberos ticket, and let HADOOP_CONF_DIR name the configuration "
            "with hadoop.security.authentication=kerberos."
        )
    try:
        remote = json.loads(body)["RemoteException"]
        exception, message = str(remote["exception"]), str(remote["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return Unknown(f"Status {status} and no reason: {body[:100]!r}")
    return refusal(exception, message) or Unknown(f"{exception}: {message.partition(chr(10))[0]}")


def _body(response: "requests.Response", limit: int) -> bytes:
    with _classified():
        data: bytes = response.raw.read(limit + 1, decode_content=True)
        if len(data) > limit:
            response.close()
            raise Unknown(f"An answer of more than {limit} bytes.")
        return data


def _object(answer: bytes) -> dict[str, Any]:
    with _classified():
        found = json.loads(answer)
    if not isinstance(found, dict):
        raise Unknown(f"Not an answer of a NameNode: {found!r:.100}")
    return found


def _truth(answer: bytes) -> bool:
    """Return what a server says of a change: whether it was done."""
    done = _object(answer).get("boolean")
    if not isinstance(done, bool):
        raise Unknown(f"Not an answer of a NameNode: {answer!r:.100}")
    return done


def _with_kerberos(urls: str, session: "requests.Session", timeout: tuple[float, float]) -> Any:
    try:
        from hdfs.ext.kerberos import KerberosClient  # noqa: PLC0415
    except ImportError as error:
        raise Invalid("WebHDFS with Kerberos needs more libraries: pip install 'hybrid-ha[kerberos]'.") from error
    # OPTIONAL: a refusal bears no proof of the server's identity, and is believed. TLS says who the server is.
    return KerberosClient(urls, mutual_auth="OPTIONAL", session=session, timeout=timeout)


def _by_name(urls: str, session: "requests.Session", timeout: tuple[float, float], user: str | None) -> Any:
    from hdfs.client import InsecureClient  # noqa: PLC0415

    return InsecureClient(urls, user=user or _user(), session=session, timeout=timeout)


def _entry(status: dict[str, Any]) -> Entry:
    name, size, modified = status["pathSuffix"], status["length"], status["modificationTime"]
    if not isinstance(name, str) or not isinstance(size, int) or not isinstance(modified, int):
        raise Unknown(f"Not an entry of a directory: {status!r:.100}")
    return Entry(name, status["type"] == "DIRECTORY", size, modified)


def _user() -> str:
    try:
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    except (KeyError, OSError) as error:
        raise Invalid("This process's user has no name; set HADOOP_USER_NAME.") from error
