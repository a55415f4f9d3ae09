"""StoreOutages: tells the log of a process when one of its stores does not answer, and for how long."""

import logging
import threading
from typing import Any

from ha.config.stores import Stores
from ha.listening.throttle import Outage
from store.errors import NotSent, NotWritable, Unknown
from store.outcome import Outcome
from store.zookeeper import Connection
from store.zookeeper.refusals import Reason

AWAY = (Unknown, NotSent, NotWritable)  # after any other refusal a store has answered

LOOK_EVERY_S = 1.0

CONNECTS_WITHIN_S = 3.0  # a session of ZooKeeper that is not there for so long is an outage

_log = logging.getLogger("ha")


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
