"""Model: two contenders, one job, a NameNode, ZooKeeper and the network, as small as their contracts allow.

The contenders are minds (:mod:`tests.system.exhaustive.minds`), that is, production's election; nothing of it is
repeated here. This module has the parts around them. :mod:`tests.system.exhaustive.sides` has the possible events.

- **Time** goes in ticks of three true seconds; whatever happens within one happens in any order. A contender's clock
  runs at a rate of its own, at most the drift away from true time. Ttls and ticks are such that the belief of a slow
  holder ends on the very tick on which a fast standby may seize.
- **The NameNode** executes one command after the other. A call is executed and answered within its tick, at any point
  of it. If it is *disturbed*, it is executed at any time or never, and answered at any time or never. After one tick
  its sender has an answer or gives it up; a rename that was given up may be executed at any time after that.
- **It may forget** what its journal does not have, where the bounds allow it: a change that was executed is *written*
  when its sender is told of it, with all that was executed before, or at any time at which nobody is told. Until then
  lists show it and refusals come from it, but the NameNode that follows may never have heard of it. Then it is as if
  it had not been executed: it may be at any time, or never.
- **ZooKeeper** confirms a session in every tick, from its beginning. It may end a session once the last confirmation
  was ``SESSION_SHARE`` of the session timeout ago, in true time, and no sooner. Its word on a node is asked for and
  given within a tick; if *disturbed*, the node is looked up at any time, and told of at any later one, or "cannot say".
- **A contender** may sleep through any number of ticks, and then takes what has come meanwhile in any order. A crash is
  a sleep that never ends. Its belief counts as long as its own clock has not reached it.
- **A process** may end, where the bounds allow it: then it believes nothing, and the other is told so at any time, or
  never, whatever the mode of the lease. Its call may still be executed, and its session lives on.
- **A stranger** may delete the node of a session that lives, where the bounds allow it. Its owner is told of that at
  any time, and at its next confirmation at the latest, and then makes another one. Standbys know the leader's contact
  there, and ask its process before they seize the lease. It greets at any time, or is silent if its session is over;
  that a leader greets whose node was deleted is an assumption (docs/security.md), and not a result.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from leader.election.events import Command, Rename
from leader.layout.lease import Lease
from leader.layout.names import LeaderDirectory
from leader.timing import Timing
from store.errors import StoreError
from tests.system.exhaustive.minds import Mind
from tests.system.exhaustive.naming import Names

TICK = 3.0
TIMING = Timing(
    short_ttl=6.0,
    long_ttl=12.0,
    session_timeout=9.0,
    call_timeout=1.5,
    stop_margin=0.125,
    drift=1 / 16,  # a power of two, like all durations here, so that no sum is rounded
    hand_over=1.0,
)
TRUSTED_TICKS = 2
"""ZooKeeper's contract: ``SESSION_SHARE`` of nine seconds."""
FORGOTTEN_TICKS = 7
"""An answer that came so long ago is older than every ttl."""
NAMES = ("a", "b")
SLOW, EVEN, FAST = 15 / 16, 1.0, 17 / 16


class Violation(Exception):
    """A situation or a change that must never occur."""


@dataclass(frozen=True)
class Bounds:
    """The limits of a search.

    Attributes:
        rates: seconds on each contender's clock in one true second.
        disturbances: how many may begin in one run. Each lasts as long as it likes: a contender sleeps, its session is
            not confirmed, its calls to the NameNode are out of order, an answer about a node is slow, a leader steps
            down, the NameNode forgets.
        ticks: for how long a run is followed once the first has begun. Before that, time is not limited.
        disturbed: contenders that may be disturbed.
        forgets: whether the NameNode may forget what is not written, which counts as a disturbance.
        long_ttl: seconds, of a lease that ZooKeeper attests. With the default a belief does not outlive the loss of two
            renewals in a row.
        abandoned: how many renames that were given up may still be executed; of more, the oldest never are.
        comes_back: whether a leader that lost its lease contends again.
        steps_down: whether a leader may step down, which counts as a disturbance.
        ends: whether a process may end and the other be told so, which counts as a disturbance.
        rash: whether the other is told so of one that only sleeps: a fault, to see that it is found.
        strangers: whether strangers may delete nodes of sessions that live, which counts as a disturbance, and standbys
            know whom to ask.
        strict: whether grants are judged too, and the lease in the store; not only beliefs.
    """

    rates: tuple[float, float] = (EVEN, EVEN)
    disturbances: int = 1
    ticks: int = 2
    disturbed: tuple[int, ...] = (0, 1)
    forgets: bool = False
    long_ttl: float = TIMING.long_ttl
    abandoned: int = 2
    comes_back: bool = False
    steps_down: bool = False
    ends: bool = False
    rash: bool = False
    strangers: bool = False
    strict: bool = True


