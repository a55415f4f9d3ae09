"""TLS of a server, and files that are re-read when they change: those of certificates, keys and tokens."""

import logging
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from ha.listening.throttle import throttle
from leader.errors import InvalidSettings

_log = logging.getLogger("ha.listening")
throttle(_log.name)


class ServerTls:
    """A context for a server. Each new connection gets the present files; those that are open keep what they have."""

    def __init__(self, certificate: str, key: str, client_ca: str) -> None:
        """Read the files, all in PEM; ``InvalidSettings`` if one cannot be read, or the key is another certificate's.

        The key is without a password, and may be in the file of the certificate. With a ``client_ca``, clients need a
        certificate of this authority.
        """
        self.asks_clients = bool(client_ca)
        paths = tuple(each for each in (certificate, key, client_ca) if each)
        try:
            self._contexts = ChangingFiles(paths, lambda: _context(certificate, key, client_ca))
        except (OSError, ValueError) as error:
            raise InvalidSettings(
                f"TLS of the HTTP API cannot be set up from {' and '.join(paths)}: {reason(error)}."
            ) from error
        self.context = self._contexts.last()
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext) -> None:
        """Give a connection that begins the present context; called whether or not the client sends a name."""
        try:
            connection.context = self._contexts.value()
        except (OSError, ValueError) as error:
            # Half of a pair may be there already: the other half follows.
            _log.error("The new certificate or key cannot be used: %s. The old one is used.", reason(error))
            connection.context = self._contexts.last()


def _context(certificate: str, key: str, client_ca: str) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.load_cert_chain(certificate, key or None, password="")  # an empty one: it must not ask a terminal
    if client_ca:
        made.load_verify_locations(client_ca)
        made.verify_mode = ssl.CERT_REQUIRED
    return made


def reason(error: Exception) -> str:
    """Return why a file cannot be used."""
    if isinstance(error, ssl.SSLError):
        return error.reason or "it is not PEM"
    return (error.strerror if isinstance(error, OSError) else None) or f"{error}"


T = TypeVar("T")

Mark = tuple[int, int, int]  # tells two versions of a file apart: inode, size, time of the last change


class ChangingFiles(Generic[T]):
    """The joint content of some small files on this host; any thread may read it."""

    def __init__(self, paths: tuple[str, ...], load: Callable[[], T]) -> None:
        """Load the files; ``load`` raises ``OSError`` or ``ValueError`` if they cannot be read."""
        self._paths, self._load = paths, load
        self._lock = threading.Lock()
        self._marks = self._look()
        self._value = load()

    def value(self) -> T:
        """Return what they say now. If they have changed and cannot be read, ``load`` raises again at each call."""
        with self._lock:
            marks = self._look()
            if marks != self._marks:
                self._value = self._load()
                self._marks = marks
            return self._value

    def last(self) -> T:
        """Return what they said when they could be read last."""
        return self._value

    def _look(self) -> tuple[Mark, ...]:
        found = [Path(each).stat() for each in self._paths]
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)
