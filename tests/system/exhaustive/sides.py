"""Sides: the rules for one contender: its possible events and their effects.

:mod:`tests.system.exhaustive.model` explains their purpose.
"""

from collections.abc import Iterator

from leader.election.events import FilesCommand, ListJob, ListRecord, MakeDirectory, Rename
from leader.election.state import Phase
from leader.layout.lease import Lease
from leader.layout.names import RECORD, LeaderDirectory
from store.errors import AlreadyExists, DeadlineExceeded, NotFound
from tests.system.exhaustive.minds import Happening, Minds
from tests.system.exhaustive.model import (
    FORGOTTEN_TICKS,
    NAMES,
    TICK,
    TRUSTED_TICKS,
    Action,
    Answer,
    Bounds,
    Call,
    Check,
    Effect,
    Link,
    Parts,
    Side,
    SideNames,
    Store,
    Violation,
)
from tests.system.exhaustive.naming import Names, Renamer, Renaming, names_of
from tests.system.exhaustive.snapshot import NOBODY

TICKS = Happening("tick")


class Sides:
    def __init__(self, bounds: Bounds, minds: Minds) -> None:
        self._bounds = bounds
        self._minds = minds
        self._seconds = tuple(TICK * rate for rate in bounds.rates)
        self._sides: dict[tuple[int, Parts], Side] = {}
        self._names: dict[object, SideNames] = {}
        self._stores: dict[tuple[LeaderDirectory, Lease], Store] = {}

    # --- kept once

    def side(self, index: int, parts: Parts) -> Side:
        known = self._sides.get((index, parts))
        if known is None:
            spared = index not in self._bounds.disturbed
            actions = tuple(each for each in self._actions(index, parts) if not (spared and each.cost))
            alone = not parts.fate and _alone(parts)
            known = self._sides[index, parts] = Side(parts, parts.mind, self._names_on(parts), actions, alone)
        return known

    def store(self, directory: LeaderDirectory, lease: Lease) -> Store:
        known = self._stores.get((directory, lease))
        if known is None:
            home = directory.name
            names = names_of(home) | names_of(lease.name)
            known = Store(directory, lease, names, home, f"{home}/{RECORD}/{lease.name}")
            self._stores[directory, lease] = known
        return known

    def rename(self, index: int, side: Side, renaming: Renaming) -> Side:
        known = side.after.get(renaming)
        if known is None:
            parts = side.parts
            call = parts.call
            if call is not None and call.answer is not None:
                names = tuple(map(Renamer(renaming).path, call.answer.names))
                call = call._replace(answer=call.answer._replace(names=names))
            mind = self._minds.rename(parts.mind, renaming)
            known = side.after[renaming] = Effect(self.side(index, parts._replace(mind=mind, call=call)))
        return known.side

    def _names_on(self, parts: Parts) -> SideNames:
        check, call = parts.check, parts.call
        words = frozenset(
            filter(None, (parts.token, parts.ended, parts.asks, check.token if check is not None else ""))
        )
        answer = call.answer.names if call is not None and call.answer is not None else ()
        used = parts.mind.names | Names(words=words)
        for name in answer:
            used = used | names_of(name)
        key = (used, parts.mind.remembered, answer)
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = SideNames(*key)
        return known

    # --- possible events

    def _actions(self, index: int, parts: Parts) -> Iterator[Action]:
        if parts.may_expire:
            yield Action("expire", index)
        if self._bounds.strangers and parts.alive and parts.node:
            yield Action("delete", index, cost=1)
        if parts.fate:
            return
        if self._bounds.ends:
            yield Action("end", index, cost=1)
        yield from _of_time(index, parts)
        yield from _of_call(index, parts)
        yield from _of_session(index, parts)
        if parts.check is not None:
            yield from _of_check(index, parts, parts.check)
        if self._bounds.steps_down:
            if parts.mind.frozen.phase is Phase.LEADING:
                yield Action("step down", index, cost=1)
            elif parts.mind.frozen.phase is Phase.STEPPING_DOWN:
                yield Action("give back", index)
        yield from _fates(index, parts)

    # --- effects

    def tell(self, index: int, parts: Parts, happening: Happening, fresh: str) -> Effect:
        """The contender takes an event; ``fresh`` is the session id that it gets if it wants a new one."""
        reaction = self._minds.handle(parts.mind, happening, fresh)
        call = Call() if parts.call is None and reaction.mind.command is not None else parts.call
        check = Check(reaction.check) if reaction.check is not None else parts.check
        asks = reaction.asks if reaction.asks is not None else parts.asks
        parts = parts._replace(mind=reaction.mind, call=call, check=check, asks=asks, owed=False, slept=False)
        grant = LeaderDirectory(reaction.grant.epoch, reaction.grant.session_id) if reaction.grant else None
        return Effect(self.side(index, parts), granted=grant, commands=reaction.commands)

    def simply(self, index: int, parts: Parts, kind: str, fresh: str) -> Effect:
        """Apply an event that concerns the contender alone."""
        happening, abandoned = Happening(kind), None
        unheard = _unheard(parts, kind)
        if unheard is not None:
            return Effect(self.side(index, unheard))
        match kind:
            case "time":
                return self._pass_time(index, parts, fresh)
            case "end":
                return self._end(index, parts)
            case "nudge":
                parts = parts._replace(nudged=False)
            case "confirm":
                parts, happening = _confirmed(parts)
            case "suspend":
                parts = parts._replace(link=Link.DOWN, watches=False, nudged=False)
            case "greeted" | "not greeted" | "told" | "cannot say":
                parts, happening = _answered(parts, kind)
            case "lose":
                command = parts.mind.command if parts.call and parts.call.open else None
                abandoned = command if isinstance(command, Rename) else None
                parts, happening = parts._replace(call=None), Happening("answer", DeadlineExceeded)
        return self.tell(index, parts, happening, fresh)._replace(abandoned=abandoned)

    def gone(self, index: int, parts: Parts, session_id: str, fresh: str) -> Effect:
        """The contender is told that the process which had that session id has ended."""
        return self.tell(index, parts._replace(bereft=True), Happening("gone", token=session_id), fresh)

    def _end(self, index: int, parts: Parts) -> Effect:
        """End the process and its belief; its pending calls may be executed later."""
        command = parts.mind.command if parts.call and parts.call.open else None
        nobody = self._minds.new(NAMES[index], NOBODY, parts.token)
        session_id = parts.mind.frozen.session_id
        ended = Parts(nobody, parts.token, fate="ended", ended=session_id, alive=parts.alive, confirmed=parts.confirmed)
        return Effect(self.side(index, ended), abandoned=command if isinstance(command, Rename) else None)

    def call(self, index: int, parts: Parts, kind: str, store: Store, fresh: str) -> Effect:
        """The NameNode executes the contender's call, and perhaps answers it: a change only once it is written."""
        call, command = parts.call, parts.mind.command
        assert call is not None
        assert command is not None
        if call.answer is None:
            before = store
            store, answer = self._execute(store, command)
            call = call._replace(answer=answer, answered=0, unwritten=store is not before)
        if kind == "execute":
            return Effect(self.side(index, parts._replace(call=call, disturbed=True)), store=store)
        assert call.answer is not None
        ago = call.answered * self._seconds[index]
        happening = Happening("answer", call.answer.error, call.answer.names, ago)
        effect = self.tell(index, parts._replace(call=None), happening, fresh)
        return effect._replace(store=store, written=call.unwritten)

    def connect(self, index: int, parts: Parts, token: str, fresh: str) -> Effect:
        """ZooKeeper is there again; in a session of its own, if the last one is over, under a node that is there."""
        happening = Happening("confirm" if parts.alive else "new session", token=token)
        parts = parts._replace(link=Link.UP, confirmed=0, watches=False, alive=True, node=True, token=token)
        return self.tell(index, parts, happening, fresh)

    def check(self, index: int, parts: Parts, kind: str, *, present: bool, others: bool, fresh: str) -> Effect:
        """ZooKeeper looks for a node, and perhaps says what it found; ``others``: it is the other contender's."""
        assert parts.check is not None
        check = parts.check._replace(present=present)
        parts = parts._replace(watches=parts.watches or (present and others), check=check._replace(slow=True))
        if kind == "look up":
            return Effect(self.side(index, parts))
        happening = Happening("checked", token=check.token, present=present)
        return self.tell(index, parts._replace(check=None), happening, fresh)

    def _pass_time(self, index: int, parts: Parts, fresh: str) -> Effect:
        if parts.ended:
            return Effect(self.side(index, parts._replace(confirmed=min(parts.confirmed + 1, TRUSTED_TICKS))))
        call, asleep = parts.call, parts.fate == "asleep"
        if call is not None:
            answered = min(call.answered + 1, FORGOTTEN_TICKS) if call.answer is not None else 0
            call = call._replace(overdue=True, answered=answered)
        parts = parts._replace(
            mind=self._minds.later(parts.mind, self._seconds[index]),
            call=call,
            confirmed=min(parts.confirmed + 1, TRUSTED_TICKS),
            owed=True,
            fate="",
            disturbed=call is not None and not asleep,
            slept=asleep,
        )
        # A sleeping contender takes nothing; one with several events before it takes them in any order.
        if asleep or call is not None or parts.check is not None or parts.nudged:
            return Effect(self.side(index, parts))
        return self.simply(index, parts, "confirm" if parts.connected else "tick", fresh)

    # --- the NameNode

    def rename_in(self, store: Store, rename: Rename) -> Store | None:
        """Return the store after a rename; None if the source is missing.

        Raises:
            Violation: the store must never change like that.
        """
        source, destination = rename.source, rename.destination
        if source == store.home:
            claimed = LeaderDirectory.parse(destination)
            if claimed is None or claimed.epoch != store.directory.epoch + 1:
                raise Violation(f"a claim makes {destination} of {source}")
            return self.store(claimed, store.lease)
        if source == store.entry:
            lease = Lease.parse(destination.rpartition("/")[2])
            if lease is None or lease.sequence <= store.lease.sequence:
                raise Violation(f"the lease {source} becomes {destination}")
            return self.store(store.directory, lease)
        return None

    def _execute(self, store: Store, command: FilesCommand) -> tuple[Store, Answer]:
        match command:
            case ListJob():
                return store, Answer((store.home,))
            case ListRecord(directory):
                return store, Answer((store.lease.name,)) if directory == store.directory else Answer(error=NotFound)
            case MakeDirectory(path):
                return store, Answer() if path.startswith(f"{store.home}/") else Answer(error=NotFound)
            case Rename():
                renamed = self.rename_in(store, command)
                return renamed or store, Answer() if renamed else Answer(error=NotFound)
            case _:
                return store, Answer(error=AlreadyExists)


