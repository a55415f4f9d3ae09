"""Faults of the leading process, each at a recorded moment."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event

from benchmarks.takeover.pair import Contender
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
