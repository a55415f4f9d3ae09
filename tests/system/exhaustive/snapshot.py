"""Snapshot: an election's whole state as one comparable value, and the election again from such a value.

Times are kept relative to the contender's clock, and facts that can never matter again are forgotten, so that equal
situations are one situation. The election itself is production's: it is thawed, given one event, and frozen again.

Nothing is left out by accident: an attribute that is not named here fails :func:`_check_known` at once. What is
forgotten:

- a time that has passed: it is only ever compared with the present;
- what belongs to a phase that is over (a history line of a former leadership, a successor that was named);
- that the session id of nobody was one of its own: that id owns the first lease of a job, which is released, so its
  owner makes no difference;
- when it has seen a lease renewed: the poll interval that follows from it makes no difference, because the search
  tries every delay of a look anyhow;
- when ZooKeeper was last asked about a node that it watches: the model asks at each look. More answers than in
  production only make it seize sooner;
- until when a line of history waits for endpoints: the model has none;
- a leadership to be taken up, and versions left out for it, and bars: the model has none;
- the failure that was logged last, and other words for people.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from leader.election.announcement import Announcement
from leader.election.election import Election
from leader.election.holder_check import HolderCheck
from leader.election.holding import Holding
from leader.election.responses import Responses
from leader.election.rival import RivalLease
from leader.election.schedule import PollSchedule
from leader.election.state import ElectionState, PendingOperation, Phase
from leader.election.steps import Steps
from leader.layout.contact import ContactAddress
from leader.layout.lease import Attestation, Lease, Mode
from leader.layout.names import HISTORY, LeaderDirectory
from leader.timing import PAST, Timing

NOW = 1024.0
"""The time of every clock when an election is thawed; a power of two, so that no sum is rounded."""

NOBODY = "00000000-0000-0000-0000-000000000000"
REASON = "reason"
OURS, THEIRS = (ContactAddress("10.0.0.1", port, f"{port:032x}") for port in (1, 2))
"""Where a contender's own process can be asked, and that of the other."""

_KNOWN = {
    Election: "state _responses _steps",
    Responses: "_state _failures _forged _several _wall",
    Steps: "_state _new_session_id",
    ElectionState: """
        job contender timing phase contending session_id directory attestation rival holding announcement schedule
        pending contact seize_reason successor job_missing stop_demanded doubted paused adopting
        barred_until
    """,
    PollSchedule: """
        _timing sent_at look_due look_from_top look_again looked_at retry_at held_off_until give_up_at announcement_due
    """,
    RivalLease: """
        _contender _timing _own_contact _hearing _since _own_sessions _own _gone _present _checking _outdated _orphan
        _watched_from
        _hdfs_interval lease contact check_due
    """,
    HolderCheck: "_grace _token _began _asked _lives",
    Holding: "_drift _promises _attested _highest current present",
    Announcement: "information _contact _entries _published_version _versions_used _history",
}


class Frozen(NamedTuple):
    """All facts that an election may decide from; times are seconds after the present, ``PAST`` if passed."""

    contender: str
    phase: Phase
    contending: bool
    session_id: str
    directory: LeaderDirectory | None
    token: str | None
    until: float
    usable: bool
    answers: bool
    reason: str
    successor: str
    pending: PendingOperation | None
    sent_at: float
    looked_at: float
    look_due: float
    look_from_top: bool
    look_again: bool
    job_missing: bool
    retry_at: float
    held_off_until: float
    give_up_at: float
    stop_demanded: bool
    seen: Lease | None
    since: float
    own_sessions: tuple[str, ...]
    own: bool
    gone: str | None
    present: str | None
    checking: str | None
    outdated: bool
    orphan: str | None
    check_due: float
    held: Lease | None
    renamed: Lease | None
    highest: int
    promises: tuple[tuple[Lease, float], ...]
    attested: tuple[tuple[str, float], ...]
    history: bool
    contact: bool
    hearing: str | None
    heard_from: float
    heard: tuple[bool, bool | None]
    """Whether the process was asked, and whether it lives."""


