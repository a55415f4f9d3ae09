"""Canaries of readers: what they believe of ZooKeeper, of HDFS and of an agent."""

import msgspec

from ha.agent.agent import snapshot_of
from leader.layout.information import LeaderInformation
from leader.layout.names import LeaderDirectory
from leader.lookup.answers import Look, Snapshot, Source
from leader.lookup.hdfs_lookup import HdfsLookup
from leader.lookup.leader_view import LeaderView, Verdict
from leader.lookup.watch import Watch
from tests.system.simulation import executor
from tests.system.simulation.canary import R1, R2, R3, R4, Canary, of
from tests.system.simulation.directed import (
    draw_agent_without_news,
    draw_frozen_question,
    draw_new_reader_without_hdfs,
)


def _believe_all_of_zookeeper(self: LeaderView, information: LeaderInformation, started: float, at: float) -> Verdict:
    version = (information.epoch, information.session_id)
    self._learn(information, version, Source.ZOOKEEPER, started, at, verified=False)
    self.directory = LeaderDirectory(information.epoch, information.session_id)
    return Verdict.BELIEVED


_merge_zookeeper = LeaderView.merge_zookeeper


def _believe_without_verification(
    self: LeaderView, information: LeaderInformation, started: float, at: float
) -> Verdict:
    verdict = _merge_zookeeper(self, information, started, at)
    if verdict is Verdict.UNVERIFIED:
        self._learn_from_zookeeper(information, started, at, verified=False)
        return Verdict.BELIEVED
    return verdict


def _believe_nothing_without_hdfs(self: LeaderView, information: LeaderInformation, started: float, at: float) -> bool:
    del self, information, started, at
    return False


def _believe_all_of_an_agent(self: LeaderView, snapshot: Snapshot) -> bool:
    if snapshot.information is not None:
        version = (snapshot.epoch, snapshot.session_id)
        at = snapshot.at
        self._learn(snapshot.information, version, Source.SNAPSHOT, at, at, verified=snapshot.verified)
    return True


def _snapshot_for_ever(job: str, look: Look, fresh: float) -> Snapshot:
    return msgspec.structs.replace(snapshot_of(job, look, fresh), good_until=float("inf"))


def _no_audit(self: HdfsLookup) -> None:
    del self


_look = Watch._look


def _look_of_the_answers_age(self: Watch) -> Look:
    return msgspec.structs.replace(_look(self), started=self._clock.now())


READERS = (
    Canary(
        "a lower epoch from ZooKeeper is believed", of(LeaderView, merge_zookeeper=_believe_all_of_zookeeper), R1, 1300
    ),
    Canary(
        "a lower epoch from an agent is believed",
        of(LeaderView, merge_snapshot=_believe_all_of_an_agent),
        R1,
        30,
        draw_agent_without_news,
    ),
    Canary(
        "a new record is not verified before it is used",
        of(LeaderView, merge_zookeeper=_believe_without_verification),
        R2,
        60,
    ),
    Canary(
        "a lookup fails if HDFS cannot confirm a record",
        of(LeaderView, believe_unverified=_believe_nothing_without_hdfs),
        R3,
        20,
        draw_new_reader_without_hdfs,
    ),
    Canary("a reader never audits", of(HdfsLookup, audit_if_due=_no_audit), frozenset({"R2", "R4"}), 200),
    Canary("a snapshot never runs out", of(executor, snapshot_of=_snapshot_for_ever), R4, 30, draw_frozen_question),
    Canary(
        "a snapshot's freshness counts from the answer",
        of(Watch, _look=_look_of_the_answers_age),
        R4,
        60,
        draw_frozen_question,
    ),
)
