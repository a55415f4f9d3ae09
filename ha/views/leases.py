"""Leases: whether a job is led, by one rule for every view and command, and ZooKeeper's word, waited for once a look.

A lease is held until its time to live has passed since its renewal, or ZooKeeper says that the session attesting it is
over: the rule of standbys and readers. They watch a lease for a while; one look compares the store's time with this
host's. So a store of other hosts gets :data:`CLOCKS_DIFFER_S` more, and the lease is called overdue meanwhile.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple, TypeVar

import msgspec

from ha.config.stores import Stores
from leader.errors import NotLeader
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import LOOKS, FencedDirectory
from leader.layout.information import Record
from leader.layout.lease import Lease, Mode
from leader.layout.names import RECORD
from leader.layout.znodes import SESSIONS, incarnation_of
from store.errors import NotFound, StoreError
from store.files import Entry
from store.traits import traits
from store.zookeeper import Children, Connection, Get, Sync

T = TypeVar("T")

CLOCKS_DIFFER_S = 30.0  # seconds by which the clocks of this host and of a store may differ
WAIT_S = 1.0  # seconds for ZooKeeper's first answer, and for each further one


class LeaseState(msgspec.Struct, frozen=True):
    """A lease as one look finds it."""

    said: str  # who attests it; or why nobody holds it, in a word of the history: released, session-gone or expired
    held: bool  # whether it has a holder, as far as known
    in_time: bool  # whether it has, and was renewed in time
    contender: str  # that holds it, or held it last
    # when it was renewed or given back last, by the clock of the store; 0 if an operator's mark on it or beside it is
    # newer than that
    changed_ms: int


class JobLook(NamedTuple):
    """The present leader directory of a job, with its entries, its record and the state of the lease in it."""

    directory: FencedDirectory
    entries: Sequence[Entry]
    record: Record
    lease: LeaseState


def steady(look: Callable[[], T]) -> T:
    """Look again while leaders claim the job between two calls; the last try raises ``NotLeader``."""
    for _ in range(LOOKS - 1):
        with suppress(NotLeader):
            return look()
    return look()


class Leases:
    """Judges the leases of any number of jobs in one look."""

    def __init__(self, stores: Stores, root: str = "") -> None:
        """Ask nothing yet; ``root`` is that of the jobs, if it is not that of the stores."""
        self._zookeeper, self._drift = stores.zookeeper, stores.timing.drift
        self._clocks_differ = 0.0 if traits(root or stores.settings.stores.files).local else CLOCKS_DIFFER_S
        self.silence = "" if stores.zookeeper is not None else "none is configured, with the setting `zookeeper`"
        """Why ZooKeeper says nothing; empty while it answers, or was not asked."""

    def look(self, admin: JobAdmin, job: str) -> "JobLook":
        """Look at a job's record, and at what lies beside it: three lists."""
        # NoLeader: there is no such job, or its record holds no lease. NotLeader: a leader has claimed the job between
        # two lists; see :func:`steady`.
        leader, record = admin.record(job)
        directory = admin.directory(job, leader)
        entries = directory.list()
        return JobLook(directory, entries, record, self._judge(record, entries))

    def _judge(self, record: Record, entries: Sequence[Entry]) -> LeaseState:
        lease = record.lease
        assert lease is not None, "a record that was returned has a lease"
        changed_ms = max((each.modified_ms for each in entries if each.name == RECORD), default=0)
        late = time.time() - changed_ms / 1000 - lease.ttl * (1 + self._drift)
        over = (lease.mode is Mode.RELEASED and "released") or (self._gone(lease) and "session-gone")
        over = over or (late > self._clocks_differ and "expired")
        in_time, marked = not over and late <= 0, bool(lease.marks or record.bars or record.pauses)
        return LeaseState(over or lease.mode.value, not over, in_time, lease.contender, 0 if marked else changed_ms)

    def contenders(self, admin: JobAdmin, job: str) -> list[str] | None:
        """Return the contenders that have announced themselves; None if ZooKeeper does not answer."""
        found = admin.contenders(job) if self._sessions is not None and not self.silence else None
        if found is None and not self.silence:
            self.silence = "it does not answer"
        return found

    def _gone(self, lease: Lease) -> bool:
        if lease.mode is not Mode.ZOOKEEPER or self._sessions is None:
            return False
        incarnation, tokens = self._sessions
        return incarnation == incarnation_of(lease.attestation) and lease.attestation not in tokens

    @cached_property
    def _sessions(self) -> tuple[str, frozenset[str]] | None:
        """The life of the ensemble, and the tokens of its sessions; None if it does not answer."""
        zookeeper = self._zookeeper
        if zookeeper is None:
            return None
        zookeeper.start()
        if zookeeper.wait(WAIT_S) is not Connection.CONNECTED:
            self.silence = f"{zookeeper.address} gives no session within {WAIT_S:g} s"
            return None
        try:
            zookeeper.call(Sync(SESSIONS), WAIT_S)
            data, _ = zookeeper.call(Get(SESSIONS), WAIT_S)
            tokens: list[str] = zookeeper.call(Children(SESSIONS), WAIT_S)
            return data.decode(errors="replace"), frozenset(tokens)
        except NotFound:  # no process has ever had a session there
            return "", frozenset()
        except StoreError as error:
            self.silence = f"{error}"
            return None