def _ended(call: Call | None, kind: str) -> Call | None:
    """Return a call after its change was written, or forgotten: then it is still to be executed."""
    if call is None or not call.unwritten:
        return call
    return call._replace(unwritten=False) if kind == "written" else Call(overdue=call.overdue)


def _of_time(index: int, parts: Parts) -> Iterator[Action]:
    if parts.owed:
        yield Action("tick", index)
    if parts.nudged:
        yield Action("nudge", index)


def _of_call(index: int, parts: Parts) -> Iterator[Action]:
    call = parts.call
    if call is None:
        return
    yield Action("answer", index)
    if call.overdue:
        yield Action("lose", index)
    elif call.answer is None:
        yield Action("execute", index, cost=1 - parts.disturbed)


def _of_session(index: int, parts: Parts) -> Iterator[Action]:
    if parts.connected and (parts.owed or parts.confirmed or not parts.node):
        yield Action("confirm", index)
    if parts.link is not Link.DOWN:
        yield Action("suspend", index, cost=int(parts.link is Link.UP))
    if not parts.connected:
        yield Action("connect", index)


def _of_check(index: int, parts: Parts, check: Check) -> Iterator[Action]:
    if check.present is not None:
        yield Action("told", index)
    elif parts.connected:
        yield Action("check", index)
        yield Action("look up", index, cost=1 - check.slow)
        yield Action("cannot say", index, cost=1 - check.slow)
    else:
        yield Action("cannot say", index)


