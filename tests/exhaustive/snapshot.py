"""An election's whole state as one value that can be compared, and the election again from such a value.

Times are kept relative to the contender's clock, and what can never matter again is forgotten, so that equal situations
are one situation. The election itself is the one of production: it is thawed, given one event, and frozen again.

Nothing is left out by accident: an attribute that is not named here fails :func:`_known` at once. What is forgotten:

- a time that has passed: it is only ever compared with the present, and whatever is due is due;
- what belongs to a phase that is over (a history line of a former leadership, a successor that was named);
- that the session id of nobody was one of its own: it owns the first lease of a job, and whose that was makes no
  difference, for it is released;
- the rhythm in which it has seen a lease renewed: it looks as often as one who has not, and how late any look comes is
  tried anyhow;
- until when a line of history waits for endpoints, which there are none of;
- for whom it contends, complains or speaks: words for people.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from leader.complaints import Complaints
from leader.election import Election
from leader.lease import Attestation, Lease, Mode
from leader.names import HISTORY, LeaderDirectory
from leader.step import Phase, Step
from leader.timing import Timing

NOW = 1024.0
"""What every clock says when an election is thawed; a power of two, so that no sum is rounded."""

PAST = float("-inf")
NOBODY = "00000000-0000-0000-0000-000000000000"
REASON = "reason"

_ELECTION = """
    job contender timing phase contending session_id directory attestation _new_session_id _observation _holding
    _confirmation _reason _successor _under_way _sent_at _looked_at _look_due _look_from_top _look_again _missing
    _retry_at _held_off_until _give_up_at _history_due _warned _complaints _commands
"""
_OBSERVATION = """
    _contender _timing _since _own_sessions _own _gone _present _checking _doubted _orphan _rhythm lease
    check_due
