"""World: all possible next events of a situation, and the situation after each, under canonical names."""

from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from leader.election.events import Command
from leader.layout.lease import Mode, first_lease
from leader.layout.names import LeaderDirectory
from tests.system.exhaustive.late import executable
from tests.system.exhaustive.minds import Mind, Minds
from tests.system.exhaustive.model import NAMES, TIMING, Action, Bounds, Call, Effect, Parts, Side, State, Violation
from tests.system.exhaustive.naming import EPOCH, SEQUENCE, Renamer
from tests.system.exhaustive.renaming import TOKENS, Naming, naming
from tests.system.exhaustive.sides import Sides
from tests.system.exhaustive.snapshot import NOBODY

_SMOOTH = ("answer", "told", "check", "confirm", "tick", "awake", "time")
"""The events while all goes well, in order."""
_TIME, _WRITE, _FORGET = Action("time"), Action("write"), Action("forget", cost=1)


class World:
    def __init__(self, bounds: Bounds, *, exact: bool = False, reduced: bool = True) -> None:
        """Know of no situation yet.

        Args:
            bounds: the bounds.
            exact: forget and rename nothing; to follow one path, and to check that forgetting changes nothing.
            reduced: follow only one order of events whose order nobody can see.
        """
        self.bounds = bounds
        self._reduced = reduced and not bounds.ends and not bounds.strangers
        self.commands: list[tuple[int, Command]] = []
        """Which side did what in the last action."""
        self._exact = exact
        timing = replace(TIMING, long_ttl=bounds.long_ttl)
        self.minds = Minds(timing, comes_back=bounds.comes_back, exact=exact, asks=bounds.strangers)
        self._sides = Sides(bounds, self.minds)
        self._serial = 0
        self._namings: dict[object, Naming] = {}
        self._last_state: State | None = None
        self._last_naming = Naming(None, (), (), ())

    # --- where it begins

    def starts(self) -> list[State]:
        """A new job and two standbys; then, tick by tick, the first of them leads, at last by ZooKeeper's word."""
        state = self._new()
        starts = [state]
        while not (state.store.lease.mode is Mode.ZOOKEEPER and starts[-1] is state):
            smooth = [action for action in self.actions(state) if action.kind in _SMOOTH]
            action = min(smooth, key=lambda each: (_SMOOTH.index(each.kind), each.side))
            state = self.apply(state, action)
            if action is _TIME:
                starts.append(state)
        return starts

    def _new(self) -> State:
        store = self._sides.store(
            LeaderDirectory(EPOCH, NOBODY), structs.replace(first_lease(NOBODY), sequence=SEQUENCE)
        )
        one, other = (self._newcomer(index) for index in range(2))
        return self._settle(State(store, store, granted=True, sides=(one, other)))

    def _newcomer(self, index: int) -> Side:
        token = TOKENS[index][0]
        mind = self.minds.new(NAMES[index], NOBODY, token)
        return self._sides.side(index, Parts(mind, token, call=Call() if mind.command else None))

    # --- possible events

    def successors(self, state: State, free: int) -> list[tuple[Action, State]]:
        """Everything that may happen next, and the situation then, if so many more disturbances may begin.

        Changes that cannot be forgotten any more are written at once, since the time makes no difference.

        If a contender is alone, only its own events are followed: all others can as well happen afterwards. That holds
        as long as it touches nothing that the other may touch, and shows nothing: no belief ends, nobody gets a grant.
        It does not hold where processes may end, for a dead process does nothing afterwards, and not where a stranger
        may delete a node at any time.

        Raises:
            Violation: one of them must never occur; the action is its second argument.
        """
        if self._reduced and not free and state.durable is not state.store:
            return [(_WRITE, self._attempt(state, _WRITE))]
        for index, side in enumerate(state.sides):
            if self._reduced and side.alone and not state.sides[1 - index].parts.may_expire:
                found = [(each, self._attempt(state, each)) for each in side.actions if each.cost <= free]
                if all(_shows_nothing(state, after, index) for _, after in found):
                    return found
        return [(each, self._attempt(state, each)) for each in self.actions(state) if each.cost <= free]

    def actions(self, state: State) -> Iterator[Action]:
        one, other = state.sides
        yield from one.actions
        yield from other.actions
        for index, (told, of) in enumerate(((one, other), (other, one))):
            if self._tells_of_end(told.parts, of.parts):
                yield Action("gone", index)
            if told.parts.asks and not told.parts.fate:
                greets = of.parts.alive and not of.parts.ended
                yield Action("greeted" if greets else "not greeted", index)
        for which in range(len(state.abandoned)):
            yield Action("late", -1, which)
        if state.durable is not state.store:
            yield _WRITE
            yield _FORGET
        if one.parts.fate and other.parts.fate:
            yield _TIME

    def _tells_of_end(self, told: Parts, of: Parts) -> bool:
        gone = bool(of.ended) or (self.bounds.rash and of.slept)
        return gone and not told.bereft and not told.fate

    def _attempt(self, state: State, action: Action) -> State:
        try:
            return self.apply(state, action)
        except (Violation, AssertionError) as violation:
            raise Violation(str(violation), action) from violation

    # --- the next situation

    def apply(self, state: State, action: Action) -> State:
        """Return the situation after an action.

        Raises:
            Violation: that must never occur.
        """
        self.commands.clear()
        if action is _TIME or action.kind == "time":
            for index in range(2):
                state = self._put(state, index, self._simply(state, index, "time"))
            return self._settle(state)
        if action.kind == "late":
            return self._settle(self._execute_late(state, action.which))
        if action.kind == "write":
            return self._settle(self._write(state))
        if action.kind == "forget":
            return self._settle(self._end_all(state._replace(store=state.durable), "forgotten"))
        index, kind = action.side, action.kind
        if kind in ("answer", "execute"):
            effect = self._call(state, index, kind)
        elif kind == "connect":
            effect = self._connect(state, index)
        elif kind == "gone":
            other, fresh = state.sides[1 - index].parts, self._session(state, index)
            session_id = other.ended or other.mind.frozen.session_id
            effect = self._sides.gone(index, state.sides[index].parts, session_id, fresh)
        elif kind in ("check", "look up"):
            effect = self._check(state, index, kind)
        else:
            effect = self._simply(state, index, kind)
        state = self._put(state, index, effect)
        return self._settle(self._tell_of_expiry(state, index) if kind in ("expire", "delete") else state)

    def _simply(self, state: State, index: int, kind: str) -> Effect:
        side, fresh = state.sides[index], self._session(state, index)
        known = side.after.get((kind, fresh))
        if known is None:
            known = side.after[kind, fresh] = self._sides.simply(index, side.parts, kind, fresh)
        return known

    def _call(self, state: State, index: int, kind: str) -> Effect:
        side, fresh = state.sides[index], self._session(state, index)
        known = side.after.get((kind, fresh, state.store))
        if known is None:
            known = self._sides.call(index, side.parts, kind, state.store, fresh)
            side.after[kind, fresh, state.store] = known
        return known

    def _connect(self, state: State, index: int) -> Effect:
        side, fresh = state.sides[index], self._session(state, index)
        there = side.parts.alive and side.parts.node
        token = side.parts.token if there else self._token(state, index)
        known = side.after.get(("connect", fresh, token))
        if known is None:
            known = self._sides.connect(index, side.parts, token, fresh)
            side.after["connect", fresh, token] = known
        return known

    def _check(self, state: State, index: int, kind: str) -> Effect:
        side, fresh = state.sides[index], self._session(state, index)
        other = state.sides[1 - index].parts
        assert side.parts.check is not None
        token = side.parts.check.token
        others = other.alive and other.node and token == other.token
        present = others or (side.parts.alive and side.parts.node and token == side.parts.token)
        known = side.after.get((kind, fresh, present, others))
        if known is None:
            known = self._sides.check(index, side.parts, kind, present=present, others=others, fresh=fresh)
            side.after[kind, fresh, present, others] = known
        return known

    def _execute_late(self, state: State, which: int) -> State:
        """The call stays: it may be forgotten and executed once more, until its source is gone for good."""
        return state._replace(store=self._sides.rename_in(state.store, state.abandoned[which]) or state.store)

    def _write(self, state: State) -> State:
        if state.durable is state.store:
            return state
        granted = state.granted and state.durable.directory == state.store.directory
        return self._end_all(state._replace(durable=state.store, granted=granted), "written")

    def _end_all(self, state: State, kind: str) -> State:
        """Write all unwritten changes, or forget them."""
        for index in range(2):
            call = state.sides[index].parts.call
            if call is not None and call.unwritten:
                state = self._put(state, index, self._simply(state, index, kind))
        return state

    def _tell_of_expiry(self, state: State, index: int) -> State:
        other = state.sides[1 - index]
        if not other.parts.watches:
            return state
        told = self._sides.side(1 - index, other.parts._replace(watches=False, nudged=True))
        return self._put(state, 1 - index, Effect(told))

    def _put(self, state: State, index: int, effect: Effect) -> State:
        """Return the situation with that effect.

        Raises:
            Violation: a grant that must not be.
        """
        one, other = state.sides
        sides = (effect.side, other) if index == 0 else (one, effect.side)
        abandoned = (*state.abandoned, effect.abandoned) if effect.abandoned is not None else state.abandoned
        state = State(effect.store or state.store, state.durable, state.granted, sides, abandoned)
        if effect.written:
            state = self._write(state)
        if effect.granted is not None:
            if self.bounds.strict:
                self._check_grant(state, index, effect.granted)
            state = state._replace(granted=True)
        if effect.commands:
            self.commands += [(index, command) for command in effect.commands]
        return state

    def _check_grant(self, state: State, index: int, granted: LeaderDirectory) -> None:
        if granted != state.durable.directory and granted == state.store.directory:
            raise Violation(f"{NAMES[index]} is granted an epoch that may be forgotten")
        if state.granted or granted != state.store.directory:
            raise Violation(f"{NAMES[index]} is granted an epoch that is over")

    # --- names

    def _session(self, state: State, index: int) -> str:
        if self._exact:
            self._serial += 1
            return f"{index:08x}-0000-0000-0000-{self._serial:012x}"
        return self._free(state).sessions[index]

    def _token(self, state: State, index: int) -> str:
        if self._exact:
            self._serial += 1
            return f"{index}-{self._serial:x}"
        return self._free(state).tokens[index]

    def _naming(self, state: State) -> Naming:
        one, other = state.sides
        key = (state.store, state.durable, state.abandoned, one.names, other.names)
        known = self._namings.get(key)
        if known is None:
            known = self._namings[key] = naming(state)
        return known

    def _free(self, state: State) -> Naming:
        """The same for whoever needs a new name; all that may happen next is asked for in a row."""
        if state is not self._last_state:
            self._last_state, self._last_naming = state, self._naming(state)
        return self._last_naming

    def _settle(self, state: State) -> State:
        """Check the situation, and give it the names by which it is known.

        Raises:
            Violation: the situation must never occur.
        """
        if not self.bounds.forgets:
            state = self._write(state)
        one, other = state.sides[0].mind, state.sides[1].mind
        if one.leads and other.leads:
            raise Violation(f"two contenders lead: {_for_how_long(one, other)}")
        if one.holds and other.holds:
            raise Violation(f"two contenders think that nobody else can lead: {_for_how_long(one, other)}")
        holder = one if one.holds else other
        leases = (state.store.lease, state.durable.lease)
        if self.bounds.strict and holder.holds and not holder.promised.issuperset(leases):
            raise Violation(f"the lease is not one that it counts on: {_for_how_long(holder)}")
        if state.abandoned:
            state = state._replace(abandoned=executable(state)[-self.bounds.abandoned :])
        return state if self._exact else self._renamed(state)

    def _renamed(self, state: State) -> State:
        new = self._naming(state)
        store, durable, abandoned = state.store, state.durable, state.abandoned
        if new.all is not None:
            renamer = Renamer(new.all)
            store, durable = (
                self._sides.store(renamer.directory(each.directory), renamer.lease(each.lease))
                for each in (store, durable)
            )
            abandoned = tuple(map(renamer.rename, abandoned))
        elif new.sides == (None, None):
            return state
        one, other = (
            self._sides.rename(index, side, renaming) if renaming is not None else side
            for index, (side, renaming) in enumerate(zip(state.sides, new.sides, strict=True))
        )
        return State(store, durable, state.granted, (one, other), abandoned)


def _for_how_long(*minds: Mind) -> str:
    held = [f"{mind.frozen.contender} for {mind.holds_for:.1f} s more by its own clock" for mind in minds]
    return f"{', '.join(held)}"


def _shows_nothing(before: State, after: State, index: int) -> bool:
    """Whether beliefs and grants do not show when it happened."""
    old, new = before.sides[index].mind, after.sides[index].mind
    return new.leads >= old.leads and new.holds >= old.holds and before.granted == after.granted
