"""LeaderView: HDFS wins every comparison; apart from that, the view only gets newer."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from leader.layout.information import LeaderInformation, Record, endpoint_entries
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.lookup.answers import Known, Snapshot, Source
from leader.lookup.leader_view import LeaderView, Verdict
from tests.unit.leader.samples import A, B, C

REST = MappingProxyType({"rest": "a:1"})
HUGE = 9_999_999_999


def information(epoch: int, session_id: str = A, version: int = 1) -> LeaderInformation:
    return LeaderInformation("orders", epoch, session_id, REST, version)


def record(known: LeaderInformation | None, mode: Mode = Mode.ZOOKEEPER) -> Record:
    lease = Lease(3, mode, 6000, A, "", "a")
    return Record(lease, endpoint_entries(known) if known else frozenset())


class Told:
    def __init__(self) -> None:
        self.view = LeaderView()

    def zookeeper(self, epoch: int, session_id: str = A, version: int = 1, at: float = 1.0) -> bool:
        return self.view.believe_unverified(information(epoch, session_id, version), at - 0.1, at)

    def files(
        self,
        epoch: int,
        session_id: str = A,
        *,
        version: int = 1,
        started: float = 10.0,
        published: bool = True,
        released: bool = False,
    ) -> bool:
        known = information(epoch, session_id, version) if published else None
        found = record(known, Mode.RELEASED if released else Mode.ZOOKEEPER)
        return self.view.merge_files(LeaderDirectory(epoch, session_id), found, "orders", started, started + 0.1)

    def agent(
        self,
        epoch: int,
        session_id: str = A,
        *,
        at: float,
        version: int = 1,
        leads: bool = True,
        verified: bool = False,
    ) -> bool:
        known = information(epoch, session_id, version) if leads else None
        return self.view.merge_snapshot(Snapshot("orders", epoch, session_id, known, at, at + 3.0, verified))

    @property
    def known(self) -> Known:
        assert self.view.known is not None
        return self.view.known

    @property
    def version(self) -> tuple[int, str] | None:
        known = self.view.known
        return (known.epoch, known.session_id) if known else None


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_granted_leader_that_has_not_confirmed_cannot_be_reached(told: Told) -> None:
    at_first = told.view.known
    assert at_first is None
    assert told.files(5, published=False)
    assert told.known.information is None
    assert told.zookeeper(5, A), "it has confirmed since"


def test_zookeepers_first_record_is_believed_and_hdfs_verifies_it(told: Told) -> None:
    assert told.zookeeper(4)
    known = told.known
    assert (known.source, known.verified, known.at) == (Source.ZOOKEEPER, False, 0.9)
    assert known.information == information(4)
    assert told.files(4)
    assert (told.known.source, told.known.verified) == (Source.HDFS, True)
    assert told.zookeeper(4, at=20.0)
    assert (told.known.source, told.known.verified, told.known.at) == (Source.ZOOKEEPER, True, 19.9)


def verdict(told: Told, epoch: int, session_id: str = A, *, address: str = "a:1", version: int = 1) -> Verdict:
    record = structs.replace(information(epoch, session_id, version), endpoints=MappingProxyType({"rest": address}))
    before = told.view.known
    found = told.view.merge_zookeeper(record, 19.9, 20.0)
    assert found is Verdict.BELIEVED or told.view.known is before
    return found


def test_a_record_of_zookeeper_is_believed_after_hdfs_has_said_the_same(told: Told) -> None:
    assert verdict(told, 4) is Verdict.UNVERIFIED
    told.files(4)
    assert verdict(told, 4) is Verdict.BELIEVED
    assert (told.known.source, told.known.at, told.known.verified) == (Source.ZOOKEEPER, 19.9, True)
    for others in ({"epoch": 5, "session_id": B}, {"epoch": 4, "address": "evil:1"}, {"epoch": 4, "version": 2}):
        assert verdict(told, **others) is Verdict.UNVERIFIED
    for others in ({"epoch": 3}, {"epoch": 4, "session_id": B}):
        assert verdict(told, **others) is Verdict.CONTRADICTED


def test_what_an_agent_could_not_verify_is_not_verified_by_zookeeper(told: Told) -> None:
    assert told.agent(4, at=1.0)
    assert verdict(told, 4) is Verdict.UNVERIFIED
    assert told.agent(4, at=2.0, verified=True)
    assert verdict(told, 4) is Verdict.BELIEVED


def test_what_was_believed_while_hdfs_was_silent_is_not_asked_about_by_every_lookup(told: Told) -> None:
    assert told.zookeeper(4)
    assert verdict(told, 4) is Verdict.BELIEVED
    assert not told.known.verified


@pytest.mark.parametrize(("epoch", "session_id", "forged"), [(5, B, True), (4, B, True), (4, A, False), (3, B, False)])
def test_a_record_that_hdfs_refutes_is_believed_no_more(told: Told, epoch: int, session_id: str, forged: bool) -> None:
    told.view.refute(information(epoch, session_id), LeaderDirectory(4, A))
    assert told.zookeeper(epoch, session_id) is not forged


@pytest.mark.parametrize(("epoch", "session_id"), [(4, A), (5, C)], ids=["older", "another session"])
def test_an_older_epoch_or_another_session_of_it_is_a_mismatch(told: Told, epoch: int, session_id: str) -> None:
    told.zookeeper(5, B)
    assert not told.zookeeper(epoch, session_id)
    assert told.version == (5, B)


def test_an_older_publication_of_the_same_session_is_a_mismatch(told: Told) -> None:
    told.zookeeper(5, A, version=3)
    assert not told.zookeeper(5, A, version=2)
    assert told.zookeeper(5, A, version=3)
    assert told.zookeeper(5, A, version=4)


def test_hdfs_corrects_another_session_of_the_same_epoch_in_both_directions(told: Told) -> None:
    told.zookeeper(5, B)
    assert told.files(5, A)
    assert told.version == (5, A)
    assert not told.zookeeper(5, B), "and it is not believed again"


def test_a_read_of_hdfs_that_began_before_the_news_is_no_evidence_against_it(told: Told) -> None:
    told.files(4)
    told.view.believe_unverified(information(5, B), 11.9, 12.0)
    assert not told.files(4, started=11.0)
    assert not told.files(4, started=12.0)
    assert told.version == (5, B)


def test_a_record_ahead_of_hdfs_is_a_forgery_is_dropped_and_not_believed_again(told: Told) -> None:
    told.files(4)
    told.view.believe_unverified(information(HUGE, B), 11.9, 12.0)
    assert told.files(4, started=13.0)
    assert told.version == (4, A)
    assert not told.zookeeper(HUGE, B, at=14.0)
    assert told.version == (4, A)
    assert told.zookeeper(5, C, at=15.0), "who forges a huge epoch does not lock out the next leader"
    assert told.zookeeper(6, A, at=16.0)


def test_a_forgery_is_not_believed_after_a_claim_was_listed_and_forgotten(told: Told) -> None:
    told.files(1)
    assert told.zookeeper(HUGE, B, at=12.0)
    assert told.files(2, C, started=20.0, published=False)
    assert told.files(1, started=30.0), "the NameNode that showed that claim has ended itself"
    assert not told.zookeeper(HUGE, B, at=31.0)
    assert not told.zookeeper(2, C, at=32.0)
    assert told.files(2, C, started=40.0)
    assert told.zookeeper(2, C, at=41.0), "it was made after all"
    assert not told.zookeeper(HUGE, B, at=42.0)


def test_a_supposed_forgery_counts_once_hdfs_says_it_too(told: Told) -> None:
    told.files(4)
    told.view.believe_unverified(information(5, B), 11.9, 12.0)
    told.files(4, started=13.0)
    assert told.files(5, B, started=14.0)
    assert told.zookeeper(5, B, at=15.0)


def test_a_released_job_has_no_leader_even_if_its_mirror_is_still_there(told: Told) -> None:
    told.files(5)
    assert told.files(5, released=True)
    assert told.known.information is None
    assert not told.zookeeper(5, A, at=20.0), "HDFS wins, in both directions"
    assert told.files(5, started=21.0), "the next contender has seized the lease, and not claimed yet"
    assert not told.zookeeper(5, A, at=22.0)
    assert told.zookeeper(6, B, at=23.0)


def test_a_dead_leader_leads_no_more(told: Told) -> None:
    told.view.mark_dead(5.0)
    assert told.version is None
    told.files(5)
    told.view.mark_dead(11.0)
    assert (told.known.epoch, told.known.information, told.known.at) == (5, None, 11.0)


def test_older_endpoints_of_a_leader_that_was_found_dead_are_not_believed_again(told: Told) -> None:
    """A ZooKeeper server that lags still shows them; the leader itself may go on under its newest ones."""
    told.files(5, version=3)
    told.view.mark_dead(20.0)
    assert not told.zookeeper(5, version=2, at=21.0)
    assert not told.agent(5, version=2, at=22.0)
    assert told.view.known is not None
    assert told.view.known.information is None
    assert told.zookeeper(5, version=3, at=23.0)
    told.view.mark_dead(24.0)
    assert told.files(5, version=2, started=25.0), "HDFS wins, in both directions"
    told.view.mark_dead(26.0)
    assert told.zookeeper(5, version=2, at=27.0)
    assert told.zookeeper(6, B, version=1, at=28.0), "the versions of an epoch are its own"


def test_a_snapshot_is_believed_as_zookeeper_is(told: Told) -> None:
    assert told.agent(5, at=1.0, verified=True)
    known = told.known
    assert (known.source, known.at, known.verified, known.information) == (Source.SNAPSHOT, 1.0, True, information(5))
    assert told.agent(6, B, at=2.0)
    assert not told.agent(5, at=3.0), "epochs do not go back"
    assert not told.agent(6, C, at=3.0), "nor has one of them two sessions"
    assert told.agent(6, B, version=2, at=3.0)
    assert not told.agent(6, B, version=1, at=4.0)
    assert told.version == (6, B)


def test_a_snapshot_does_not_override_later_answers(told: Told) -> None:
    assert told.files(5)
    assert told.agent(5, at=1.0), "it says the same"
    assert told.files(5)
    assert not told.agent(6, B, at=1.0), "if that were so, HDFS would have known"
    assert not told.agent(5, at=1.0, leads=False)
    assert told.agent(5, at=20.0, leads=False)
    told.view.mark_dead(30.0)
    assert not told.agent(5, at=25.0)
    assert told.agent(5, at=35.0)


def test_a_verified_answer_stays_verified_only_when_an_agent_says_the_same(told: Told) -> None:
    told.files(5)
    assert told.agent(5, at=20.0, verified=False)
    assert told.known.verified
    other = structs.replace(information(5), endpoints=MappingProxyType({"rest": "forged:1"}), version=2)
    assert told.view.believe_unverified(other, 24.9, 25.0)
    assert not told.known.verified, "HDFS has said something like it"


def test_a_snapshot_without_a_leader_is_believed_and_not_learnt(told: Told) -> None:
    assert told.agent(0, "", at=1.0, leads=False)
    assert told.agent(7, at=1.0, leads=False)
    assert told.view.known is None
    told.files(5)
    assert told.agent(9, B, at=20.0, leads=False)
    assert told.version == (5, A)
    assert not told.agent(4, B, at=20.0, leads=False), "of an epoch before"
    assert not told.agent(5, B, at=20.0, leads=False), "of another session"


def test_an_agent_is_not_believed_about_a_released_or_never_claimed_epoch(told: Told) -> None:
    told.files(5, released=True)
    assert not told.agent(5, at=20.0)
    assert told.zookeeper(HUGE, C, at=20.0)
    assert told.files(5, started=21.0)
    assert not told.agent(HUGE, C, at=30.0)


def test_an_agent_with_a_newer_answer_of_hdfs_casts_doubt_on_the_view(told: Told) -> None:
    assert told.zookeeper(HUGE, C, at=1.0)

    def doubts(epoch: int, session_id: str, at: float, *, verified: bool) -> bool:
        known = information(epoch, session_id)
        return told.view.contradicted_by(Snapshot("orders", epoch, session_id, known, at, at + 3.0, verified))

    assert doubts(5, A, 2.0, verified=True)
    assert not doubts(5, A, 2.0, verified=False), "that is ZooKeeper's word against ZooKeeper's"
    assert not doubts(5, A, 0.5, verified=True), "it was told before"
    assert not doubts(HUGE, C, 2.0, verified=True), "it says the same"
    assert not Told().view.contradicted_by(Snapshot("orders", 5, A, information(5), 2.0, 5.0, verified=True))


def test_what_an_agent_casts_doubt_on_is_asked_of_hdfs_before_it_is_used_again(told: Told) -> None:
    """An outage's forgery was used again without a question, when the agent that had HDFS's answer told of another."""
    for epoch, session_id in ((5, B), (6, B)):
        assert told.zookeeper(5, at=1.0), "HDFS is away"
        told.agent(epoch, session_id, at=0.5, leads=False, verified=True)
        told.agent(epoch, session_id, at=2.0, leads=False, verified=False)
        assert told.view.merge_zookeeper(information(5), 2.9, 3.0) is Verdict.BELIEVED
        told.agent(epoch, session_id, at=4.0, leads=False, verified=True)
        assert told.view.merge_zookeeper(information(5), 4.9, 5.0) is Verdict.UNVERIFIED
        assert told.zookeeper(5, at=6.0), "HDFS is away again"
        assert told.view.merge_zookeeper(information(5), 6.9, 7.0) is Verdict.BELIEVED
        told.agent(epoch, session_id, at=8.0, leads=False, verified=True)
        assert told.files(5, started=9.0)
        assert told.view.merge_zookeeper(information(5), 9.9, 10.0) is Verdict.BELIEVED
        told.view = LeaderView()


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["zookeeper", "files", "forged", "agent", "late agent"]),
        st.integers(0, 3),
        st.sampled_from([A, B, C]),
        st.booleans(),
    ),
    max_size=30,
)


@given(EVENTS)
def test_epochs_never_go_back_unless_they_were_never_claimed(events: list[tuple[str, int, str, bool]]) -> None:
    """In HDFS epochs grow; ZooKeeper lags, lies and comes late. Once verified, an epoch is never given up."""
    told, now, epoch, verified = Told(), 10.0, 1, 0
    sessions = {1: A}
    for kind, back, session_id, claim in events:
        now += 1.0
        if claim:
            epoch += 1
            sessions[epoch] = session_id
        before = told.version
        if kind == "files":
            told.files(epoch, sessions[epoch], started=now)
            verified = epoch
            assert told.version == (epoch, sessions[epoch])
        elif kind == "zookeeper":
            old = max(1, epoch - back)
            told.zookeeper(old, sessions[old], at=now)
        elif kind in {"agent", "late agent"}:
            old = max(1, epoch - back)
            told.agent(old, sessions[old], at=now - (3.0 if kind == "late agent" else 0.0), leads=back != 1)
        else:
            told.zookeeper(epoch + back, session_id, at=now)
        after = told.version
        assert after is None or after[0] >= verified
        assert kind == "files" or before is None or (after is not None and after[0] >= before[0])


def test_a_read_of_hdfs_that_began_before_a_publication_does_not_undo_it(told: Told) -> None:
    assert told.zookeeper(3, version=1, at=1.0)
    assert told.zookeeper(3, version=2, at=5.0)
    assert not told.files(3, version=1, started=4.0)
    assert told.known.information == information(3, version=2)
    assert told.files(3, version=1, started=6.0), "but a later read says that it never was"
