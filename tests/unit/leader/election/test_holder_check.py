"""Hearings: the node of a leader's session is gone from ZooKeeper, and the leader is asked before it is seized."""

import pytest

from leader.election.events import AskProcess, Command
from leader.election.holder_check import HolderCheck
from leader.election.rival import RivalLease
from leader.election.suspicion import ANSWER_WITHIN
from leader.layout.contact import ContactAddress
from leader.layout.lease import Attestation, Lease, Mode
from leader.timing import NEVER
from tests.unit.leader.arena import TIMING, Arena, arenas, reasons
from tests.unit.leader.samples import A

ARENAS = arenas(suspicion=True)

TOKEN = "cafe0123-1001"  # noqa: S105  # the name of a node
OTHER = "cafe0123-1001-1"
WHERE, HERE = ContactAddress("10.0.0.1", 4711, "5eed" * 8), ContactAddress("10.0.0.2", 4711, "feed" * 8)
LEASE = Lease(5, Mode.ZOOKEEPER, 60_000, A, TOKEN, "a")
ANSWERS = Attestation("cafe0123-2002", until=1e9, usable=True)
GRACE = TIMING.session_timeout * (1 + TIMING.drift)


def gone(contact: ContactAddress | None = WHERE, own: ContactAddress | None = HERE) -> RivalLease:
    rival = RivalLease("b", TIMING, own)
    rival.observe(LEASE, 99.0, contact)
    rival.check_unless_watched(99.0)
    assert rival.next_check(ANSWERS, 99.0) == TOKEN
    rival.on_checked(TOKEN, present=False, now=100.0)
    return rival


def test_a_lease_is_not_seized_while_its_holder_is_being_asked_and_it_is_asked_once() -> None:
    rival = gone()
    assert rival.expired_reason(100.0) is None
    assert rival.next_question() == (TOKEN, WHERE)
    assert rival.next_question() is None
    assert rival.expired_reason(100.0 + GRACE) is None
    assert rival.hearing_ends() == NEVER
    assert rival.expired_reason(rival.expiry()) == "expired", "it waits for no answer any more"


def test_one_that_does_not_answer_is_seized_at_once() -> None:
    rival = gone()
    rival.on_asked(TOKEN, lives=False)
    assert rival.expired_reason(100.1) == "session-gone"


def test_one_that_answers_has_a_session_timeout_by_the_fastest_clock() -> None:
    rival = gone()
    rival.on_asked(TOKEN, lives=True)
    assert rival.hearing_ends() == 100.0 + GRACE
    assert rival.expired_reason(100.0 + GRACE - 0.001) is None
    assert rival.expired_reason(100.0 + GRACE) == "session-gone"


def test_the_time_counts_from_the_first_time_that_the_node_was_gone() -> None:
    rival = gone()
    rival.next_question()
    rival.on_asked(TOKEN, lives=True)
    rival._checking = TOKEN
    rival.on_checked(TOKEN, present=False, now=105.0)
    assert rival.hearing_ends() == 100.0 + GRACE
    assert rival.next_question() is None


@pytest.mark.parametrize(("contact", "own"), [(None, HERE), (WHERE, None), (HERE, HERE)])
def test_who_cannot_be_asked_is_seized_at_once(contact: ContactAddress | None, own: ContactAddress | None) -> None:
    rival = gone(contact, own)
    assert rival.next_question() is None
    assert rival.expired_reason(100.0) == "session-gone"


def test_an_answer_about_another_node_says_nothing() -> None:
    rival = gone()
    rival.on_asked(OTHER, lives=False)
    assert rival.expired_reason(100.0 + GRACE) is None


def test_each_node_that_is_gone_is_a_new_question() -> None:
    hearing = HolderCheck(TIMING)
    hearing.begin(TOKEN, 100.0)
    assert hearing.ask()
    hearing.answer(TOKEN, lives=True)
    hearing.begin(OTHER, 150.0)
    assert hearing.ends() == NEVER
    assert hearing.ask()
    hearing.answer(OTHER, lives=True)
    assert hearing.ends() == 150.0 + GRACE