class Link:
    """A contender's connection to ZooKeeper; words and not an enumeration, because they are compared so often."""

    UP = "up"
    SILENT = "silent"
    """Nothing is confirmed, and the contender has not noticed."""
    DOWN = "down"


class Answer(NamedTuple):
    names: tuple[str, ...] = ()
    error: type[StoreError] | None = None


class Call(NamedTuple):
    overdue: bool = False
    """It was sent in an earlier tick."""
    answer: Answer | None = None
    answered: int = 0
    """How many ticks ago it was executed."""
    unwritten: bool = False
    """It has changed something, and that may be forgotten."""

    @property
    def open(self) -> bool:
        """Whether the call may still be executed, now or once it is forgotten."""
        return self.answer is None or self.unwritten


class Check(NamedTuple):
    """A question to ZooKeeper whether a node is there."""

    token: str
    slow: bool = False
    present: bool | None = None


class Parts(NamedTuple):
    mind: Mind
    token: str
    """Names its session's node."""
    owed: bool = False
    """It has not yet taken notice of this tick."""
    fate: str = ""
    """How it gets into the next tick, once that is settled."""
    slept: bool = False
    """It slept into this tick, and still does."""
    disturbed: bool = False
    """Its calls to the NameNode are, in this tick."""
    call: Call | None = None
    link: str = Link.UP
    alive: bool = True
    """Whether ZooKeeper's servers hold its session."""
    confirmed: int = 0
    """How many ticks ago its session was confirmed."""
    check: Check | None = None
    node: bool = True
    """Whether its session's node is there, as long as the session lives."""
    asks: str = ""
    """The token whose process it has asked whether it lives."""
    watches: bool = False
    """It is told when the other's node goes."""
    nudged: bool = False
    ended: str = ""
    """Its process has ended: the session id that it had, or had tried, last."""
    bereft: bool = False
    """It was told that the other's process has ended."""

    @property
    def connected(self) -> bool:
        return self.link is Link.UP and self.alive

    @property
    def may_expire(self) -> bool:
        """Whether ZooKeeper may end the contender's session now."""
        return self.alive and self.confirmed >= TRUSTED_TICKS


class Action(NamedTuple):
    kind: str
    side: int = -1
    which: int = 0
    cost: int = 0
    """How many disturbances begin with it."""


@dataclass(eq=False, slots=True)
class Store:
    """The contents of the NameNode. Kept once for each content, so it is compared by identity."""

    directory: LeaderDirectory
    lease: Lease
    names: Names
    home: str
    """Path of the leader directory."""
    entry: str
    """Path of the lease."""


@dataclass(eq=False, slots=True)
class Side:
    """A contender's parts. Kept once for each content, with its reactions, so it is compared by identity."""

    parts: Parts
    mind: Mind
    names: "SideNames"
    actions: tuple[Action, ...]
    alone: bool
    """Whether nothing that it may do now touches what the other may touch."""
    after: dict[object, "Effect"] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class SideNames:
    """The names that occur on a side, and those that it only remembers. Kept once, so compared by identity."""

    used: Names
    remembered: frozenset[str]
    answer: tuple[str, ...]


class Effect(NamedTuple):
    """The next state of a side, and its effect on everything else."""

    side: Side
    granted: LeaderDirectory | None = None
    store: Store | None = None
    written: bool = False
    """Whether nothing of what was executed can be forgotten any more."""
    abandoned: Rename | None = None
    commands: tuple[Command, ...] = ()
    """The contender's acts, for the timeline."""


class State(NamedTuple):
    store: Store
    durable: Store
    """The written state: the NameNode goes back to it if it forgets."""
    granted: bool
    """Whether somebody was granted the leadership that the leader directory stands for, as it is written."""
    sides: tuple[Side, Side]
    abandoned: tuple[Rename, ...] = ()
