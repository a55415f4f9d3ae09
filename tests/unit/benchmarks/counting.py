"""Counter of the library's costs for the stores: its code runs in virtual time, each request to a store is recorded.

The contender, the reader and all below them are production's; the stores are the simulator's. One call of a files
driver is one request to the NameNode (see :class:`store.hdfs.HdfsFiles`; tests/system/integration/test_costs.py has the
NameNode itself count). An operation of ZooKeeper is what it puts on the wire: a read with a watch is three requests if
there is no node.

    python -m tests.unit.benchmarks.counting > benchmarks/scale/costs.json    # after a change of the library

Counts with one job and with two separate the costs of a contender from those of each job. An agent costs only what its
jobs cost, except for its connection; it has its own random numbers, so it is counted alone.
"""

import re
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import msgspec

from benchmarks.scale.costs import (
    HEARTBEATS,
    KINDS,
    OUTAGE,
    ZOOKEEPER,
    Costs,
    Count,
    Part,
    Rate,
    Series,
    Sharing,
    WorkCosts,
)
from leader.election.events import Rename
from leader.layout import tree as job_tree
from leader.layout.names import newest
from leader.layout.znodes import Node, ReadNode, WriteNode, leader_path
from store.outcome import Outcome
from tests.system.simulation.blocking import Tasks
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.lending import Socket
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.wires import Wires
from tests.system.simulation.world import World
from tests.unit.benchmarks import counting_work
from tests.unit.benchmarks.requests import SETTINGS, Counted, CountedAgent, CountedContender, CountedHolder, Requests

SETTLED = 90.0
"""Seconds until the steady state: longer than every period of the protocol."""

STEADY = 600.0
"""Seconds for which the steady state is counted."""

TAKEOVER = 30
"""Seconds counted from a leader's death: by then the state is steady again, but for requests that come every 20 s."""

AFTERWARDS = 30
"""Seconds counted after an outage of ZooKeeper."""

RUNS = 10
"""Runs of each situation: the fault comes at as many moments of the longest period, evenly spread."""

PERIOD = 20.0
"""Seconds: interval of the renewals of a lease that ZooKeeper attests, and of an agent's audits."""

TICK = 2.0
"""Seconds: ZooKeeper's default."""

BEATS_AFTER = SETTINGS.leadership.session_timeout / 3 - 0.205
"""Seconds of silence, on average, after which kazoo sends a heartbeat: it draws 0.01 to 0.40 s that it is early."""

HEEDED = 60.0
"""Seconds for which is counted what comes of an operator's mark on a lease: the longest period of the protocol."""

CONNECTIONS = "zookeeper connections"
PARTS = ("leader", "standby", "agent")


class Scene:
    """A leader, a standby, and an agent of another host, for some jobs."""

    def __init__(self, jobs: int, seed: int, *, shared: bool = False) -> None:
        self.world = World(seed)
        self.files = Namespace()
        self.ensemble = Ensemble(self.world, tick=TICK, size=3)
        self.tasks = Tasks()
        names = [f"job-{number}" for number in range(jobs)]
        timing, wires = SETTINGS.leadership.timing, Wires(self.world)
        self.holder = CountedHolder(self.world, "holder", self.files, self.ensemble, timing)

        def contend(name: str) -> CountedContender:
            contender = CountedContender(
                self.world, name, self.files, self.ensemble, timing, wires, borrows=shared
            ).contend(names)
            if shared:
                Socket(contender, lambda: self.holder)
            return contender

        if shared:
            self.holder.start()
        self.leader = contend("leader")
        self.world.run(5)
        self.standby = contend("standby")
        self.agent = CountedAgent(self.world, "agent", self.files, self.ensemble, timing).ask(names, self.tasks)
        self.world.run(SETTLED - 5)
        assert all(self.leader.leads(name) for name in names), "the one that was there first leads"

    @property
    def requests(self) -> dict[str, Requests]:
        return {name: getattr(self, name).requests for name in PARTS}

    def forget(self) -> float:
        for each in (*self.requests.values(), self.holder.requests):
            each.sent.clear()
        return self.world.now


