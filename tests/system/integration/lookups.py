"""Lookups: a consumer that looks up the leader ten times a second and keeps every answer."""

import threading
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import ha
from ha.errors import NoLeader
from store.clock import now
from tests.limits import joined
from tests.system.integration.waiting import SLACK_S, until

EVERY_S = 0.1
TIMEOUT_S = 2.0

NOBODY = "nobody leads"


@dataclass(frozen=True)
class Look:
    """One lookup: its answer, or the reason of its failure. "Nobody leads" is an answer, not a failure."""

    at: float
    seconds: float
    epoch: int = 0
    session_id: str = ""
    leader: str = ""
    source: str = ""
    failure: str = ""


class Lookups:
    def __init__(self, job: str, settings: dict[str, str], timeout: float = TIMEOUT_S) -> None:
        self.all: list[Look] = []
        self._job = job
        self._timeout = timeout
        self._client = ha.connect(**settings)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lookups")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        joined(self._thread)
        self._client.close()

    @property
    def last(self) -> Look | None:
        return self.all[-1] if self.all else None

    @property
    def failures(self) -> list[Look]:
        return [each for each in self.all if each.failure and each.failure != NOBODY]

    def since(self, at: float) -> list[Look]:
        return [each for each in self.all if each.at >= at]

    def sources(self, since: float = 0.0) -> list[str]:
        return [source for source, _ in groupby(each.source for each in self.since(since) if each.source)]

    def come_from(self, source: str) -> None:
        start = now()
        until(lambda: self.since(start) and self.since(start)[-1].source == source, f"an answer from {source}")

    def check(self) -> None:
        """Assert that no lookup failed or took too long, and that no epoch went back."""
        assert self.all
        assert self.failures == []
        self.check_order()

    def check_order(self) -> None:
        """Assert that no lookup took too long, and that no epoch went back."""
        assert [each for each in self.all if each.seconds > self._timeout + SLACK_S / 2] == []
        epochs = [each.epoch for each in self.all if each.epoch]
        assert epochs == sorted(epochs)
        assert len({(each.epoch, each.session_id) for each in self.all if each.epoch}) == len(set(epochs))

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            start = now()
            fields: dict[str, Any]
            try:
                answer = self._client.leader(self._job, self._timeout)
            except NoLeader:
                fields = {"failure": NOBODY}
            except Exception as error:  # noqa: BLE001  # whatever it is, the test has to see it
                fields = {"failure": f"{type(error).__name__}: {error}"}
            else:
                fields = {
                    "epoch": answer.epoch,
                    "session_id": answer.session_id,
                    "leader": answer.endpoints.get("jobmaster", "").partition(":")[0],
                    "source": answer.source.value,
                }
            self.all.append(Look(start, now() - start, **fields))
