"""A contender in this process, to be timed from outside: it contends, confirms and gives back when it is told to."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from ha.inbox import Granted, Inbox, Notice, Published
from ha.sandbox.polling import until
from ha.settings import load
from ha.stores import Stores
from leader.contender import Contender
from leader.information import LeaderInformation
from leader.runtime import Runtime

Kind = TypeVar("Kind", bound=Notice)

PATIENCE = 30.0
"""Seconds within which everything comes that comes at all."""

ASKED = 5.0
"""Seconds for an answer of the contender's thread, which never waits for anything."""


class Contending:
    """One contender of one job; its notices are read by whoever times it."""

    def __init__(self, job: str, settings: Mapping[str, str]) -> None:
        """Join the job, and contend for nothing yet.

        Args:
            job: the job's name.
            settings: by name, as for :func:`ha.connect`.
        """
        loaded = load(settings)
        self._job = job
        self._stores = Stores(loaded)
        self._inbox = Inbox()
        self._runtime = Runtime("bench", loaded.timing, self._stores.files, self._stores.zookeeper)
        self._contender = Contender.make(self._runtime, loaded.contender, loaded.timing)
        self._runtime.attach(self._contender)
        self._runtime.ask(lambda: self._contender.join(job, self._inbox), ASKED)

    def claim(self) -> str:
        """Contend until granted; return the session id."""
        self._runtime.post(lambda: self._contender.contend(self._job))
        return self._notice(Granted).grant.session_id

    def confirm(self, session_id: str, endpoints: dict[str, str]) -> LeaderInformation:
        """Publish these endpoints; return what HDFS holds when it holds them."""
        self._runtime.post(lambda: self._contender.confirm(self._job, session_id, endpoints))
        return self._notice(Published).information

    def release(self) -> None:
        """Give the lease back, and wait until it is free.

        Raises:
            SandboxError: it could not be given back.
        """
        self._runtime.post(lambda: self._contender.release(self._job))
        until(
            lambda: "it is still held" if self._busy() else None, PATIENCE, f"The lease of {self._job} cannot be freed"
        )

    def close(self) -> None:
        """Stop."""
        self._runtime.close()
        self._stores.close()

    def _busy(self) -> bool:
        return self._runtime.ask(lambda: self._contender.candidacies[self._job].busy, ASKED)

    def _notice(self, kind: type[Kind]) -> Kind:
        while not isinstance(notice := self._inbox.get(PATIENCE), kind):
            if notice is None:
                raise TimeoutError(f"{kind.__name__} of job {self._job!r} did not come in {PATIENCE:g} s.")
        return notice


@contextmanager
def contending(job: str, settings: Mapping[str, str]) -> Iterator[Contending]:
    """Join a job, and stop at the end."""
    made = Contending(job, settings)
    try:
        yield made
    finally:
        made.close()
