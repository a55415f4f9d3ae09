"""A job guarded by kazoo's ``Election``.

    python -m ha.drill.peers.kazoo_election JOB --contender NAME -- COMMAND...

What kazoo 2.11 documents, and what a careful user makes of it:

- ``kazoo.recipe.election``: ``election = zk.Election(path, identifier)``, then ``election.run(function)``, which blocks
  until the election is won and gives the leadership back when the function ends. So it is here: the function runs the
  command.
- ``kazoo.recipe.lock`` (which an election is made of): "It's highly recommended to add a state listener [...] and watch
  for LOST and SUSPENDED state changes and re-act appropriately. In the event that a LOST state occurs, its certain that
  the lock and/or the lease has been lost."
- "Basic Usage", section "Understanding Kazoo States": "When a connection transitions to SUSPENDED, if the client is
  performing an action that requires agreement with other systems (using the Lock recipe for example), it should pause
  what it's doing. When the connection has been re-established the client can continue depending on if the state is LOST
  or transitions directly to CONNECTED again." Taken at its word: SUSPENDED freezes the command's whole process group
  (SIGSTOP), CONNECTED lets it go on, LOST kills it. To end it at SUSPENDED would be just as safe, and cost a restart of
  Spark for every server that is restarted; freezing is what is written there, and what favours kazoo.
- "Custom Retries": a connection is retried for ever, with at most a second in between, and so are commands. With the
  defaults, a release that fails once leaves the node behind, and a lock that will never be acquired again.

Beyond the documentation, because somebody careful would: after winning, the guard reads its own node once more, so that
a session that was lost on the way is noticed before the command starts.
"""

import logging
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.states import KazooState, ZnodeStat
from kazoo.retry import KazooRetry

from ha.drill.peers import election
from ha.drill.peers.guarded import Guarded, Standing, end_on_signals
from ha.drill.peers.task import Task, parse
from ha.logs import configure

RETRY = 1.0
"""Longest time between two tries to connect, in seconds."""

_log = logging.getLogger("ha.drill")


class KazooElection:
    """One contender."""

    def __init__(self, task: Task) -> None:
        """Prepare; it does not contend before :meth:`run`.

        Args:
            task: what to run, and for whom.
        """
        self._task = task
        self._guarded = Guarded(task)
        self._changed = threading.Event()
        self._finished = threading.Event()
        self._losses = 0
        self._client = KazooClient(
            task.settings.zookeeper,
            timeout=task.settings.session_timeout,
            connection_retry=KazooRetry(max_tries=-1, max_delay=RETRY),
            command_retry=KazooRetry(max_tries=-1, max_delay=RETRY),
        )
        self._client.add_listener(self._listen)
        self._path = election.path("kazoo", task.job)
        self._election = self._client.Election(self._path, task.settings.contender)

    def run(self) -> int:
        """Contend until the command of this or another contender has ended with 0; returns 0."""
        self._client.start_async().wait()
        try:
            self._client.DataWatch(election.finished(self._task.job), self._look)
            _log.info("%s: contending as %s.", self._task.job, self._task.settings.contender)
            while not self._finished.is_set():
                try:
                    self._election.run(self._lead)
                except KazooException as error:
                    _log.warning("%s: contending failed: %r", self._task.job, error)
                    self._finished.wait(RETRY)
        finally:
            self._client.stop()
            self._client.close()
        return 0

    def _lead(self) -> None:
        losses, node = self._losses, self._election.lock.node
        if self._exists(election.finished(self._task.job)):
            self._finished.set()
            return
        if node is None or not self._exists(f"{self._path}/{node}"):
            return

        def standing() -> Standing:
            if self._losses > losses:
                return Standing.LOST
            return Standing.LEADS if self._client.state == KazooState.CONNECTED else Standing.UNSURE

        if self._guarded.lead(node, standing, self._changed) == 0:
            # While the lock is held: the next leader sees that first.
            self._client.retry(self._client.ensure_path, election.finished(self._task.job))
            self._finished.set()

    def _exists(self, path: str) -> bool:
        return self._client.retry(self._client.exists, path) is not None

    def _listen(self, state: str) -> None:
        _log.info("%s: the connection to ZooKeeper is %s.", self._task.job, state)
        if state == KazooState.LOST:
            self._losses += 1
        self._changed.set()

    def _look(self, _: bytes | None, stat: ZnodeStat | None) -> None:
        if stat is not None:
            self._finished.set()
            self._election.cancel()


def main() -> int:
    """Run one contender."""
    task = parse("kazoo's Election", sys.argv[1:])
    configure(level="INFO", style="text")
    end_on_signals()
    return KazooElection(task).run()


if __name__ == "__main__":
    sys.exit(main())
