"""Canaries of what strangers must not move: mutants that act on ZooKeeper's nodes, or on words, without asking."""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from leader.contender import participant
from leader.election import attestation
from leader.election.attestation import Answer, check_attestation
from leader.election.holder_check import HolderCheck
from leader.election.rival import RivalLease
from leader.election.state import ElectionState
from leader.layout import lease as leases
from leader.layout import names
from leader.layout.contact import ContactAddress
from leader.layout.information import Record
from leader.layout.lease import Lease, Mode
from leader.layout.znodes import NodeCommand
from leader.timing import PAST
from tests.system.simulation.canary import Canary, Patch
from tests.system.simulation.directed import draw_forged_names

_FIELDS = 4
_found: dict[str, ContactAddress] = {}
"""Contacts in nodes of sessions, by token."""


def _check_and_read_contact(token: str) -> Generator[NodeCommand, Answer, bool | None]:
    steps = check_attestation(token)
    command = next(steps)
    while True:
        outcome = yield command
        words = outcome.value.data.decode().split() if outcome.value is not None else []
        if len(words) == _FIELDS:
            _found[token] = ContactAddress(words[1], int(words[2]), words[3])
        try:
            command = steps.send(outcome)
        except StopIteration as stop:
            return bool(stop.value) if stop.value is not None else None


_rival_process = vars(ElectionState)["rival_process"].fget


def _process_by_zookeeper(self: ElectionState) -> tuple[str, ContactAddress] | None:
    told = _found.get(self.rival.lease.attestation) if self.rival.lease else None
    found: tuple[str, ContactAddress] | None = _rival_process(self)
    return (found[0], told) if found and told else found


_expired_reason = RivalLease.expired_reason


def _every_lease_of_anybody(self: RivalLease, now: float) -> str | None:
    if self._orphan is not None and self.lease is not None and self.lease.mode is not Mode.RELEASED:
        return "process-gone"
    return _expired_reason(self, now)


def _word_is_evidence(self: RivalLease, released: Lease) -> bool:
    if self.lease is not None and self.owner == released.owner:
        self.mark_process_gone(released.owner)
    return False


def _any_lease_by_word(self: RivalLease, released: Lease) -> bool:
    return self.lease is not None and self.owner == released.owner


def _at_once(self: HolderCheck) -> float:
    del self
    return PAST


def _after_a_moment(self: HolderCheck) -> float:
    return self._began + 1.0 if self._lives else _ends(self)


_ends = HolderCheck.ends


@contextmanager
def _records_read_anew() -> Iterator[None]:
    """Let no record be remembered that was read by another rule."""
    Record._parse.cache_clear()
    yield
    Record._parse.cache_clear()


_any_ten_digits = re.compile(leases._LEASE.pattern.replace("(0[0-9]{9})", "([0-9]{10})"))


def _patched(owner: object, name: str, value: object) -> list[Patch]:
    return [patch.object(owner, name, value)]


S1, L1 = frozenset({"S1"}), frozenset({"L1"})

STRANGERS = (
    Canary(
        "the leader's contact is taken from ZooKeeper",
        lambda: [
            patch.object(participant, "check_attestation", _check_and_read_contact),
            patch.object(ElectionState, "rival_process", property(_process_by_zookeeper)),
        ],
        S1,
        300,
    ),
    Canary(
        "a process that is gone frees the leases of others",
        lambda: _patched(RivalLease, "expired_reason", _every_lease_of_anybody),
        S1,
        300,
    ),
    Canary(
        "it seizes without asking the leader",
        lambda: _patched(HolderCheck, "ends", _at_once),
        frozenset({"S1", "L2"}),
        600,
    ),
    Canary(
        "a leader that answers has no time to renew", lambda: _patched(HolderCheck, "ends", _after_a_moment), S1, 600
    ),
    Canary("a word says that a lease is free", lambda: _patched(RivalLease, "may_become", _word_is_evidence), S1, 60),
    Canary("a word frees a lease that is held", lambda: _patched(RivalLease, "may_become", _any_lease_by_word), S1, 60),
    Canary(
        "a stranger's node attests a dead leader",
        lambda: _patched(attestation, "names_session", lambda *_: True),
        L1,
        300,
    ),
    Canary(
        "a lease of any sequence is believed",
        lambda: [_records_read_anew(), *_patched(leases, "_LEASE", _any_ten_digits)],
        S1,
        10,
        draw_forged_names,
    ),
    Canary(
        "a leader directory of any epoch is believed",
        lambda: _patched(names, "MAX_REACHED", names.MAX_EPOCH),
        L1,
        10,
        draw_forged_names,
    ),
)
