"""Costs of leadership in HDFS, counted at the calls and by the NameNode itself."""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from ha.config.sources import load
from ha.config.stores import Stores
from ha.leadership.notices import GrantNotice, Notice, NoticeQueue, PublicationNotice
from leader.contender.contender import Contender
from leader.contender.runtime import Runtime
from leader.timing import Timing
from store.clock import now
from store.outcome import Outcome
from tests.patience import PATIENCE_S
from tests.system.integration.waiting import SLACK_S, pause, until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper]

WRITES = ("Rename", "MakeDirectory", "Delete", "CreateJob")

log = logging.getLogger(__name__)


class Counted:
    """A contender in this process, whose calls to the file system are counted."""

    def __init__(self, job: str, settings: dict[str, str], name: str) -> None:
        self.calls: Counter[str] = Counter()
        loaded = load(settings)
        self._job = job
        self._stores = Stores(loaded, on_call=self._called)
        self._notices = NoticeQueue()
        self.runtime = Runtime(name, loaded.leadership.timing, self._stores.files, self._stores.zookeeper)
        self.contender = Contender.make(self.runtime, name, loaded.leadership.timing)
        self.runtime.attach(self.contender)
        self.runtime.ask(lambda: self.contender.join(job, self._notices), PATIENCE_S)

    def _called(self, name: str, _: Outcome[Any]) -> None:
        self.calls[name] += 1

    @property
    def writes(self) -> int:
        return sum(self.calls[name] for name in WRITES)

    def contend(self) -> None:
        self.runtime.post(lambda: self.contender.contend(self._job))

    def confirm(self, session_id: str) -> None:
        self.runtime.post(lambda: self.contender.confirm(self._job, session_id, {"jobmaster": "here:1"}))

    def notice(self, kind: type[Notice]) -> Any:
        while not isinstance(notice := self._notices.get(PATIENCE_S), kind):
            assert notice is not None
        return notice

    def release(self) -> None:
        self.runtime.post(lambda: self.contender.release(self._job))
        until(
            lambda: not self.runtime.ask(lambda: self.contender.participants[self._job].busy, PATIENCE_S),
            "it is released",
        )

    def mode(self) -> str:
        lease = self.runtime.ask(lambda: self.contender.participants[self._job].election.state.lease, PATIENCE_S)
        return lease.mode.value if lease else ""

    def close(self) -> None:
        self.runtime.close()
        self._stores.close()


@contextmanager
def counted(job: str, settings: dict[str, str], name: str) -> Iterator[Counted]:
    made = Counted(job, settings, name)
    try:
        yield made
    finally:
        made.close()


def journal(webhdfs_uri: str) -> int:
    """Number of the newest entry in the NameNode's journal: one for each change of a name, and for each block."""
    address = webhdfs_uri.removeprefix("webhdfs://").partition("/")[0]
    question = {"qry": "Hadoop:service=NameNode,name=NameNodeInfo"}
    answer = requests.get(f"http://{address}/jmx", params=question, timeout=PATIENCE_S).json()
    return int(json.loads(answer["beans"][0]["JournalTransactionInfo"])["LastAppliedOrWrittenTxId"])


@pytest.mark.timed
def test_a_claim_is_two_renames(job: str, stores: dict[str, str], webhdfs_uri: str) -> None:
    """Then one directory for each endpoint, or the rename of an old one, and one line of history; never a block."""
    with counted(job, stores, "first") as first:
        first.contend()
        first.confirm(first.notice(GrantNotice).grant.session_id)
        first.notice(PublicationNotice)
        first.release()
    with counted(job, stores, "second") as second:
        before = journal(webhdfs_uri)
        second.contend()
        granted = second.notice(GrantNotice)
        assert second.calls["Rename"] == 2
        assert second.calls["CreateJob"] + second.calls["Delete"] == 0
        second.confirm(granted.grant.session_id)
        second.notice(PublicationNotice)
        assert second.calls["Rename"] == 3
        until(lambda: second.calls["MakeDirectory"] == 1, "the history is written")
        log.info("A grant cost %s.", dict(second.calls))
        # Nothing else was written, and blocks would be entries of the journal, too. By now the lease may have been
        # renewed, so both numbers are compared until none is on its way.
        until(lambda: journal(webhdfs_uri) == before + second.writes, "all entries of the journal are ours", SLACK_S)
        second.release()


@pytest.mark.timed
@pytest.mark.slow
def test_a_leader_writes_once_in_twenty_seconds(job: str, stores: dict[str, str], webhdfs_uri: str) -> None:
    """With the default durations, while ZooKeeper is well; a standby reads as seldom."""
    with counted(job, stores, "leader") as leader, counted(job, stores, "standby") as standby:
        leader.contend()
        leader.confirm(leader.notice(GrantNotice).grant.session_id)
        leader.notice(PublicationNotice)
        until(lambda: leader.mode() == "zookeeper", "ZooKeeper attests the lease")
        until(lambda: leader.calls["MakeDirectory"] == 2, "all is written")
        standby.contend()
        until(lambda: standby.mode() == "zookeeper", "the standby has read the lease")
        until(lambda: standby.calls["ListRecord"], "it has looked")
        leader.calls.clear()
        standby.calls.clear()
        before, began = journal(webhdfs_uri), now()
        pause(Timing().long_ttl / 3 + SLACK_S / 3)
        written = journal(webhdfs_uri) - before
        log.info("In %.1f s a leader cost %s, a standby %s.", now() - began, dict(leader.calls), dict(standby.calls))
        assert leader.writes == 1
        assert written == 1
        assert sum(leader.calls.values()) <= 2
        assert standby.writes == 0
        assert sum(standby.calls.values()) <= 2
        leader.release()