def _fates(index: int, parts: Parts) -> Iterator[Action]:
    """Return the ways of a contender into the next tick: its open events are disturbed."""
    yield Action("asleep", index, cost=1 - parts.slept)
    if parts.owed or parts.nudged or (parts.call is not None and parts.call.overdue):
        return
    if not parts.alive and parts.link is Link.UP:
        return  # it learns at once that its session is over
    cost = (parts.call is not None and not parts.disturbed) + (parts.check is not None and not parts.check.slow)
    if parts.link is Link.UP:
        yield Action("silent", index, cost=cost + 1)
    if parts.link is not Link.UP or parts.confirmed == 0:
        yield Action("awake", index, cost=cost)


def _unheard(parts: Parts, kind: str) -> Parts | None:
    """Return the effect on a contender that learns nothing of it; None if it learns of it."""
    match kind:
        case "awake" | "silent" | "asleep":
            return _fated(parts, kind)
        case "written" | "forgotten":
            return parts._replace(call=_ended(parts.call, kind))
        case "delete":
            return parts._replace(node=False)
        case "expire":
            return parts._replace(alive=False, watches=False)
    return None


def _fated(parts: Parts, fate: str) -> Parts:
    if fate == "asleep":
        return parts._replace(fate=fate)
    check = parts.check._replace(slow=True) if parts.check is not None else None
    return parts._replace(
        fate=fate,
        disturbed=parts.disturbed or parts.call is not None,
        check=check,
        link=Link.SILENT if fate == "silent" else parts.link,
    )


def _confirmed(parts: Parts) -> tuple[Parts, Happening]:
    """Confirm the session; without its node it makes another one, and trusts in none until then."""
    if not parts.node:
        return parts._replace(link=Link.DOWN), Happening("suspend")
    return parts._replace(confirmed=0), Happening("confirm", token=parts.token)


def _answered(parts: Parts, kind: str) -> tuple[Parts, Happening]:
    """Answer what it has asked ZooKeeper, or the other's process."""
    if kind in ("greeted", "not greeted"):
        return parts._replace(asks=""), Happening("asked", token=parts.asks, present=kind == "greeted")
    assert parts.check is not None
    present = parts.check.present if kind == "told" else None
    return parts._replace(check=None), Happening("checked", token=parts.check.token, present=present)


def _alone(parts: Parts) -> bool:
    asks = parts.call is not None and parts.call.open
    looks = parts.check is not None and parts.check.present is None and parts.connected
    return not asks and not looks and not parts.may_expire
