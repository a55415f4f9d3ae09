"""Contender in this process, for timing from outside: it contends, confirms and releases on command."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from ha.config.sources import load
from ha.config.stores import Stores
from ha.leadership.notices import GrantNotice, Notice, NoticeQueue, PublicationNotice
from ha.sandbox.polling import until
from leader.contender.contender import Contender
from leader.contender.runtime import Runtime
from leader.layout.information import LeaderInformation

Kind = TypeVar("Kind", bound=Notice)

PATIENCE = 30.0  # Seconds to wait for any notice; a later one counts as missing
ASKED = 5.0  # Seconds to wait for an answer of the contender's thread, which never blocks


class Contending:
    """One contender of one job; the benchmark reads its notices."""

    def __init__(self, job: str, settings: Mapping[str, str]) -> None:
        loaded = load(settings)
        self._job = job
        self._stores = Stores(loaded)
        self._notices = NoticeQueue()
        self._runtime = Runtime("bench", loaded.leadership.timing, self._stores.files, self._stores.zookeeper)
        self._contender = Contender.make(self._runtime, loaded.leadership.contender, loaded.leadership.timing)
        self._runtime.attach(self._contender)
        self._runtime.ask(lambda: self._contender.join(job, self._notices), ASKED)

    def claim(self) -> str:
        """Contend until granted; return the session id."""
        self._runtime.post(lambda: self._contender.contend(self._job))
        return self._notice(GrantNotice).grant.session_id

    def confirm(self, session_id: str, endpoints: dict[str, str]) -> LeaderInformation:
        """Publish these endpoints; return the record once HDFS holds it."""
        self._runtime.post(lambda: self._contender.confirm(self._job, session_id, endpoints))
        return self._notice(PublicationNotice).information

    def release(self) -> None:
        """Release the lease, and wait until it is free."""
        self._runtime.post(lambda: self._contender.release(self._job))
        until(
            lambda: "it is still held" if self._busy() else None, PATIENCE, f"The lease of {self._job} is not released"
        )

    def close(self) -> None:
        """Stop."""
        self._runtime.close()
        self._stores.close()

    def _busy(self) -> bool:
        return self._runtime.ask(lambda: self._contender.participants[self._job].busy, ASKED)

    def _notice(self, kind: type[Kind]) -> Kind:
        while not isinstance(notice := self._notices.get(PATIENCE), kind):
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
