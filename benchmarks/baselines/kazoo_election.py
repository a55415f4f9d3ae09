"""Contender that uses kazoo's ``Election``.

    python -m benchmarks.baselines.kazoo_election JOB --contender NAME -- COMMAND...

What kazoo 2.11 documents, and how a careful user applies it:

- ``kazoo.recipe.election``: ``election = zk.Election(path, identifier)``, then ``election.run(function)``, which blocks
  until the election is won and gives the leadership back when the function ends. Here
  the function runs the command.
- ``kazoo.recipe.lock`` (which an election is made of): "It's highly recommended to add a state listener [...] and watch
  for LOST and SUSPENDED state changes and re-act appropriately. In the event that a LOST state occurs, its certain that
  the lock and/or the lease has been lost."
- "Basic Usage", section "Understanding Kazoo States": "When a connection transitions to SUSPENDED, if the client is
  performing an action that requires agreement with other systems (using the Lock recipe for example), it should pause
  what it's doing. When the connection has been re-established the client can continue depending on if the state is LOST
  or transitions directly to CONNECTED again." Taken literally: SUSPENDED freezes the command's whole process group
  (SIGSTOP), CONNECTED lets it go on, LOST kills it. Ending the command at SUSPENDED would be just as safe, but cost
  a restart of Spark for every restarted server; freezing is what the documentation says, and it favours kazoo.
- "Custom Retries": a connection is retried for ever, with at most a second in between, and so are commands. With the
  defaults, a release that fails once leaves its node behind, and nobody can acquire the lock again.

Beyond the documentation, as a careful user would: after winning, the contender reads its own node once more, so that it
notices a session that was lost on the way before the command starts.
"""

import logging
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.states import KazooState, ZnodeStat
from kazoo.retry import KazooRetry

from benchmarks.baselines import election
from benchmarks.baselines.contender import CommandRunner, Standing, Task, end_on_signals, parse
from ha.config.log import configure

RETRY_S = 1.0  # Longest pause between two attempts to connect

_log = logging.getLogger("ha.drill")


class KazooElection:
    """One contender."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._runner = CommandRunner(task)
        self._changed = threading.Event()
        self._finished = threading.Event()
        self._losses = 0
        self._client = KazooClient(
            task.settings.stores.zookeeper,
            timeout=task.settings.leadership.session_timeout,
            connection_retry=KazooRetry(max_tries=-1, max_delay=RETRY_S),
            command_retry=KazooRetry(max_tries=-1, max_delay=RETRY_S),
        )
        self._client.add_listener(self._listen)
        self._path = election.path("kazoo", task.job)
        self._election = self._client.Election(self._path, task.settings.leadership.contender)

    def run(self) -> int:
        """Contend until the command of this or another contender has ended with 0; returns 0."""
        self._client.start_async().wait()
        try:
            self._client.DataWatch(election.finished(self._task.job), self._look)
            _log.info("%s: contending as %s.", self._task.job, self._task.settings.leadership.contender)
            while not self._finished.is_set():
                try:
                    self._election.run(self._lead)
                except KazooException as error:
                    _log.warning("%s: contending failed: %r", self._task.job, error)
                    self._finished.wait(RETRY_S)
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

        if self._runner.lead(node, standing, self._changed) == 0:
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
    task = parse("kazoo's Election", sys.argv[1:])
    configure(level="INFO", style="text")
    end_on_signals()
    return KazooElection(task).run()


if __name__ == "__main__":
    sys.exit(main())
