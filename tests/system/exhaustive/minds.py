"""Minds: frozen elections, each kept once, and the reaction to every event, computed once.

Most situations differ only in the stores or in the *other* contender. So production's election is asked once for each
(state, event), and the answer is kept.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from leader.election.election import Election
from leader.election.events import (
    AskProcess,
    AttestationChecked,
    Attested,
    CheckAttestation,
    Command,
    Contend,
    Event,
    FilesCommand,
    FilesDone,
    Grant,
    ListRecord,
    Nudge,
    ProcessAsked,
    ProcessGone,
    Release,
    Revoke,
    StepDown,
    Tick,
)
from leader.layout.contact import ContactEntry
from leader.layout.lease import Attestation, Lease
from leader.timing import SESSION_SHARE, Timing
from store.errors import StoreError
from store.outcome import Outcome
from tests.system.exhaustive.naming import Names, Renamer, Renaming, mentioned, remembered
from tests.system.exhaustive.snapshot import NOW, THEIRS, Freezer, Frozen


class Happening(NamedTuple):
    """An event in a form that can be kept: without times, except the age of an answer."""

    kind: str
    error: type[StoreError] | None = None
    names: tuple[str, ...] = ()
    ago: float = 0.0
    token: str | None = None
    present: bool | None = None


@dataclass(eq=False, slots=True)
class Mind:
    """A frozen election and what it believes. Kept once, so it is compared by identity."""

    frozen: Frozen
    leads: bool
    holds: bool
    holds_for: float
    """Seconds by its own clock."""
    command: FilesCommand | None
    names: Names
    remembered: frozenset[str]
    promised: frozenset[Lease]
    """Every entry of its lease that may be in the store as far as it knows."""
    after: dict[tuple[Happening, str], "Reaction"] = field(default_factory=dict)
    shifted: dict[float, "Mind"] = field(default_factory=dict)
    renamed: dict[Renaming, "Mind"] = field(default_factory=dict)


class Reaction(NamedTuple):
    mind: Mind
    check: str | None
    """The token that it wants ZooKeeper to be asked about."""
    asks: str | None
    """The token whose process it wants to be asked."""
    grant: Grant | None
    commands: tuple[Command, ...]
    """All that it did, for the timeline."""


class Minds:
    """All minds that the search has met."""

    def __init__(self, timing: Timing, *, comes_back: bool = True, exact: bool = False, asks: bool = False) -> None:
        self._timing = timing
        self._comes_back = comes_back
        self._freezer = Freezer("job", timing, exact=exact, asks=asks)
        self._known: dict[Frozen, Mind] = {}
        self._trust = timing.session_timeout * SESSION_SHARE * (1 - timing.drift)

    def __len__(self) -> int:
        return len(self._known)

    def new(self, contender: str, session_id: str, token: str) -> Mind:
        election = Election("job", contender, self._timing, lambda: session_id, lambda: 0.0)
        return self._react(election, [Attested(self._attestation(token)), Contend()]).mind

    def handle(self, mind: Mind, happening: Happening, fresh: str) -> Reaction:
        """Give the election an event; ``fresh`` is the session id that it gets if it wants a new one."""
        known = mind.after.get((happening, fresh))
        if known is None:
            election = self._freezer.thaw(mind.frozen, lambda: fresh)
            known = mind.after[happening, fresh] = self._react(election, self._events(happening, mind))
        return known

    def later(self, mind: Mind, seconds: float) -> Mind:
        """Return the mind after that many seconds on its clock without an event."""
        known = mind.shifted.get(seconds)
        if known is None:
            election = self._freezer.thaw(mind.frozen, _no_session_id)
            known = mind.shifted[seconds] = self._keep(election, NOW + seconds)
        return known

    def rename(self, mind: Mind, renaming: Renaming) -> Mind:
        known = mind.renamed.get(renaming)
        if known is None:
            known = mind.renamed[renaming] = self._kept(Renamer(renaming).mind(mind.frozen))
        return known

    def _attestation(self, token: str) -> Attestation:
        """Return the attestation that follows from a confirmation that began now."""
        return Attestation(token, NOW + self._trust, usable=True)

    def _events(self, happening: Happening, mind: Mind) -> list[Event]:
        known, token = mind.frozen, happening.token
        events: list[Event]
        match happening.kind:
            case "tick":
                events = [Tick()]
            case "gone" if token is not None:
                events = [ProcessGone(token)]
            case "nudge":
                events = [Nudge()]
            case "confirm" if token is not None:
                events = [Attested(self._attestation(token))]
            case "new session" if token is not None:  # which settles by confirmations
                events = [Attested(Attestation()), Attested(Attestation(token, answers=True))]
            case "suspend":
                events = [Attested(Attestation(known.token, NOW + known.until, usable=False))]
            case "checked" | "asked" if token is not None:
                events = [_answer(happening, token)]
            case "step down":
                events = [StepDown("An operator wants it.")]
            case "give back":
                events = [Release(), Contend()]
            case _:
                assert mind.command is not None, "an answer belongs to a command"
                error = happening.error("It went wrong.") if happening.error else None
                ended = NOW - happening.ago
                listed = [*happening.names, *self._contact_in(mind.command, happening)]
                events = [FilesDone(mind.command, Outcome(listed, error, ended, ended))]
        return events

    def _contact_in(self, command: FilesCommand, answer: Happening) -> list[str]:
        """Return the contact that a list of the record shows, where standbys ask: every leader has left one."""
        if not (self._freezer.asks and isinstance(command, ListRecord) and answer.names):
            return []
        return [ContactEntry(command.directory.epoch, command.directory.session_id, THEIRS).name]

    def _react(self, election: Election, events: list[Event]) -> Reaction:
        check, asks, grant, commands = None, None, None, list[Command]()
        waiting = list(events)
        while waiting:
            for command in election.handle(waiting.pop(0), NOW):
                if isinstance(command, CheckAttestation):
                    check = command.token
                elif isinstance(command, AskProcess):
                    asks = command.token
                elif isinstance(command, Grant):
                    assert grant is None, "two grants at once"
                    grant = command
                elif isinstance(command, Revoke) and command.until is not None:
                    # Its work has ended at once, so it gives back what it has.
                    waiting += [Release(), Contend()] if self._comes_back else [Release()]
                commands.append(command)
            election.state.validate()
        return Reaction(self._keep(election, NOW), check, asks, grant, tuple(commands))

    def _keep(self, election: Election, now: float) -> Mind:
        return self._kept(self._freezer.freeze(election, now))

    def _kept(self, frozen: Frozen) -> Mind:
        known = self._known.get(frozen)
        if known is None:
            election = self._freezer.thaw(frozen, _no_session_id)
            known = self._known[frozen] = Mind(
                frozen,
                election.state.is_leader(NOW),
                election.state.holds_until() > NOW,
                election.state.holds_until() - NOW,
                frozen.pending.command if frozen.pending else None,
                mentioned(frozen),
                remembered(frozen),
                frozenset(lease for lease, _ in frozen.promises),
            )
        return known


def _answer(happening: Happening, token: str) -> Event:
    if happening.kind == "asked":
        return ProcessAsked(token, lives=bool(happening.present))
    return AttestationChecked(token, happening.present)


def _no_session_id() -> str:
    raise AssertionError("nobody asks for a session id here")
