"""Benchmark of a process that leads a thousand jobs on one ZooKeeper session, and of a second that takes them over."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from statistics import median
from threading import Event

from benchmarks.context import Context, servers
from benchmarks.drawing import shares
from benchmarks.result import Picture, Result, at_most, table
from benchmarks.thousand_jobs.counters import namenode, zookeeper
from benchmarks.thousand_jobs.daemon import Daemon, end_all
from store.clock import now

TITLE = "One process that leads 1,000 jobs"
JOBS, QUICK_JOBS = 1000, 100
SETTLING = 45.0
"""Seconds after the last grant: by then every lease is attested, and polled at the slow interval, once already."""

INTERVAL, QUICK_INTERVAL = 40.0, 10.0
"""Seconds of observation of a process at rest: the longer one covers two renewals of each lease."""

ROUNDS = 5
TAKEOVERS = 3
WITHIN = 180.0  # Seconds for a thousand grants; more means that something is wrong
MEGABYTES, PERCENT = 400.0, 30.0

_numbers = count(1)


@dataclass(frozen=True)
class Rest:
    """Measurements of a process at rest, in one interval."""

    memory: float  # megabytes, resident
    threads: int  # their number
    share: float  # of one core, in percent
    namenode: Mapping[str, float]  # requests a second, by method, of all processes
    zookeeper: float  # packets a second, of all processes
    grants: int  # jobs whose leader changed meanwhile; if any, the machine was too busy and the process not at rest


Takeover = Sequence[float]  # seconds from the kill of a process until the grant of each of its jobs, in order


def run(context: Context) -> Result:
    """Run the benchmark; it takes about a quarter of an hour."""
    rests: dict[str, list[Rest]] = {}
    with servers(context) as sandbox:
        given = sandbox.environment()
        for kind, snapshots in (("leader, without an agent", "off"), ("leader", "")):
            scene = Scene(context, given, kind, snapshots)
            try:
                context.say(f"{kind}: {scene.jobs} jobs")
                scene.start().granted(WITHIN)
                rests[kind] = scene.rests()
                if not snapshots:
                    scene.start()
                    rests["standby (requests: with its leader)"] = scene.rests(of=1)
                    takeovers = scene.takeovers()
            finally:
                scene.end()
    return report(rests, takeovers, QUICK_JOBS if context.quick else JOBS)


class Scene:
    """Processes that contend for the same jobs."""

    def __init__(self, context: Context, given: Mapping[str, str], kind: str, snapshots: str) -> None:
        self._context, self._given = context, given
        self.jobs = QUICK_JOBS if context.quick else JOBS
        prefix = f"{kind.partition(',')[0]}-{'without' if snapshots else 'with'}-agent"
        self._names = [f"{prefix}-{number:04d}" for number in range(self.jobs)]
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HA_")},
            **given,
            "HA_SNAPSHOTS": snapshots or str(context.folder / "snapshots"),
        }
        self._processes: list[Daemon] = []

    def start(self) -> Daemon:
        name = f"process-{next(_numbers)}"
        self._processes.append(Daemon(name, self._names, self._environment, self._context.folder))
        return self._processes[-1]

    def rests(self, of: int = 0) -> list[Rest]:
        """Measure a process at rest repeatedly; ``of`` is its position in the order of starts."""
        Event().wait(SETTLING)
        return [self._rest(self._processes[of]) for _ in range(self._context.repeats(ROUNDS))]

    def _rest(self, process: Daemon) -> Rest:
        namenodes, zookeepers = self._given["HA_SANDBOX_WEBHDFS"], self._given["HA_ZOOKEEPER"]
        said = {each: each.said for each in self._processes}
        began, used, called, received = now(), process.processor(), namenode(namenodes), zookeeper(zookeepers)
        Event().wait(QUICK_INTERVAL if self._context.quick else INTERVAL)
        took = now() - began
        more = namenode(namenodes)
        more.subtract(called)
        rest = Rest(
            memory=process.memory(),
            threads=process.threads(),
            share=100 * (process.processor() - used) / took,
            namenode={method: number / took for method, number in more.items() if number},
            zookeeper=(zookeeper(zookeepers) - received) / took,
            grants=sum(each.grants(since) for each, since in said.items()),
        )
        self._context.say(f"{process.name}: {rest.memory:.0f} MB, {rest.share:.1f} % of a core")
        return rest

    def takeovers(self) -> list[Takeover]:
        """Kill the leading process and time the standby's takeover; repeat with a new standby."""
        found: list[Takeover] = []
        for number in range(self._context.repeats(TAKEOVERS)):
            if number:
                self.start()
                Event().wait(SETTLING)
            leader, standby = self._processes
            early, said, began = standby.grants(), standby.said, now()
            leader.end()
            self._processes.remove(leader)
            if early:
                self._context.say(f"{standby.name} leads {early} jobs already: no takeover to measure")
                Event().wait(SETTLING)
                continue
            grants = standby.granted(WITHIN, said)
            found.append([at - began for at in grants])
            self._context.say(f"{standby.name}: the last of {len(grants)} jobs after {grants[-1] - began:.1f} s")
        return found

    def end(self) -> None:
        end_all(self._processes)
        self._processes.clear()


