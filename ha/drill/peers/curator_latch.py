"""A job guarded by Curator's ``LeaderLatch``.

    python -m ha.drill.peers.curator_latch JOB --contender NAME -- COMMAND...

What Curator 5.9 documents, and what a careful user makes of it:

- "Leader Latch": a latch is started, and ``hasLeadership()`` says "if leadership is currently held by this instance";
  leadership is given back by ``close()`` and in no other way. Done so; the latch is asked twenty times a second.
- "Error Handling" of the same page: "LeaderLatch instances add a ConnectionStateListener to watch for connection
  problems. If SUSPENDED or LOST is reported, the LeaderLatch that is the leader will report that it is no longer the
  leader (i.e. there will not be a leader until the connection is re-established)." So the command is stopped when
  ``hasLeadership()`` is false, and started anew when it is true again. A latch stays in the election meanwhile.
- "It is highly recommended that LeaderLatch users register a ConnectionStateListener." Asking the latch comes to the
  same: its own listener is one, and it is told no later. Only a loss of less than 50 ms goes unnoticed, within which
  nobody else can have led: that is in Curator's favour, since its command runs on.
- Tech Note 14: "our recommendation is to treat SUSPENDED as a complete connection loss. Exit all locks, leaders, etc."

The guard's own virtual machine is a child of it, beside the command: who freezes a guard must freeze that, too.
"""

import logging
import sys
import threading
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from ha.drill.peers import election
from ha.drill.peers.curator import Curator, connected, error_name
from ha.drill.peers.guarded import POLL, Guarded, Standing, end_on_signals
from ha.drill.peers.task import Task, parse
from ha.logs import configure

RETRY = 1.0
"""Seconds between two looks whether others have finished, and two tries to tell them."""

_log = logging.getLogger("ha.drill")


class CuratorLatch:
    """One contender."""

    def __init__(self, task: Task, curator: Curator) -> None:
        """Begin to contend.

        Args:
            task: what to run, and for whom.
            curator: the client.
        """
        self._task = task
        self._curator = curator
        self._guarded = Guarded(task)
        self._pause = threading.Event()
        self._latch = self._started()

    def run(self) -> int:
        """Contend until the command of this or another contender has ended with 0; returns 0."""
        looks = 0
        while True:
            if self._latch.hasLeadership():
                if self._finished() or self._lead():
                    break
            elif looks % round(RETRY / POLL) == 0 and self._finished():
                break
            looks += 1
            self._pause.wait(POLL)
        self._latch.close()
        return 0

    def _lead(self) -> bool:
        """Run the command; return whether it has ended with 0."""
        node = str(self._latch.getLastPathIsLeader()).rpartition("/")[2]
        code = self._guarded.lead(node, self._standing, self._pause)
        if code == 0:
            self._finish()
        elif code is not None:
            self._latch.close()
            self._latch = self._started()
        return code == 0

    def _standing(self) -> Standing:
        return Standing.LEADS if self._latch.hasLeadership() else Standing.LOST

    def _started(self) -> Any:
        latch = self._curator.jvm.org.apache.curator.framework.recipes.leader.LeaderLatch(
            self._curator.client, election.path("curator", self._task.job), self._task.settings.contender
        )
        latch.start()
        _log.info("%s: contending as %s.", self._task.job, self._task.settings.contender)
        return latch

    def _finished(self) -> bool:
        try:
            return self._curator.client.checkExists().forPath(election.finished(self._task.job)) is not None
        except Py4JJavaError as error:
            _log.warning("%s: whether the job has finished is not known: %s", self._task.job, error_name(error))
            return False

    def _finish(self) -> None:
        create = self._curator.client.create
        while True:
            try:
                create().orSetData().creatingParentsIfNeeded().forPath(election.finished(self._task.job))
            except Py4JJavaError as error:
                _log.warning("%s: cannot tell that the job has finished: %s", self._task.job, error_name(error))
                self._pause.wait(RETRY)
            else:
                return


def main() -> int:
    """Run one contender."""
    task = parse("Curator's LeaderLatch", sys.argv[1:])
    configure(level="INFO", style="text")
    end_on_signals()
    with connected(task.settings.zookeeper, task.settings.session_timeout) as curator:
        return CuratorLatch(task, curator).run()


if __name__ == "__main__":
    sys.exit(main())