def delete_node(arena: Arena) -> str:
    """Delete the node that attests the leader's lease, as a stranger can on an open ZooKeeper; return its token."""
    token = arena.lease.attestation
    arena.zookeeper.tamper(f"/sessions/{token}", None)
    return token


@pytest.mark.parametrize("slow", [0.0, 0.1, 0.2])
def test_a_deleted_session_node_moves_no_leader_that_lives(arena: Arena, slow: float) -> None:
    """Seen on an open ZooKeeper: where the standby noticed first, it seized the lease, and two led."""
    leader, standby = arena.start_led("b")
    assert leader.client is not None
    leader.client.link.delay = slow
    arena.run(10)
    assert arena.lease.mode is Mode.ZOOKEEPER
    token = delete_node(arena)
    arena.run(10)
    assert arena.lease.attestation != token
    leader.client.link.delay = 0.0
    arena.run(TIMING.long_ttl)
    assert arena.lease.mode is Mode.ZOOKEEPER
    assert arena.leaders() == [leader]
    assert standby.grants() == []


def test_it_moves_no_leader_however_often_it_is_deleted(arena: Arena) -> None:
    leader, standby = arena.start_led("b", "c")[:2]
    for _ in range(20):
        arena.until(lambda: arena.lease.mode is Mode.ZOOKEEPER, TIMING.long_ttl)
        delete_node(arena)
        arena.run(1)
    assert arena.leaders() == [leader]
    assert standby.grants() == []


def test_a_leader_that_lives_and_cannot_renew_is_seized_when_its_belief_is_over(arena: Arena) -> None:
    """The arena fails if two believe: a leader in mode `zookeeper` believes for up to a session timeout."""
    leader, standby = arena.start_led("b")
    leader.files_link.there = False
    delete_node(arena)
    found, took = arena.until_leader(GRACE + 0.2, besides=leader)
    assert found is standby
    assert took >= TIMING.session_timeout
    assert reasons(standby) == ["session-gone"]


@pytest.mark.parametrize("fault", ["lose", "pause"])
def test_one_that_is_lost_or_paused_is_seized_as_soon_as_it_did_not_answer(arena: Arena, fault: str) -> None:
    leader, standby = arena.start_led("b")
    token = arena.lease.attestation
    getattr(leader, fault)()
    arena.until(lambda: f"/sessions/{token}" not in arena.zookeeper.nodes, 2 * TIMING.session_timeout)
    found, took = arena.until_leader(1.0, besides=leader)
    assert found is standby
    assert ANSWER_WITHIN <= took < ANSWER_WITHIN + 0.2
    assert reasons(standby) == ["session-gone"]


def test_a_process_that_leads_many_jobs_is_asked_on_one_connection(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    assert arena.wires is not None
    suspicion = standby.contender._suspicion
    assert suspicion is not None
    where = leader.participant().election.state.contact
    assert where is not None
    told: list[bool] = []
    calls = len(arena.wires._open)
    for _ in range(1000):
        suspicion.ask(where, told.append)
    arena.run(0.1)
    assert told == [True] * 1000
    assert len(arena.wires._open) <= calls + 1
    suspicion.ask(where, told.append)
    arena.run(0.1)
    assert len(told) == 1001, "it can be asked again"


def test_a_strangers_node_under_the_token_of_a_dead_leader_attests_nothing(arena: Arena) -> None:
    """Otherwise the dead leader would seem to live for the long ttl."""
    leader, standby = arena.start_led("b")
    path = f"/sessions/{arena.lease.attestation}"
    leader.lose()
    arena.until(lambda: path not in arena.zookeeper.nodes, 2 * TIMING.session_timeout)
    arena.zookeeper.tamper(path, b"a")
    assert arena.until_leader(1.0)[0] is standby


def test_only_a_node_that_is_gone_is_a_reason_to_ask(arena: Arena) -> None:
    _, standby = arena.start_led("b")
    asked: list[AskProcess] = []
    execute = standby.participant()._execute

    def executed(command: Command) -> None:
        if isinstance(command, AskProcess):
            asked.append(command)
        execute(command)

    standby.participant()._execute = executed  # type: ignore[method-assign]
    arena.run(3 * TIMING.long_ttl)
    assert asked == []
    token = delete_node(arena)
    arena.run(5)
    assert [command.token for command in asked] == [token]
