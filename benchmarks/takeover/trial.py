"""Faults of the leading process, and rounds of one fault: pairs of each system side by side, under like conditions."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event

from benchmarks.takeover.pair import HERE, WITH_AGENT, Contender, Pair
from benchmarks.takeover.readers import Reader
from ha.sandbox import Sandbox
from store.clock import now

AWAY_BEFORE = 3.0
"""Seconds from the start of an outage of ZooKeeper until the leaders are killed: all clients know of it by then."""

AWAY = 30.0  # Seconds for which ZooKeeper is down, or a little more: a server takes some time to start


YOUNG_S = 3.0  # Seconds: less than the session of a new leader takes to settle


@dataclass(frozen=True)
class Fault:
    """One kind of fault."""

    key: str  # one word
    name: str  # in tables
    hit: Callable[[Contender], None]  # applies the fault to a leading process
    # context manager for a second fault during the round
    around: Callable[[Sandbox], AbstractContextManager[None]] = lambda _: nullcontext()
    hosts: bool = False  # whether contenders must run on hosts that can be lost
    # seconds for which the leader has led when it is hit; None for as long as everything takes to settle
    age: float | None = None


def _lose(contender: Contender) -> None:
    assert contender.host is not None, "a pair for this fault has hosts"
    contender.host.lose()


@contextmanager
def _without_zookeeper(sandbox: Sandbox) -> Iterator[None]:
    servers = sandbox.names("zookeeper")
    began = now()
    for name in servers:
        sandbox.kill(name)
    try:
        Event().wait(AWAY_BEFORE)
        yield
        Event().wait(max(0.0, began + AWAY - now()))
    finally:
        for name in servers:
            sandbox.start(name)
        for name in servers:
            sandbox.wait_ready(name)


KILL = Fault("kill", "SIGKILL of the leading process", Contender.end)
LOSS = Fault("loss", "host lost", _lose, hosts=True)
RESIGN = Fault("end", "orderly end", Contender.resign)
OUTAGE = Fault("outage", f"SIGKILL, ZooKeeper away for {AWAY:g} s", Contender.end, _without_zookeeper)
YOUNG = Fault("young", f"SIGKILL of a leader that is {YOUNG_S:g} s old", Contender.end, age=YOUNG_S)
FAULTS = (KILL, LOSS, RESIGN, OUTAGE, YOUNG)


STARTING = 3  # Contenders that start at the same time; more would only slow each other down
APART = 0.4  # Seconds between two faults of a round, so that no takeover delays another
LOOK = 0.2  # Seconds between two reads of the contenders' output
NEVER = math.inf


@dataclass(frozen=True)
class Takeover:
    """One takeover."""

    system: str  # name of the system, with the kind of its reader if there are several
    fault: str  # name of the fault
    session_timeout: float  # seconds
    granted: float  # seconds from the fault until the standby was granted the leadership; infinite if it was not
    found: float  # seconds from the fault until a reader was told of the new leader; likewise

    @property
    def seconds(self) -> float:
        """Seconds from the fault until the next leader knew that it led and could be found."""
        return max(self.granted, self.found)


@dataclass(frozen=True)
class Trial:
    """One fault under one session timeout, ready for rounds."""

    sandbox: Sandbox  # the servers
    fault: Fault  # the fault of each leader
    session_timeout: float  # seconds
    readers: Mapping[str, Reader]  # by system; for this project perhaps also one :data:`WITH_AGENT`

    @property
    def settling(self) -> float:
        """Seconds after which ZooKeeper attests the leases of new contenders, at the latest."""
        return self.session_timeout / 2 + 4.0

    @property
    def patience(self) -> float:
        """Longest wait for takeovers, in seconds."""
        return 3 * self.session_timeout + 20.0

    def round(self, pairs: Sequence[Pair], say: Callable[[str], None]) -> list[Takeover]:
        """Apply the fault to each pair's leader once."""
        with ThreadPoolExecutor(STARTING) as starters:
            list(starters.map(Pair.fill, pairs))
        Event().wait(self.settling)
        struck = []
        with self.fault.around(self.sandbox):
            for pair in pairs:
                if self.fault.age is not None:
                    self._grow(pair, self.fault.age)
                struck += [(pair, pair.standby, now(), reader) for reader in self.readers_of(pair)]
                self.fault.hit(pair.leader)
                Event().wait(APART)
        found = self._all(struck)
        for pair in pairs:
            pair.replace()
        say(f"{self.fault.name}, {self.session_timeout:g} s: {sum(map(_over, found))} of {len(found)} taken over")
        return found

    def _grow(self, pair: Pair, age: float) -> None:
        pair.renew()
        granted = pair.leader.granted()
        assert granted is not None, "a pair that was renewed has a leader"
        Event().wait(max(0.0, granted + age - now()))

    def readers_of(self, pair: Pair) -> list[str]:
        """Return the names of the readers that follow this pair."""
        name = pair.system.name
        return [name, *([WITH_AGENT] if name == HERE.name and WITH_AGENT in self.readers else [])]

    def _all(self, struck: Sequence[tuple[Pair, Contender, float, str]]) -> list[Takeover]:
        end = now() + self.patience
        found = [self._of(*each) for each in struck]
        while not all(map(_over, found)) and now() < end:
            Event().wait(LOOK)
            found = [each if _over(each) else self._of(*what) for each, what in zip(found, struck, strict=True)]
        return found

    def _of(self, pair: Pair, standby: Contender, at: float, reader: str) -> Takeover:
        granted, found = standby.granted(), self.readers[reader].found(pair.job, standby.name)
        after = [when - at if when is not None else NEVER for when in (granted, found)]
        return Takeover(reader, self.fault.name, self.session_timeout, *after)


def _over(takeover: Takeover) -> bool:
    return takeover.seconds < NEVER