"""
_HOLDING = "_drift _promises _attested _highest current present"
_CONFIRMATION = "information _entries _announced _history"


class Frozen(NamedTuple):
    """Everything that an election will ever decide from; times are seconds after the present, ``PAST`` if passed."""

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
    under_way: Step | None
    sent_at: float
    looked_at: float
    look_due: float
    look_from_top: bool
    look_again: bool
    missing: bool
    retry_at: float
    held_off_until: float
    give_up_at: float
    warned: bool
    seen: Lease | None
    since: float
    own_sessions: tuple[str, ...]
    own: bool
    gone: str | None
    present: str | None
    checking: str | None
    doubted: bool
    orphan: tuple[str, str] | None
    check_due: float
    held: Lease | None
    renamed: Lease | None
    highest: int
    promises: tuple[tuple[Lease, float], ...]
    attested: tuple[tuple[str, float], ...]
    history: bool


@dataclass(frozen=True)
class Freezer:
    """Freezes and thaws; ``exact`` forgets nothing, to see whether forgetting makes a difference."""

    job: str
    timing: Timing
    exact: bool = False

    def freeze(self, election: Election, now: float) -> Frozen:
        """Everything the election will ever decide from, as it is at that time."""
        _known(election, _ELECTION)
        _known(election._observation, _OBSERVATION)
        _known(election._holding, _HOLDING)
        _known(election._confirmation, _CONFIRMATION)
        assert election._confirmation.information is None, "endpoints are not part of the model"
        observation, holding = election._observation, election._holding

        def after(when: float, matters: float = 0.0) -> float:
            """Seconds after now; ``matters`` says for how long a time is of interest once it has passed."""
            return when - now if self.exact or when + matters > now else PAST

        leading, releasing = election.phase is Phase.LEADING, election.phase is Phase.RELEASING
        stepping_down = election.phase is Phase.STEPPING_DOWN
        exact, poll = self.exact, self.timing.poll
        own = (
            election.phase is not Phase.STANDBY and observation.lease and observation.lease.owner == election.session_id
        )
        promised = {lease.attestation for lease in holding._promises} | {election.attestation.token}
        promises = [(lease, after(start, lease.ttl)) for lease, start in holding._promises.items()]
        attested = [(token, after(until)) for token, until in holding._attested.items() if exact or token in promised]
        return Frozen(
            contender=election.contender,
            phase=election.phase,
            contending=election.contending,
            session_id=election.session_id,
            directory=election.directory,
            token=election.attestation.token,
            until=after(election.attestation.until),
            usable=election.attestation.usable,
            answers=election.attestation.answers,
            reason=election._reason if exact else REASON,
            successor=election._successor if exact or releasing else "",
            under_way=election._under_way,
            sent_at=after(election._sent_at, poll) if exact or election._under_way else PAST,
            looked_at=after(election._looked_at, poll),
            look_due=after(election._look_due),
            look_from_top=election._look_from_top,
            look_again=election._look_again,
            missing=election._missing,
            retry_at=after(election._retry_at),
            held_off_until=after(election._held_off_until),
            give_up_at=after(election._give_up_at) if exact or releasing else PAST,
            warned=election._warned and (exact or stepping_down),
            seen=observation.lease,
            since=PAST if own and not exact else after(observation._since, self._observed(observation.lease)),
            own_sessions=tuple(each for each in observation._own_sessions if exact or each != NOBODY),
            own=observation._own,
            gone=observation._gone,
            present=observation._present,
            checking=observation._checking,
            doubted=observation._doubted and (exact or observation._checking is not None),
            orphan=observation._orphan,
            check_due=after(observation.check_due),
            held=holding.current,
            renamed=holding.present,
            highest=holding._highest,
            promises=tuple(promises if exact else sorted(promises, key=_by_sequence)),
            attested=tuple(attested if exact else sorted(attested)),
            history=bool(election._confirmation._history) and (exact or leading),
        )

    def _observed(self, lease: Lease | None) -> float:
        """For how long it matters since when a lease was seen."""
        if lease is None or lease.mode is Mode.RELEASED:
            return self.timing.courtesy
        return lease.ttl * (1 + self.timing.drift)

    def thaw(self, frozen: Frozen, new_session_id: Callable[[], str]) -> Election:
        """The election again, at the time ``NOW``."""
        election = Election(self.job, frozen.contender, self.timing, lambda: frozen.session_id)
        election._new_session_id = new_session_id
        election.phase, election.contending, election.directory = frozen.phase, frozen.contending, frozen.directory
        election.attestation = Attestation(frozen.token, NOW + frozen.until, frozen.usable, frozen.answers)
        election._reason, election._successor = frozen.reason, frozen.successor
        election._under_way, election._sent_at = frozen.under_way, NOW + frozen.sent_at
        election._looked_at, election._look_due = NOW + frozen.looked_at, NOW + frozen.look_due
        election._look_from_top, election._look_again = frozen.look_from_top, frozen.look_again
        election._missing, election._warned = frozen.missing, frozen.warned
        election._retry_at, election._held_off_until = NOW + frozen.retry_at, NOW + frozen.held_off_until
        election._give_up_at, election._complaints = NOW + frozen.give_up_at, Complaints()
        observation, holding = election._observation, election._holding
        observation.lease, observation._since = frozen.seen, NOW + frozen.since
        observation._own_sessions.extend(frozen.own_sessions)
        observation._own = frozen.own
        observation._gone, observation._present = frozen.gone, frozen.present
        observation._checking, observation._doubted = frozen.checking, frozen.doubted
        observation.check_due = NOW + frozen.check_due
        observation._orphan = frozen.orphan
        holding.current, holding.present, holding._highest = frozen.held, frozen.renamed, frozen.highest
        holding._promises = {lease: NOW + start for lease, start in frozen.promises}
        holding._attested = {token: NOW + until for token, until in frozen.attested}
        if frozen.history and frozen.directory:
            name = frozen.directory.name
            election._confirmation._history = f"{name}/{HISTORY}/{name}~{frozen.reason}~{frozen.contender}"
        return election


def _known(part: object, names: str) -> None:
    unknown = vars(part).keys() ^ set(names.split())
    assert not unknown, f"{type(part).__name__} has changed: the model must know of {unknown}"


def _by_sequence(promise: tuple[Lease, float]) -> int:
    return promise[0].sequence