@dataclass(frozen=True)
class Freezer:
    """Freezes and thaws.

    ``exact`` forgets nothing, to see whether forgetting makes a difference. ``asks``: standbys ask a leader whose node
    is gone.
    """

    job: str
    timing: Timing
    exact: bool = False
    asks: bool = False

    def freeze(self, election: Election, now: float) -> Frozen:
        """Return all facts that the election may decide from, as of that time."""
        state, schedule, rival = election.state, election.state.schedule, election.state.rival
        holding, announcement = election.state.holding, election.state.announcement
        parts = (election, election._responses, election._steps, state, schedule, rival, holding, announcement)
        for part in (*parts, rival._hearing):
            _check_known(part)
        assert announcement.information is None, "endpoints are not part of the model"
        assert state.contact is None, "nor are contacts: the model itself tells who is told of which end"
        assert not election._responses._several, "leader directories made by hand are not part of the model"
        assert not election._responses._forged
        assert state.doubted is None

        def after(when: float, matters: float = 0.0) -> float:
            """Seconds after now; ``matters`` says for how long a time is of interest once it has passed."""
            return when - now if self.exact or when + matters > now else PAST

        leading, releasing = state.phase is Phase.LEADING, state.phase is Phase.RELEASING
        stepping_down = state.phase is Phase.STEPPING_DOWN
        exact, poll = self.exact, self.timing.poll
        own = state.phase is not Phase.STANDBY and rival.lease and rival.lease.owner == state.session_id
        promised = {lease.attestation for lease in holding._promises} | {state.attestation.token}
        promises = [(lease, after(start, lease.ttl)) for lease, start in holding._promises.items()]
        attested = [(token, after(until)) for token, until in holding._attested.items() if exact or token in promised]
        return Frozen(
            contender=state.contender,
            phase=state.phase,
            contending=state.contending,
            session_id=state.session_id,
            directory=state.directory,
            token=state.attestation.token,
            until=after(state.attestation.until),
            usable=state.attestation.usable,
            answers=state.attestation.answers,
            reason=state.seize_reason if exact else REASON,
            successor=state.successor if exact or releasing else "",
            pending=state.pending,
            sent_at=after(schedule.sent_at, poll) if exact or state.pending else PAST,
            looked_at=after(schedule.looked_at, poll),
            look_due=after(schedule.look_due),
            look_from_top=schedule.look_from_top,
            look_again=schedule.look_again,
            job_missing=state.job_missing,
            retry_at=after(schedule.retry_at),
            held_off_until=after(schedule.held_off_until),
            give_up_at=after(schedule.give_up_at) if exact or releasing else PAST,
            stop_demanded=state.stop_demanded and (exact or stepping_down),
            seen=rival.lease,
            since=PAST if own and not exact else after(rival._since, self._observed(rival.lease)),
            own_sessions=tuple(each for each in rival._own_sessions if exact or each != NOBODY),
            own=rival._own,
            gone=rival._gone,
            present=rival._present,
            checking=rival._checking,
            outdated=rival._outdated and (exact or rival._checking is not None),
            orphan=rival._orphan,
            check_due=after(rival.check_due),
            held=holding.current,
            renamed=holding.present,
            highest=holding._highest,
            promises=tuple(promises if exact else sorted(promises, key=_by_sequence)),
            attested=tuple(attested if exact else sorted(attested)),
            history=bool(announcement._history) and (exact or leading),
            contact=rival.contact is not None,
            **self._freeze_hearing(rival._hearing, after),
        )

    def _freeze_hearing(self, hearing: HolderCheck, after: Callable[[float, float], float]) -> dict[str, Any]:
        if not self.asks:  # then its end is never looked at
            return {"hearing": None, "heard_from": PAST, "heard": (False, None)}
        began = after(hearing._began, hearing._grace)
        return {"hearing": hearing._token, "heard_from": began, "heard": (hearing._asked, hearing._lives)}

    def _observed(self, lease: Lease | None) -> float:
        """Return for how long it matters when a lease was first seen."""
        if lease is None or lease.mode is Mode.RELEASED:
            return self.timing.courtesy
        return lease.ttl * (1 + self.timing.drift)

    def thaw(self, frozen: Frozen, new_session_id: Callable[[], str]) -> Election:
        """Return the election again, at the time ``NOW``."""
        election = Election(self.job, frozen.contender, self.timing, lambda: frozen.session_id, lambda: 0.0)
        election._steps._new_session_id = new_session_id
        state, schedule = election.state, election.state.schedule
        state.phase, state.contending, state.directory = frozen.phase, frozen.contending, frozen.directory
        state.attestation = Attestation(frozen.token, NOW + frozen.until, frozen.usable, frozen.answers)
        state.seize_reason, state.successor = frozen.reason, frozen.successor
        state.pending, state.job_missing = frozen.pending, frozen.job_missing
        state.stop_demanded = frozen.stop_demanded
        schedule.sent_at, schedule.looked_at = NOW + frozen.sent_at, NOW + frozen.looked_at
        schedule.look_due, schedule.look_from_top = NOW + frozen.look_due, frozen.look_from_top
        schedule.look_again, schedule.retry_at = frozen.look_again, NOW + frozen.retry_at
        schedule.held_off_until, schedule.give_up_at = NOW + frozen.held_off_until, NOW + frozen.give_up_at
        rival, holding = state.rival, state.holding
        rival.lease, rival._since = frozen.seen, NOW + frozen.since
        rival._own_sessions.extend(frozen.own_sessions)
        rival._own = frozen.own
        rival._gone, rival._present = frozen.gone, frozen.present
        rival._checking, rival._outdated = frozen.checking, frozen.outdated
        rival.check_due = NOW + frozen.check_due
        rival._orphan = frozen.orphan
        rival._own_contact = OURS if self.asks else None
        rival.contact = THEIRS if frozen.contact else None
        hearing = rival._hearing
        hearing._token, hearing._began = frozen.hearing, NOW + frozen.heard_from
        hearing._asked, hearing._lives = frozen.heard
        holding.current, holding.present, holding._highest = frozen.held, frozen.renamed, frozen.highest
        holding._promises = {lease: NOW + start for lease, start in frozen.promises}
        holding._attested = {token: NOW + until for token, until in frozen.attested}
        if frozen.history and frozen.directory:
            name = frozen.directory.name
            state.announcement._history = f"{name}/{HISTORY}/{name}~{frozen.reason}~{frozen.contender}"
        return election


def _check_known(part: object) -> None:
    unknown = vars(part).keys() ^ set(_KNOWN[type(part)].split())
    assert not unknown, f"{type(part).__name__} has changed: the model must know of {unknown}"


def _by_sequence(promise: tuple[Lease, float]) -> int:
    return promise[0].sequence
