"""Probes: the ways in which a sidecar asks whether its command is alive, each of them one try.

A probe is called with the seconds that it has. It returns what is wrong, an empty text for nothing, and raises
``StoreError`` or ``NotLeader`` if that is not known.
"""

import http.client
import logging
import os
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from urllib.parse import urlsplit

from ha.config.addresses import parse_listen
from ha.config.setting import shown
from ha.config.stores import Stores
from ha.sidecar.machine.liveness import NO_ANSWER
from ha.spark.stored.commit_log import newest_batch
from ha.spark.stored.locations import check_query
from leader.errors import InvalidName, InvalidSettings, NotLeader
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound, StoreError

_log = logging.getLogger("ha")

FORMS = "exec:COMMAND, http:URL, tcp:HOST:PORT, progress, progress:QUERY or progress:CHECKPOINT-URI"

LONGEST_OUTPUT = 200  # characters of a command's output that a failure shows
REDIRECTS_END = 400  # answers from 200 to below this are alive: as in Kubernetes, but none is followed

Probe = Callable[[float], str]
# Makes the probe of one run, from the leader directory and the command's variables.
ProbeOf = Callable[[FencedDirectory, Mapping[str, str]], Probe]


def probe_of(text: str, stores: Stores) -> ProbeOf:
    """Read the setting ``liveness_probe``; InvalidSettings if it has another form."""
    kind, colon, target = text.partition(":")
    try:
        match kind:
            case "exec" if words := _words(target):
                return lambda _, variables: partial(_exec, words, variables)
            case "http" if _is_url(target):
                return lambda *_: partial(_http, target)
            case "tcp" if (address := parse_listen(target, "tcp"))[1]:
                return lambda *_: partial(_tcp, address)
            case "progress" if target or not colon:
                return _progress(target, stores)
    except (ValueError, InvalidSettings, InvalidName, Invalid) as error:
        raise InvalidSettings(f"liveness_probe is {shown(text)}: {error}") from error
    raise InvalidSettings(f"liveness_probe is {shown(text)}: it must be {FORMS}.")


def try_once(probe: Probe, timeout: float, job: str) -> str | None:
    """Return what a probe finds wrong: empty for nothing, None if that is not known."""
    try:
        return probe(timeout)
    except TimeoutError:
        return NO_ANSWER
    except OSError as error:
        return error.strerror or f"{error}"
    except (StoreError, NotLeader) as error:
        _log.warning("%s: whether the command makes progress is not known: %s", job, error)
    except Exception:  # noqa: BLE001  # our own fault, for which no command is to be killed
        _log.exception("%s: the liveness probe cannot ask.", job)
    return None


def _exec(words: list[str], variables: Mapping[str, str], timeout: float) -> str:
    """Run a command, which is to exit with 0; it and what it has started are killed at the end of its time."""
    with tempfile.TemporaryFile() as output:  # a pipe could be held open by what it leaves behind
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        try:
            code = child.wait(timeout)
        except subprocess.TimeoutExpired:
            return f"it did not end within {timeout:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output.seek(0)
        said = output.read(LONGEST_OUTPUT).decode(errors="replace").strip()
    return f"it exited with {code}{f': {said}' if said else ''}" if code else ""


def _http(url: str, timeout: float) -> str:
    """Send one GET request, which is to be answered with 200 to 399."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    else:
        # It asks whether the server is alive, and not who it is; Kubernetes checks no certificate here either.
        tls = ssl._create_unverified_context()  # noqa: S323, SLF001
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=tls)
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    try:
        connection.request("GET", path, headers={"User-Agent": "ha-probe", "Connection": "close"})
        status = connection.getresponse().status
    except http.client.HTTPException as error:
        return f"its answer is none of HTTP: {type(error).__name__}"
    finally:
        connection.close()
    return "" if http.client.OK <= status < REDIRECTS_END else f"it answered {status}"


def _tcp(address: tuple[str, int], timeout: float) -> str:
    """Connect once, to a port that is to accept that."""
    socket.create_connection(address, timeout).close()
    return ""


class Progress:
    """A commit log of Spark that has a new batch since the last look; the first look has nothing to compare with."""

    def __init__(self, newest: Callable[[], Mapping[str, int | None]]) -> None:
        """Look at nothing yet; ``newest`` returns the newest batch of each query."""
        self._newest = newest
        self._seen: Mapping[str, int | None] | None = None

    def __call__(self, _: float) -> str:
        """Look once; the store has time-outs of its own."""
        before, self._seen = self._seen, self._newest()
        if before is None or before != self._seen:
            return ""
        known = sorted((query, batch) for query, batch in self._seen.items() if batch is not None)
        batches = ", ".join(f"{query or 'batch'} {batch}" for query, batch in known)
        return f"there is no new batch; the newest is {batches}" if batches else "there is no batch"


def _progress(target: str, stores: Stores) -> ProbeOf:
    if "://" in target:
        files, timeout = stores.open(target, workers=1), stores.timing.call_timeout
        return lambda *_: Progress(lambda: {"": _newest(files, timeout)})
    if target:
        check_query(target)
        return lambda directory, _: Progress(lambda: {target: _own_newest(directory, target)})
    return lambda directory, _: Progress(lambda: _all_newest(directory))


def _all_newest(directory: FencedDirectory) -> dict[str, int | None]:
    queries = [entry.name for entry in directory.list(SPARK) if entry.is_directory]
    return {each: _own_newest(directory, each) for each in queries}


def _own_newest(directory: FencedDirectory, query: str) -> int | None:
    return newest_batch(entry.name for entry in directory.list(f"{SPARK}/{query}/commits"))


def _newest(files: BoundedFiles, timeout: float) -> int | None:
    try:
        return newest_batch(entry.name for entry in files.call("probe", lambda driver: driver.list("commits"), timeout))
    except NotFound:
        return None


def _words(text: str) -> list[str]:
    words = shlex.split(text)
    if words and shutil.which(words[0]) is None:
        raise InvalidSettings(f"there is no command {words[0]!r}; check its path.")
    return words


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
