"""Canaries of readers: what they believe of ZooKeeper, of HDFS and of an agent."""

from unittest.mock import patch

import msgspec

from ha.agent.agent import snapshot_of
from leader.layout.information import LeaderInformation
from leader.layout.names import LeaderDirectory
from leader.lookup import hdfs_lookup, job_lookup
from leader.lookup.answers import Known, Look, Snapshot, Source
from leader.lookup.hdfs_lookup import HdfsLookup, NoAnswer
from leader.lookup.leader_view import LeaderView, Verdict
from leader.lookup.single_flight import Flight
from leader.lookup.store_clients import Reading
from leader.lookup.watch import Watch
from leader.timing import NEVER, PAST
from store.outcome import Outcome
from tests.system.simulation import executor
from tests.system.simulation.canary import R1, R2, R3, R4, Canary, of
from tests.system.simulation.directed import (
    draw_agent_without_news,
    draw_frozen_question,
    draw_new_reader_without_hdfs,
)
from tests.system.simulation.reader_plans import (
    draw_agent_falls_asleep,
    draw_agent_wakes,
    draw_dead_and_back,
    draw_doubted,
    draw_forged_at_the_last_moment,
    draw_forged_while_cut_off,
    draw_hasty_without_hdfs,
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


_merge_snapshot = LeaderView.merge_snapshot


def _never_doubt(self: LeaderView, snapshot: Snapshot) -> bool:
    believed = _merge_snapshot(self, snapshot)
    self.doubted = False
    return believed


def _snapshot_for_ever(job: str, look: Look, fresh: float) -> Snapshot:
    return msgspec.structs.replace(snapshot_of(job, look, fresh), good_until=float("inf"))


def _snapshot_of_no_leader(job: str, look: Look, fresh: float) -> Snapshot:
    return snapshot_of(job, msgspec.structs.replace(look, asked=NEVER), fresh)


def _no_audit(self: HdfsLookup) -> None:
    del self


_merge = HdfsLookup._merge


def _merge_and_be_content(self: HdfsLookup, outcome: Outcome[Reading]) -> None:
    with patch.object(self, "_compare_soon", lambda: None):
        _merge(self, outcome)


_look = Watch._look


def _look_of_the_answers_age(self: Watch) -> Look:
    return msgspec.structs.replace(_look(self), started=self._clock.now())


def _silent_without_evidence(
    self: HdfsLookup, sentence: str, candidate: LeaderInformation | None, *, silent: bool
) -> NoAnswer:
    del self, candidate, silent
    return NoAnswer(sentence, silent=True)


def _always_awake(self: Watch) -> bool:
    self._awake_at = self._clock.now()
    return False


def _only_others_are_news(before: Known | None, after: Known | None) -> bool:
    return before is None or after is None or before.epoch != after.epoch


_flight = Flight.__init__


def _flight_of_any_length(self: Flight, started: float, deadline: float) -> None:
    _flight(self, started, deadline)
    self.deadline = PAST


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
        "an agent that HDFS has answered casts no doubt",
        of(LeaderView, merge_snapshot=_never_doubt),
        R2,
        15,
        draw_doubted,
    ),
    Canary(
        "a lookup fails if HDFS cannot confirm a record",
        of(LeaderView, believe_unverified=_believe_nothing_without_hdfs),
        R3,
        20,
        draw_new_reader_without_hdfs,
    ),
    Canary(
        "HDFS said something that was too old, and counts as compared",
        of(HdfsLookup, _merge=_merge_and_be_content),
        R2,
        40,
        draw_forged_while_cut_off,
    ),
    Canary("a reader never audits", of(HdfsLookup, audit_if_due=_no_audit), frozenset({"R2", "R4"}), 200),
    Canary("a snapshot never runs out", of(executor, snapshot_of=_snapshot_for_ever), R4, 30, draw_frozen_question),
    Canary(
        '"nobody leads" is good for as long as an address',
        of(executor, snapshot_of=_snapshot_of_no_leader),
        R3,
        20,
        draw_agent_falls_asleep,
    ),
    Canary(
        "a snapshot's freshness counts from the answer",
        of(Watch, _look=_look_of_the_answers_age),
        R4,
        60,
        draw_frozen_question,
    ),
    Canary(
        "a lookup sleeps until no time is left, and calls HDFS silent then",
        lambda: [
            patch.object(job_lookup, "LONGEST_PAUSE_SHARE", 2.0),
            patch.object(HdfsLookup, "_without_evidence", _silent_without_evidence),
        ],
        R2,
        120,
        draw_forged_at_the_last_moment,
    ),
    Canary("a watch is believed after a sleep", of(Watch, _has_slept=_always_awake), R4, 60, draw_agent_wakes),
    Canary(
        "a leader that is found dead is no news",
        of(hdfs_lookup, _is_news=_only_others_are_news),
        R3,
        10,
        draw_dead_and_back,
    ),
    Canary(
        "a lookup waits for another one that has more time",
        of(Flight, __init__=_flight_of_any_length),
        R3,
        40,
        draw_hasty_without_hdfs,
    ),
)
