"""Plan: the faults of one run, drawn from a seed. A plan can be read, shrunk and kept as a regression test."""

from dataclasses import dataclass, field, replace

from ha.config.leadership_settings import FRESHNESSES_PER_AUDIT
from leader.timing import Timing

AGENT = "r0"
"""The reader that is its host's agent, if there is one."""

UNSEAT = ("crash", "pause", "isolate", "resign")
"""What ends a leadership."""

TIMINGS = (
    {"short_ttl": 10.0, "long_ttl": 20.0, "session_timeout": 6.0, "hand_over": 1.0, "drift": 0.01},
    {"short_ttl": 4.0, "long_ttl": 14.0, "session_timeout": 10.0, "hand_over": 0.5, "drift": 0.01},
    {"short_ttl": 3.0, "long_ttl": 30.0, "session_timeout": 4.0, "hand_over": 2.0, "drift": 0.02, "call_timeout": 0.4},
    {"short_ttl": 12.0, "long_ttl": 16.0, "session_timeout": 5.0, "hand_over": 1.0, "drift": 0.05, "call_timeout": 0.5},
)


@dataclass(frozen=True)
class Step:
    """One disturbance of the system.

    Attributes:
        at: seconds after the start.
        kind: the kind of disturbance; a method of :class:`tests.system.simulation.hands.Hands`.
        target: the host or server; empty for all.
        seconds: the duration.
        how: further details.
    """

    at: float
    kind: str
    target: str = ""
    seconds: float = 0.0
    how: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The plan of one run.

    Attributes:
        seed: of all random draws during the run.
        calm: whether ZooKeeper alone is disturbed: then no leader may change and no lookup may fail.
        seconds: time until everything heals.
        timing: all durations.
        rates: speed of each contender's clock.
        readers: number of readers.
        patience: seconds that lookups of each reader take at most; lookups of each length follow one another.
        agent: whether they are processes of one host, and the first of them is its agent.
        servers: number of ZooKeeper servers; 0 for a system without ZooKeeper.
        tick: ZooKeeper's, in seconds.
        audit: of the readers, in seconds.
        jitter: greatest random delay of a request to the file system, in seconds.
        stubborn: whether drivers go on when they are told to stop, until they are refused.
        jobs: number of jobs that every contender contends for.
        republishes: whether leaders change their endpoints now and then.
        end: last action after the healing: ``nothing``, ``crash`` of the leader, ``crash and asked`` by an operator who
            asks again and again, ``outage`` of ZooKeeper and a crash in it, or a request to ``hand over`` to a
            standby, which sleeps in every other plan.
        suspicion: whether contenders watch each other's processes.
        hosts_die: whether a process that crashes takes its host along.
        adopt_within: seconds for which a command outlives its sidecar.
        lenders: the holder of the host's session from which each contender borrows, by name; empty for none.
        misled: contenders whose published address leads to another host.
        hangs: whether a driver hangs that is told to stop by a certain time; no other does before it has ended.
        operated: whether leaders look for what operators ask of them.
        attempts: after so many failures of the command in a row the job is given up; 0: leaders run no command.
        progress: share of the commands that complete a batch before they fail.
        store: the name of a store that lies, which is tried before anybody contends; empty for one that does not.
        unruly: whether clocks err by more than the bound: then only the fence holds, and S1 is not judged.
        steps: in order.
    """

    seed: int
    calm: bool = False
    seconds: float = 60.0
    timing: Timing = field(default_factory=lambda: Timing(**TIMINGS[0]))
    rates: tuple[float, ...] = (1.0, 1.0)
    readers: int = 1
    patience: tuple[float, ...] = (2.0,)
    agent: bool = False
    servers: int = 1
    tick: float = 0.0
    audit: float = 10.0
    jitter: float = 0.0
    stubborn: bool = False
    jobs: int = 1
    republishes: bool = False
    end: str = "nothing"
    suspicion: bool = False
    hosts_die: bool = False
    adopt_within: float = 0.0
    lenders: tuple[str, ...] = ()
    misled: tuple[str, ...] = ()
    hangs: bool = False
    operated: bool = False
    attempts: int = 0
    progress: float = 0.0
    unruly: bool = False
    store: str = ""
    steps: tuple[Step, ...] = ()

    @property
    def fresh(self) -> float:
        """Seconds for which a snapshot may be used."""
        return self.audit / FRESHNESSES_PER_AUDIT

    @property
    def contenders(self) -> list[str]:
        """The names of the contenders."""
        return [chr(ord("a") + number) for number in range(len(self.rates))]

    @property
    def holders(self) -> list[str]:
        """The names of the processes that hold the sessions of their hosts."""
        return sorted({each for each in self.lenders if each})

    def lender_of(self, contender: str) -> str:
        """The holder from which a contender borrows; empty if it has a session of its own."""
        return dict(zip(self.contenders, self.lenders, strict=False)).get(contender, "")

    def without(self, steps: set[int]) -> "Plan":
        """Return the same plan without some of its steps."""
        return replace(self, steps=tuple(step for number, step in enumerate(self.steps) if number not in steps))