def shared(jobs: int) -> dict[str, dict[str, float]]:
    """Return the same if the contenders borrow their host's session; also of the holder, which lends to both."""
    scene = Scene(jobs, seed=0, shared=True)
    scene.forget()
    scene.world.run(STEADY)
    scene.tasks.end()
    assert scene.leader.contender.attested_by == scene.standby.contender.attested_by == "host", "they borrow"
    return {name: _rates(getattr(scene, name).requests, STEADY) for name in ("holder", *PARTS[:2])}


def _rates(requests: Requests, seconds: float) -> dict[str, float]:
    counted = Counter(kind for _, kind in requests.sent)
    beats = heartbeats([at for at, kind in requests.sent if kind in ZOOKEEPER])
    return {kind: counted[kind] * 60 / seconds for kind in KINDS} | {HEARTBEATS: 60 * beats}


def heartbeats(sent: list[float]) -> float:
    """Return how often a client beats in a second, by the times of its requests: each puts the next one off."""
    gaps = [later - sooner for sooner, later in pairwise(sent)]
    return sum(int(gap / BEATS_AFTER) for gap in gaps) / sum(gaps) if gaps else 1 / BEATS_AFTER


def _series(requests: Requests, began: float, seconds: int) -> dict[str, list[float]]:
    found = {kind: [0.0] * seconds for kind in KINDS}
    for at, kind in requests.sent:
        if began <= at < began + seconds:
            found[kind][int(at - began)] += 1
    return found


def steady(jobs: int) -> dict[str, dict[str, float]]:
    scene = Scene(jobs, seed=0)
    scene.forget()
    scene.world.run(STEADY)
    scene.tasks.end()
    return {name: _rates(requests, STEADY) for name, requests in scene.requests.items()}


@dataclass
class Takeover:
    """Requests in each second since the death, by part and kind; and when the agent had the next leader."""

    series: dict[str, dict[str, list[float]]]
    heard: float


def takeover(jobs: int, run: int) -> Takeover:
    scene = Scene(jobs, seed=run)
    scene.world.run(PERIOD * run / RUNS)
    began = scene.forget()
    scene.leader.lose()  # with its host: that is the slower way, and costs no less
    scene.agent.heard.clear()
    scene.world.run(TAKEOVER)
    scene.tasks.end()
    heard = min(at for at, _, epoch in scene.agent.heard if epoch > 1)
    return Takeover(
        {name: _series(requests, began, TAKEOVER) for name, requests in scene.requests.items()}, heard - began
    )


def outage(jobs: int, run: int) -> dict[str, dict[str, list[float]]]:
    scene = Scene(jobs, seed=run)
    scene.world.run(PERIOD * run / RUNS)
    began = scene.forget()
    scene.ensemble.stop()
    scene.world.run(OUTAGE)
    scene.ensemble.restart()
    scene.world.run(AFTERWARDS)
    scene.tasks.end()
    return {name: _series(requests, began, OUTAGE + AFTERWARDS) for name, requests in scene.requests.items()}


def told_to_look() -> dict[str, Count]:
    extra: dict[str, list[Count]] = {name: [] for name in PARTS}
    for run in range(RUNS):
        scene, path = Scene(1, seed=run, shared=True), leader_path("job-0")
        operator = Counted(scene.world, "operator", scene.files, scene.ensemble, SETTINGS.leadership.timing)
        operator.zookeeper.start()
        scene.world.run(5 + PERIOD * run / RUNS)
        scene.forget()
        counting_work.mark(scene.files, "job-0")

        def poke(found: Outcome[Node | None], operator: Counted = operator, path: str = path) -> None:
            node = found.value
            assert node is not None, "it leads"
            operator.run_node(WriteNode(path, node.data, node.version), lambda _: None, lambda: None)

        operator.run_node(ReadNode(path, watch=False), poke, lambda: None)
        scene.world.run(HEEDED)
        scene.tasks.end()
        for name, requests in scene.requests.items():
            extra[name].append(Counter(kind for _, kind in requests.sent))
    usual = {**shared(1), "agent": steady(1)["agent"]}
    means = {name: counting_work.mean(counts) for name, counts in extra.items()}
    return {
        name: {kind: each for kind, value in means[name].items() if (each := round(value - usual[name][kind], 2))}
        for name in PARTS
    }