# --- summary


def report(rests: Mapping[str, Sequence[Rest]], takeovers: Sequence[Takeover], jobs: int) -> Result:
    """Summarise the measurements; memory is the maximum, the rest are medians."""
    leader = rests["leader"]
    busy = median(rest.share for rest in leader)
    title, of = f"Grants after the process that led {jobs:,} jobs was killed", f"a process that leads {jobs:,} jobs"
    series = {f"round {number}": list(each) for number, each in enumerate(takeovers, 1)}
    return Result(
        *table(
            {
                "process": str,
                "memory, MB": lambda kind: _memory(rests[kind]),
                "threads": lambda kind: max(rest.threads for rest in rests[kind]),
                "processor, % of a core": lambda kind: median(rest.share for rest in rests[kind]),
                "NameNode, requests/s": lambda kind: median(sum(rest.namenode.values()) for rest in rests[kind]),
                "ZooKeeper, packets/s": lambda kind: median(rest.zookeeper for rest in rests[kind]),
            },
            rests,
        ),
        targets=(
            at_most(f"memory of {of}", MEGABYTES, _memory(leader), "MB"),
            at_most(f"processor time of {of}, at rest", PERCENT, busy, "% of one core"),
        ),
        notes=(
            *_disturbed(rests),
            f"SIGKILL of the leading process, session timeout 10 s: {_sentence(takeovers, jobs)}",
            "The servers count the requests of all processes; ZooKeeper's packets include heartbeats.",
            "Default settings. The agent keeps jobs warm only if a reader asks for them, and here no reader does.",
        ),
        pictures=(Picture("takeover", f"One process takes over {jobs:,} jobs", shares(title, "s", series)),),
        raw={
            "rests": {kind: [asdict(rest) for rest in found] for kind, found in rests.items()},
            "takeovers": [list(each) for each in takeovers],
        },
    )


def _disturbed(rests: Mapping[str, Sequence[Rest]]) -> list[str]:
    moved = {kind: sum(rest.grants for rest in found) for kind, found in rests.items()}
    return [f"NOT AT REST: {kind}: {jobs} jobs changed their leader." for kind, jobs in moved.items() if jobs]


def _sentence(takeovers: Sequence[Takeover], jobs: int) -> str:
    if not takeovers:
        return "NOT MEASURED: the machine was too busy for the leader."
    first, middle, last = (median(pick(each) for each in takeovers) for pick in (min, median, max))
    when = f"the first of {jobs:,} jobs after {first:.1f} s, half of them after {middle:.1f} s, all after {last:.1f} s"
    return f"the next one leads {when} (medians of {len(takeovers)})."


def _memory(found: Sequence[Rest]) -> float:
    return max(rest.memory for rest in found)
