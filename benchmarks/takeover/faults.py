"""What happens to the leading process, at a moment that is written down."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event

from benchmarks.takeover.pair import Contender
from ha.sandbox import Sandbox
from store.clock import now

AWAY_BEFORE = 3.0
"""Seconds from the beginning of an outage of ZooKeeper until the leaders are killed: all clients know by then."""

AWAY = 30.0
"""Seconds that ZooKeeper is away in all, or a little more: a server takes its time to start."""


@dataclass(frozen=True)
class Fault:
    """One kind.

    Attributes:
        key: one word.
        name: in tables.
        strike: does it to a leading process.
        around: what else is the matter meanwhile.
        hosts: whether contenders must be on hosts that can be lost.
    """

    key: str
    name: str
    strike: Callable[[Contender], None]
    around: Callable[[Sandbox], AbstractContextManager[None]] = lambda _: nullcontext()
    hosts: bool = False


def _lose(contender: Contender) -> None:
    assert contender.host is not None, "a pair of such a fault has hosts"
    contender.host.lose()


@contextmanager
def _without_zookeeper(sandbox: Sandbox) -> Iterator[None]:
    servers = [name for name in sandbox.processes if name.startswith("zookeeper")]
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
FAULTS = (KILL, LOSS, RESIGN, OUTAGE)
