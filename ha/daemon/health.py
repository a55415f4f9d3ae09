"""The health of a process, told while it serves: to systemd that it is alive, to its log that a store does not answer.

The protocol of systemd, for units of ``Type=notify``, is one datagram for each notice, to the socket that NOTIFY_SOCKET
names: see ``sd_notify(3)``.
"""

import functools
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ha.config.stores import Stores
from ha.listening.throttle import Outage
from store.errors import NotSent, NotWritable, Unknown
from store.outcome import Outcome
from store.zookeeper import Connection
from store.zookeeper.refusals import Reason

LONGEST_PAUSE_S = 5.0  # a status is at most this old
NOTICES_PER_WATCHDOG = 3  # notices within the time after which systemd takes the process for dead: two may come late

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")

AWAY = (Unknown, NotSent, NotWritable)  # after any other refusal a store has answered

LOOK_EVERY_S = 1.0
CONNECTS_WITHIN_S = 3.0  # a session of ZooKeeper that is not there for so long is an outage

_log = logging.getLogger("ha")


@functools.cache
def told() -> Mapping[str, str]:
    """Take what systemd has told this process out of its environment, once: no command speaks for the unit."""
    return {name: os.environ.pop(name) for name in VARIABLES if name in os.environ}


class Systemd:
    """Notifies systemd of one process: alive only while the contender's thread answers."""

    def __init__(self, statuses: Callable[[], Mapping[str, Mapping[str, Any]]], environment: Mapping[str, str]) -> None:
        """Do nothing yet."""
        # `statuses`: returns the status of each job, or raises TimeoutError if the contender's thread hangs.
        # `environment`: where systemd has left its address: see :func:`told`.
        self._statuses = statuses
        self._address = environment.get("NOTIFY_SOCKET", "")
        ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watchdog = environment.get("WATCHDOG_USEC", "") if ours else ""
        within = int(watchdog) / 1_000_000 if watchdog.isdecimal() and int(watchdog) else float("inf")
        self._pause = min(LONGEST_PAUSE_S, within / NOTICES_PER_WATCHDOG)
        self._notices: socket.socket | None = None  # for life: a host without a free descriptor would end the unit
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="ha-systemd", daemon=True)

    def start(self) -> None:
        """Say that the process is ready, and from now on that it is alive."""
        if self._address:
            self._send("READY=1")
            self._thread.start()

    def close(self) -> None:
        """Say that the process is stopping."""
        self._over.set()
        if self._address:
            self._send("STOPPING=1")
            if self._notices is not None:
                self._notices.close()

    def _go_on(self) -> None:
        while True:
            try:
                leads = {job: status["is_leader"] for job, status in self._statuses().items()}
                roles = [f"{job}: {'leader' if leads[job] else 'standby'}" for job in leads]
                self._send("\n".join(["WATCHDOG=1", f"STATUS={', '.join(roles)[:200]}"]))
            except TimeoutError:
                _log.warning("The contender's thread does not answer: systemd is not told that this process is alive.")
            if self._over.wait(self._pause):
                return

    def _send(self, text: str) -> None:
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            if self._notices is None:
                self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._notices.settimeout(1.0)
            self._notices.sendto(text.encode(), address)
        except OSError as error:
            _log.warning("systemd is not told %r: %s.", text.partition("\n")[0], error.strerror or error)


class StoreOutages:
    """The outages of both stores, as a process sees them. Calls of HDFS say how it is, and ZooKeeper's session."""

    def __init__(self, stores: Stores) -> None:
        """Watch nothing yet."""
        address = stores.settings.stores.zookeeper
        self._zookeeper = stores.zookeeper
        self._lock = threading.Lock()
        self._files = Outage(_log, lambda: f"The file system {stores.files.uri} (`files`)")
        self._session = Outage(_log, lambda: f"ZooKeeper at {address} (`zookeeper`)")
        self._away, self._refused_before = 0.0, dict.fromkeys(Reason, 0)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ha-outages", daemon=True)
        stores.on_outcome = self._called

    def start(self) -> None:
        """Begin to look at ZooKeeper's session."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._end.set()

    def _called(self, _: str, outcome: Outcome[Any]) -> None:
        with self._lock:
            if isinstance(outcome.error, AWAY):
                self._files.fails(outcome.error)
            else:
                self._files.works()

    def _run(self) -> None:
        while self._zookeeper is not None and not self._end.wait(LOOK_EVERY_S):
            if self._zookeeper.state is Connection.CONNECTED:
                self._away, self._refused_before = 0.0, self._zookeeper.refusals
                self._session.works()
                continue
            self._away += LOOK_EVERY_S
            if self._away >= CONNECTS_WITHIN_S:
                before, counts = self._refused_before, self._zookeeper.refusals
                refused = ", ".join(each.value for each, count in counts.items() if count > before[each])
                self._session.fails(refused or "no server has taken its session")