def looks() -> tuple[int, int]:
    """Return the requests of a read of HDFS that finds the same leader, and of one that finds another."""
    files, asked = Namespace(), Counter[str]()
    files.create_job("orders")

    class Driver:
        uri = "counted://"

        def list(self, path: str) -> list[object]:
            asked["lists"] += 1
            return [type("Entry", (), {"name": name}) for name in files.list(path)]

    known, _ = job_tree.read(Driver(), "orders")  # type: ignore[arg-type]
    asked.clear()
    job_tree.read(Driver(), "orders", known)  # type: ignore[arg-type]
    same = asked["lists"]
    present = newest(files.list("orders"))
    assert present is not None
    files.execute("orders", Rename(present.name, f"{present.epoch + 1:010d}-{present.session_id}"))
    job_tree.read(Driver(), "orders", known)  # type: ignore[arg-type]
    return same, asked["lists"] - same


def _apart(name: str, one: dict[str, float], two: dict[str, float]) -> tuple[Rate, Rate]:
    if name == "agent":
        return {}, _rate({kind: one[kind] for kind in KINDS})
    job = {kind: two[kind] - one[kind] for kind in KINDS}
    process = {kind: one[kind] - job[kind] for kind in KINDS}
    return _rate({**process, HEARTBEATS: one[HEARTBEATS]}), _rate(job)


def _rate(rates: dict[str, float]) -> Rate:
    return {kind: round(value, 2) + 0.0 for kind, value in rates.items() if round(value, 2)}


def _mean(runs: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    return {kind: [fmean(second) for second in zip(*(run[kind] for run in runs), strict=True)] for kind in KINDS}


def _differ(name: str, one: dict[str, list[float]], two: dict[str, list[float]]) -> tuple[Series, Series]:
    if name == "agent":
        connections = {CONNECTIONS: one[CONNECTIONS]}
        return _compact(connections), _compact({kind: one[kind] for kind in KINDS if kind != CONNECTIONS})
    job = {kind: [b - a for a, b in zip(one[kind], two[kind], strict=True)] for kind in KINDS}
    process = {kind: [a - b for a, b in zip(one[kind], job[kind], strict=True)] for kind in KINDS}
    return _compact(process), _compact(job)


def _compact(series: dict[str, list[float]]) -> Series:
    rounded = {kind: tuple(round(each, 2) + 0.0 for each in seconds) for kind, seconds in series.items()}
    return {kind: seconds for kind, seconds in rounded.items() if any(seconds)}


def count(work: WorkCosts) -> Costs:
    rates = {jobs: steady(jobs) for jobs in (1, 2)}
    deaths = {jobs: [takeover(jobs, run) for run in range(RUNS)] for jobs in (1, 2)}
    outages = {jobs: [outage(jobs, run) for run in range(RUNS)] for jobs in (1, 2)}
    parts = {}
    for name in PARTS:
        fallen = [_mean([each.series[name] for each in deaths[jobs]]) for jobs in (1, 2)]
        without = [_mean([each[name] for each in outages[jobs]]) for jobs in (1, 2)]
        parts[name] = Part(
            steady=_apart(name, rates[1][name], rates[2][name]),
            takeover=_differ(name, *fallen)[1] if name != "leader" else {},
            outage=_differ(name, *without),
        )
    borrowed = {jobs: shared(jobs) for jobs in (1, 2)}
    apart = {name: _apart(name, borrowed[1][name], borrowed[2][name]) for name in PARTS[:2]}
    sharing = Sharing(holder=_rate(borrowed[1]["holder"]), **apart)
    heard = round(fmean(each.heard for each in deaths[1]), 2)
    return Costs(**parts, shared=sharing, work=work, heard=heard, read_same=looks()[0], read_changed=looks()[1])


def written(costs: Costs) -> str:
    """Return the table in the file's format: JSON with one series a line."""
    text = msgspec.json.format(msgspec.json.encode(costs), indent=1).decode()
    return re.sub(r"\[[\s0-9.,-]+\]", lambda found: "".join(found[0].split()), text).replace(".0,", ",") + "\n"


if __name__ == "__main__":
    sys.stdout.write(written(count(counting_work.count(told_to_look))))
