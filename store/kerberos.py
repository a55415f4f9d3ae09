"""Kerberos: the ticket of this process, renewed from a keytab before it ends, and how long it still lasts.

A ticket ends unnoticed: open connections stay, and the next one fails. So a process with a keytab logs in again at 80 %
of each ticket's life, into a cache of its own. Tickets are dated by the wall clock, of the host and of the key
distribution centre. The waits here are not.
"""

import atexit
import logging
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from store.errors import Invalid

log = logging.getLogger(__name__)

RENEWED_AT = 0.8  # part of its life after which a ticket is replaced
LOGIN_TIMEOUT_S = 20.0
SHORTEST_RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
RETRIES_PER_LIFE = 50  # a login that failed is tried again after this part of a ticket's life, or a minute
MAX_CACHE_BYTES = 4_000_000
PREFIX = "ha-kerberos-"

_TICKET_OF_TICKETS = b"krbtgt"
_VERSION = 0x0504


class Life(msgspec.Struct, frozen=True):
    """When a ticket began and when it ends, in seconds of the wall clock since 1970."""

    begins: float
    ends: float

    @property
    def seconds(self) -> float:
        """How long it lasts altogether."""
        return max(0.0, self.ends - self.begins)


def read_life(path: Path) -> Life | None:
    """Return the life of the ticket in a cache of type FILE; None if there is none, or the file is none."""
    try:
        # Anybody may have put something in the default place: the opening of a pipe would wait for who writes into it.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            return _life(file.read(MAX_CACHE_BYTES) or b"")
    except (OSError, struct.error, ValueError):
        return None


def _life(data: bytes) -> Life | None:
    """Look for the ticket that all others are got with; the format is that of MIT and Heimdal, version 4."""
    version, header = struct.unpack_from(">HH", data)
    if version != _VERSION:
        return None
    found, at = None, 4 + header
    _, at = _principal(data, at)
    while at < len(data):
        _, at = _principal(data, at)
        server, at = _principal(data, at)
        _, at = _bytes(data, at + 2)
        authenticated, starts, ends = struct.unpack_from(">III", data, at)
        at += 16 + 5
        for _ in range(2):  # addresses, then authorization data
            (count,) = struct.unpack_from(">I", data, at)
            at += 4
            for _ in range(count):
                _, at = _bytes(data, at + 2)
        for _ in range(2):  # the ticket, and a second one
            _, at = _bytes(data, at)
        if server[:1] == [_TICKET_OF_TICKETS]:
            found = Life(float(starts or authenticated), float(ends))
    return found


def _principal(data: bytes, at: int) -> tuple[list[bytes], int]:
    (count,) = struct.unpack_from(">I", data, at + 4)
    _realm, at = _bytes(data, at + 8)
    parts = []
    for _ in range(count):
        part, at = _bytes(data, at)
        parts.append(part)
    return parts, at


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from(">I", data, at)
    end = at + 4 + length
    if end > len(data):
        raise ValueError("It ends too soon.")
    return data[at + 4 : end], end


def ticket() -> tuple[float, float] | None:
    """Return how many seconds this process's ticket still lasts, and how many in all; None unless it is in a file."""
    cache = cache_of_environment()
    life = read_life(cache) if cache is not None else None
    return None if life is None else (life.ends - time.time(), life.seconds)


def cache_of_environment() -> Path | None:
    """Return the file with the ticket of this process; None if it is kept elsewhere."""
    kind, colon, rest = os.environ.get("KRB5CCNAME", f"FILE:/tmp/krb5cc_{os.getuid()}").partition(":")
    if not colon:
        return Path(kind)
    return Path(rest) if kind == "FILE" else None


