"""``ha run --spark``: a sidecar publishes what a program commits that imports nothing of this package.

It looks at Spark's commit logs from time to time, for nobody tells it when a batch is complete: soon after one that was
new, then more and more seldom. What else Spark knows of a batch is not in that log, and so not in the checkpoint.
"""

import logging
import threading
from collections.abc import Callable

from ha.leadership import Leadership, copy_of_checkpoints
from ha.node import Node
from ha.spark.commits import newest_commit, queries
from leader.errors import InvalidName, NotLeader, Unreadable
from leader.names import LeaderDirectory
from store.clock import now
from store.errors import StoreError

SOONEST, LATEST = 1.0, 10.0
"""Seconds until the next look: after something new, and at most; it doubles in between. A look is two requests to the
NameNode for one query, and a batch two more."""

PATIENCE = 8
"""Looks, within 54 s, until a program without any checkpoint below the leader directory is spoken of."""

CLOSE_WITHIN = 5.0
"""Seconds in which what was completed last is to be published; closing waits for that, and no longer."""

RETRY = 0.5
"""Seconds between two tries of that."""

_log = logging.getLogger("ha")


class Following:
    """Follows one job's leaderships, one after the other. Every call may be made at any time."""

    def __init__(self, node: Node, job: str, leads: Callable[[], bool]) -> None:
        """Follow nothing yet.

        Args:
            node: the process's stores.
            job: the job's name.
            leads: whether this process leads now.
        """
        self._node, self._job, self._leads = node, job, leads
        self._copy = copy_of_checkpoints(node.runtime, job)
        self._follower: Follower | None = None

    def begin(self, leader: LeaderDirectory) -> None:
        """The job was granted."""
        self.end()
        leadership = Leadership(self._job, leader, self._node.stores, self._node.runtime, self._leads, self._copy)
        self._follower = Follower(leadership)
        self._follower.start()

    def finish(self) -> None:
        """The command's work is done: what it has completed last is published before this returns, or in 5 s."""
        if self._follower is not None:
            self._follower.close()

    def end(self) -> None:
        """The leadership is about to be given back."""
        if self._follower is not None:
            self._follower.stop()
            self._follower = None


class Follower:
    """Publishes on a thread of its own, until it is closed or the leadership ends."""

    def __init__(self, leadership: Leadership) -> None:
        """Look at nothing yet.

        Args:
            leadership: the sidecar's, made for this alone: :meth:`stop` ends it. Nobody else may publish under it, so
                ``ha.lead`` refuses to hand it down.
        """
        self._leadership = leadership
        self._published: dict[str, int] = {}
        self._said: set[str] = set()
        self._without = 0
        """Looks in a row that have found no checkpoint."""
        self._wake = threading.Event()
        self._last_look = False
        self._thread = threading.Thread(target=self._run, name="ha-commits", daemon=True)

    def start(self) -> None:
        """Begin, with what an earlier program has completed."""
        self._thread.start()

    def close(self) -> None:
        """Look once more, publish what is new, and stop; takes 5 s at most."""
        self._last_look = True
        self._wake.set()
        self._thread.join(CLOSE_WITHIN)

    def stop(self) -> None:
        """Look no more, and wait for nothing; what is under way is fenced by the store."""
        self._wake.set()
        self._leadership.end()

    def look(self) -> bool | None:
        """Publish every batch that is newer than what was published.

        Returns:
            Whether there was any; None if the store did not take it, or did not say.

        Raises:
            Fenced: another leader has taken over.
            Unreadable: among the job's checkpoints there is a name that cannot be read.
        """
        try:
            found = queries(self._leadership)
            self._wonder(found)
            return bool([query for query in found if self._publish(query)])
        except StoreError as error:
            self._say(f"its checkpoints are published later: {error}")
            return None

    def _wonder(self, found: list[str]) -> None:
        """What a program keeps elsewhere nobody fences, and nobody would notice."""
        self._without = 0 if found else self._without + 1
        if self._without == PATIENCE and not self._published:
            self._say(
                "no query with a name has a checkpoint below the leader directory yet. One that sets its "
                "checkpointLocation itself is not fenced, and one without a queryName begins anew at each start."
            )

    def _publish(self, query: str) -> bool:
        batch = newest_commit(self._leadership, query)
        if batch is None or batch <= self._published.get(query, -1):
            return False
        try:
            self._leadership.checkpoints.completed(query, batch)
        except InvalidName as error:  # this one's name, or there are too many: the others go on
            self._say(f"the checkpoints of a query are not published: {error}")
        self._published[query] = batch
        return True

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            _log.warning("%s: %s", self._leadership.job, sentence)

    # --- the thread

    def _look_once_more(self) -> None:
        """Nobody comes after this one: the job is about to end."""
        end = now() + CLOSE_WITHIN
        while self.look() is None:
            if now() >= end:
                _log.warning("%s: what it completed last is not published.", self._leadership.job)
                return
            threading.Event().wait(RETRY)

    def _run(self) -> None:
        pause = SOONEST
        try:
            while True:
                pause = SOONEST if self.look() else min(LATEST, 2 * pause)
                if self._wake.wait(pause):
                    break
            if self._last_look:
                self._look_once_more()
        except NotLeader as error:
            _log.info("%s: no more checkpoints are published: %s", self._leadership.job, error)
        except Unreadable as error:
            _log.error("%s: no checkpoints are published: %s", self._leadership.job, error)
        except Exception:  # noqa: BLE001  # the command goes on; its checkpoints are a report
            _log.exception("%s: the publication of checkpoints has failed and stops.", self._leadership.job)
