"""Margins of one election on answers that take their time: what counts from a call's start, and what from its end."""

import pytest

from leader.election.election import Election
from leader.election.events import (
    Attested,
    Command,
    Contend,
    FilesCommand,
    FilesDone,
    Grant,
    ListJob,
    ListRecord,
    Rename,
    Revoke,
    Tick,
)
from leader.layout.lease import Attestation, Lease, Mode, first_lease
from leader.layout.names import LeaderDirectory
from leader.timing import Timing
from store.outcome import Outcome
from tests.unit.leader.samples import A, numbered

TIMING = Timing()
TOOK = 0.9
"""Seconds that each answer takes: slow, and in time."""

DIRECTORY = LeaderDirectory(3, A)
HDFS = Lease(5, Mode.HDFS, 6000, A, "", "a")


class Contending:
    def __init__(self, lease: Lease) -> None:
        self.election = Election("orders", "b", TIMING, numbered(), lambda: 0.0)
        self.state = self.election.state
        self.now = 100.0
        self.commands = self.election.handle(Contend(), self.now)
        self.answer([DIRECTORY.name])
        self.answer([lease.name])

    @property
    def sent(self) -> FilesCommand:
        (command,) = [each for each in self.commands if isinstance(each, ListJob | ListRecord | Rename)]
        return command

    def answer(self, names: list[str] | None = None) -> list[Command]:
        """Answer the command that is under way, some time after it was sent."""
        started, self.now = self.now, self.now + TOOK
        self.commands = self.election.handle(FilesDone(self.sent, Outcome(names, None, started, self.now)), self.now)
        return self.commands

    def at(self, when: float) -> list[Command]:
        self.now = when
        self.commands = self.election.handle(Tick(), when)
        return self.commands


def leading() -> Contending:
    contending = Contending(first_lease(A))
    assert isinstance(contending.sent, Rename), "a lease that nobody holds is seized at once"
    contending.answer()  # the seizure
    assert any(isinstance(each, Grant) for each in contending.answer())
    return contending


def test_a_standby_counts_a_lease_from_the_answer_to_its_list_and_not_from_the_start() -> None:
    """The holder may have renewed, and have promised itself a whole ttl, after the list was sent."""
    contending = Contending(HDFS)
    assert contending.state.rival.expiry() == pytest.approx(contending.now + HDFS.ttl * (1 + TIMING.drift))
    asked = contending.now - TOOK
    assert not any(isinstance(each, Rename) for each in contending.at(asked + HDFS.ttl * (1 + TIMING.drift) + 0.01))


def test_a_holder_counts_its_lease_from_the_start_of_the_seizure_and_not_from_the_answer() -> None:
    contending = Contending(first_lease(A))
    sent = contending.now
    contending.answer()
    assert contending.state.holds_until() == pytest.approx(sent + TIMING.short_ttl * (1 - TIMING.drift))


def test_a_holder_counts_a_renewal_from_its_start_too() -> None:
    contending = leading()
    due = contending.state.holds_until() - TIMING.short_ttl * (1 - TIMING.drift) + TIMING.renewal
    contending.at(due)
    assert isinstance(contending.sent, Rename)
    contending.answer()
    assert contending.state.holds_until() == pytest.approx(due + TIMING.short_ttl * (1 - TIMING.drift))


def test_a_leader_leads_no_longer_than_the_stop_margin_before_another_can() -> None:
    state = leading().state
    ends = state.holds_until() - TIMING.stop_margin
    assert state.leads_until() == pytest.approx(ends)
    assert state.is_leader(ends - 0.001)
    assert not state.is_leader(ends + 0.001)


def test_a_leader_that_cannot_renew_is_told_to_stop_the_stop_margin_before_another_can_lead() -> None:
    contending = leading()
    until = contending.state.holds_until()
    contending.at(until - TIMING.short_ttl / 2)  # a renewal is sent, and is never answered
    assert contending.state.holds_until() == until
    assert contending.election.wake_at(contending.now) <= until - TIMING.stop_margin
    assert not any(isinstance(each, Revoke) for each in contending.at(until - TIMING.stop_margin - 0.001))
    (revoke,) = [each for each in contending.at(until - TIMING.stop_margin + 0.001) if isinstance(each, Revoke)]
    assert revoke.until == until


def test_what_is_granted_too_late_is_granted_to_nobody() -> None:
    contending = Contending(first_lease(A))
    contending.answer()
    contending.now = contending.state.holds_until() - TOOK + 0.01  # the claim is answered after the lease has ended
    assert not any(isinstance(each, Grant) for each in contending.answer())


@pytest.mark.parametrize(("left", "mode"), [(0.01, Mode.ZOOKEEPER), (-0.01, Mode.HDFS)])
def test_a_leader_that_slept_does_not_rely_on_what_zookeeper_said_before(left: float, mode: Mode) -> None:
    """Found by the simulator, seed 1634: nobody had told it yet, its lease was over at once, and it gave it back."""
    contending = Contending(first_lease(A))
    contending.answer()  # the seizure; now it claims
    claimed = contending.now + TOOK
    wakes = claimed + TIMING.renewal
    until = wakes + TIMING.call_timeout + TIMING.stop_margin + left
    contending.election.handle(Attested(Attestation("cafe0123-2002", until, usable=True)), contending.now)
    contending.now = wakes - TOOK
    assert any(isinstance(each, Grant) for each in contending.answer())
    assert not any(isinstance(each, Revoke) for each in contending.commands)
    assert isinstance(contending.sent, Rename)
    lease = Lease.parse(contending.sent.destination.rpartition("/")[2])
    assert lease is not None
    assert lease.mode is mode