class KerberosLogin:
    """Logs in a principal from a keytab, again and again; every method but ``step`` returns at once."""

    def __init__(self, keytab: str, principal: str, cache: Path, wall_clock: Callable[[], float] = time.time) -> None:
        self._keytab = keytab
        self._principal = principal
        self.cache = cache
        self._wall_clock = wall_clock
        self._warned: float | None = None

    def step(self) -> float:
        """Log in; return after how many seconds to do so again."""
        refusal = self._log_in()
        life = read_life(self.cache)
        if refusal is None and life is not None:
            log.info("Kerberos: %s has a ticket for %.0f s.", self._principal, life.seconds)
            return max(SHORTEST_RETRY_S, life.seconds * RENEWED_AT)
        left = life.ends - self._wall_clock() if life is not None else 0.0
        if self._warned != (life.ends if life is not None else 0.0):
            self._warned = life.ends if life is not None else 0.0
            log.warning(
                "Kerberos: %s cannot log in (%s); its ticket ends in %.0f s. Then every new connection to HDFS fails.",
                self._principal,
                refusal,
                max(0.0, left),
            )
        soon = life.seconds / RETRIES_PER_LIFE if life is not None else SHORTEST_RETRY_S
        return min(LONGEST_RETRY_S, max(SHORTEST_RETRY_S, soon))

    def _log_in(self) -> str | None:
        fresh, folder = self.cache.with_suffix(".new"), self.cache.parent
        try:
            folder.mkdir(0o700, exist_ok=True)  # a cleaner of temporary files may have taken it
            if folder.lstat().st_uid != os.geteuid():
                return f"{folder} belongs to another user"
            ended = subprocess.run(
                [shutil.which("kinit") or "kinit", "-k", "-t", self._keytab, "-c", str(fresh), self._principal],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LOGIN_TIMEOUT_S,
                check=False,
            )
            if ended.returncode != 0:
                return ended.stderr.strip().partition("\n")[0] or f"kinit ended with {ended.returncode}"
            fresh.replace(self.cache)
        except subprocess.TimeoutExpired:
            return f"kinit took more than {LOGIN_TIMEOUT_S:.0f} s"
        except OSError as error:
            return str(error)
        return None


class TicketWatch:
    """Logs that a ticket is about to end, and that it has ended, for a process that does not log in itself."""

    def __init__(self) -> None:
        self._said = ""

    def step(self) -> float:
        """Look at the ticket; return after how many seconds to do so again."""
        left, whole = ticket() or (LONGEST_RETRY_S, 0.0)
        early = (1 - RENEWED_AT) * whole
        said = "has ended, so every new connection to HDFS fails" if left <= 0 else ""
        if 0 < left <= early:
            said = "ends in {:.0f} s, and then every new connection to HDFS fails"
        if said not in ("", self._said):
            what = said.format(left)
            log.warning("Kerberos: the ticket of this process %s: run kinit, or set kerberos_keytab.", what)
        self._said = said
        soon = left - early if left > early else left
        return min(LONGEST_RETRY_S, max(SHORTEST_RETRY_S, soon))


class Keeper:
    """A thread that keeps this process logged in, or only watches its ticket. The first step is taken at once."""

    def __init__(self, login: KerberosLogin | TicketWatch) -> None:
        self._login = login
        self._stopped = threading.Event()
        wait = login.step()
        if isinstance(login, KerberosLogin):
            # A plain path, since Java takes no "FILE:" before it.
            os.environ["KRB5CCNAME"] = str(login.cache)
        self._thread = threading.Thread(target=self._run, args=(wait,), name="ha-kerberos", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, at once or after the login that is under way."""
        self._stopped.set()
        self._thread.join(LOGIN_TIMEOUT_S)

    def _run(self, wait: float) -> None:
        while not self._stopped.wait(wait):
            try:
                wait = self._login.step()
            except Exception:
                log.exception("Kerberos: the login failed in an unexpected way.")
                wait = LONGEST_RETRY_S


_keepers: dict[tuple[int, str, str], Keeper] = {}
_lock = threading.Lock()


def keep_logged_in(keytab: str, principal: str) -> Keeper:
    """Log in from a keytab now, and again before each ticket ends; one keeper serves the whole process."""
    # A login that fails is only logged. Invalid: the keytab cannot be read, or there is no kinit.
    try:
        with Path(keytab).open("rb"):
            pass
    except OSError as error:
        raise Invalid(f"kerberos_keytab: {keytab} cannot be read ({error.strerror}).") from error
    if shutil.which("kinit") is None:
        raise Invalid("kerberos_keytab needs the program kinit: install it (Debian: apt-get install krb5-user).")
    key = (os.getpid(), keytab, principal)
    with _lock:
        if key not in _keepers:
            _remove_left(time.time())
            folder = tempfile.mkdtemp(prefix=PREFIX)  # only this user can enter it
            atexit.register(_remove, folder, os.getpid())
            _keepers[key] = Keeper(KerberosLogin(keytab, principal, Path(folder, "ticket")))
        return _keepers[key]


def watch_ticket() -> None:
    """Have a thread say when the ticket of this process ends; one serves the whole process."""
    with _lock:
        key = (os.getpid(), "", "")
        if key not in _keepers:
            _keepers[key] = Keeper(TicketWatch())


def _remove_left(at: float) -> None:
    """Remove what killed processes of this user have left: folders whose ticket has ended at that wall-clock time."""
    # A process that lives makes its folder again with its next login.
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        life = read_life(folder / "ticket")
        if life is not None and life.ends < at:
            with suppress(OSError):  # its process ends this moment
                if folder.lstat().st_uid == os.geteuid():
                    shutil.rmtree(folder)


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
