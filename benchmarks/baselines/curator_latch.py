"""Contender that uses Curator's ``LeaderLatch``.

    python -m benchmarks.baselines.curator_latch JOB --contender NAME -- COMMAND...

What Curator 5.9 documents, and how a careful user applies it:

- "Leader Latch": a latch is started, and ``hasLeadership()`` says "if leadership is currently held by this instance";
  only ``close()`` gives the leadership back. So it is done here; the latch is asked twenty times a second.
- "Error Handling" of the same page: "LeaderLatch instances add a ConnectionStateListener to watch for connection
  problems. If SUSPENDED or LOST is reported, the LeaderLatch that is the leader will report that it is no longer the
  leader (i.e. there will not be a leader until the connection is re-established)." So the command is stopped when
  ``hasLeadership()`` is false, and started anew when it is true again. The latch stays in the election meanwhile.
- "It is highly recommended that LeaderLatch users register a ConnectionStateListener." Asking the latch has
  the same effect: the latch has such a listener, which is told no later. Only a loss of less than 50 ms goes unnoticed.
  No other contender can have led within that time, so this favours Curator: its command runs on.
- Tech Note 14: "our recommendation is to treat SUSPENDED as a complete connection loss. Exit all locks, leaders, etc."

The contender's virtual machine is a child process, beside the command: a test that freezes the contender must freeze
the machine as well.
"""

import logging
import sys
import threading
from typing import Any

from py4j.protocol import Py4JJavaError

from benchmarks.baselines import election
from benchmarks.baselines.contender import POLL_S, CommandRunner, Standing, Task, end_on_signals, parse
from benchmarks.baselines.curator import Curator, connected, error_name
from ha.config.log import configure

RETRY_S = 1.0
"""Pause between two checks whether another contender has finished, and between two attempts to tell the others."""

_log = logging.getLogger("ha.drill")


class CuratorLatch:
    """One contender."""

    def __init__(self, task: Task, curator: Curator) -> None:
        self._task = task
        self._curator = curator
        self._runner = CommandRunner(task)
        self._pause = threading.Event()
        self._latch = self._started()

    def run(self) -> int:
        """Contend until the command of this or another contender has ended with 0; returns 0."""
        polls = 0
        while True:
            if self._latch.hasLeadership():
                if self._finished() or self._lead():
                    break
            elif polls % round(RETRY_S / POLL_S) == 0 and self._finished():
                break
            polls += 1
            self._pause.wait(POLL_S)
        self._latch.close()
        return 0

    def _lead(self) -> bool:
        """Run the command; return whether it has ended with 0."""
        node = str(self._latch.getLastPathIsLeader()).rpartition("/")[2]
        code = self._runner.lead(node, self._standing, self._pause)
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
            self._curator.client, election.path("curator", self._task.job), self._task.settings.leadership.contender
        )
        latch.start()
        _log.info("%s: contending as %s.", self._task.job, self._task.settings.leadership.contender)
        return latch

    def _finished(self) -> bool:
        try:
            return self._curator.client.checkExists().forPath(election.finished(self._task.job)) is not None
        except Py4JJavaError as error:
            _log.warning("%s: it is not known whether the job has finished: %s", self._task.job, error_name(error))
            return False

    def _finish(self) -> None:
        create = self._curator.client.create
        while True:
            try:
                create().orSetData().creatingParentsIfNeeded().forPath(election.finished(self._task.job))
            except Py4JJavaError as error:
                _log.warning("%s: cannot tell that the job has finished: %s", self._task.job, error_name(error))
                self._pause.wait(RETRY_S)
            else:
                return


def main() -> int:
    task = parse("Curator's LeaderLatch", sys.argv[1:])
    configure(level="INFO", style="text")
    end_on_signals()
    with connected(task.settings.stores.zookeeper, task.settings.leadership.session_timeout) as curator:
        return CuratorLatch(task, curator).run()


if __name__ == "__main__":
    sys.exit(main())
