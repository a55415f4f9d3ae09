"""Benchmark of scale: requests of 50,000 jobs, 15,000 hosts and a million readers, from counted costs and a model."""

from dataclasses import asdict, replace

from benchmarks.context import Context
from benchmarks.drawing import curves
from benchmarks.result import Picture, Result, at_most
from benchmarks.scale.costs import OUTAGE, Costs, budgets, load
from benchmarks.scale.model import (
    BEFORE,
    Asked,
    Fleet,
    Load,
    Loads,
    Work,
    batches,
    looked_for,
    outage,
    outputs,
    replication,
    requests,
    steady,
    storm,
)

TITLE = "What 50,000 jobs, 15,000 hosts and 1,000,000 readers ask of the stores"
COLUMNS = (
    *("situation", "jobs a host asks about", "jobs a process has"),
    *(f"{store}, {what} /s" for store in ("NameNode", "ZooKeeper") for what in ("mean", "peak")),
)
SHARES = (0.10,)
FLEETS = (Fleet(), Fleet(jobs_per_host=100), Fleet(jobs_per_contender=100))
"""Assumed jobs per process, and the alternative that the figures show as well."""

SHARED_AT_MOST = 29_000
"""Requests a second to ZooKeeper in steady state: a tenth of those without shared sessions when these were made."""

NAMENODE_AT_MOST = 15_000
"""Requests a second to the NameNode in steady state, without batches: as many as when this was written."""

WORK = Work()  # Assumed

Row = tuple[str | float | int, ...]


def run(context: Context) -> Result:
    """Compute the figures; this starts no server, and takes a second or two."""
    costs = load()
    context.say("scale: adding up the counted costs")
    rows = [row for fleet in FLEETS for row in _ours(fleet, costs)]
    rows += _working(FLEETS[0], costs)
    shared = steady(replace(FLEETS[0], shares_sessions=True), costs)[1]
    every = "with one session a host, 50,000 jobs with a process each cost ZooKeeper at rest, a second"
    readers = "the same jobs and their readers cost the NameNode at rest, a second"
    return Result(
        columns=COLUMNS,
        rows=tuple(rows),
        targets=(
            *budgets(costs),
            at_most(every, SHARED_AT_MOST, round(shared), "requests"),
            at_most(readers, NAMENODE_AT_MOST, round(steady(FLEETS[0], costs)[0]), "requests"),
        ),
        notes=_notes(FLEETS[0], costs),
        pictures=_pictures(FLEETS[0], costs),
        raw={"fleets": list(map(asdict, FLEETS)), "work": asdict(WORK), "outage": asdict(outage(FLEETS[0], costs))},
    )


def _ours(fleet: Fleet, costs: Costs) -> list[Row]:
    given = (fleet.jobs_per_host, fleet.jobs_per_contender)
    namenode, zookeeper = (round(each) for each in steady(fleet, costs))
    rows: list[Row] = [("steady", *given, namenode, namenode, zookeeper, zookeeper)]
    namenode, zookeeper = (round(each) for each in steady(replace(fleet, shares_sessions=True), costs))
    rows.append(("steady, one session a host", *given, namenode, namenode, zookeeper, zookeeper))
    rows += [(f"{share:.0%} of the leaders die", *given, *_figures(storm(fleet, costs, share))) for share in SHARES]
    rows.append((f"{OUTAGE} s without ZooKeeper", *given, *_figures(outage(fleet, costs))))
    return rows


def _working(fleet: Fleet, costs: Costs) -> list[Row]:
    """Rows for what the jobs do, added to the steady state, and for three parts that are not in that sum."""
    of = costs.work
    parts = {
        "checkpoints of all batches": batches(fleet, WORK, of),
        "outputs of all batches": outputs(fleet, WORK, of.output),
        "operators' requests": requests(fleet, WORK, of),
        "replication, where the jobs are": replication(fleet, WORK, of.source),
    }
    rest = steady(replace(fleet, shares_sessions=True), costs)
    total = tuple(sum(each) for each in zip(rest, *parts.values(), strict=True))
    beside = {
        "checkpoints, if sidecars look for batches": looked_for(fleet, WORK, of),
        'outputs, by format("ha")': outputs(fleet, WORK, of.sink),
        "replication, where the replicas are": replication(fleet, WORK, of.replica),
    }
    return [
        *(_alike(f"working: {name}", asked) for name, asked in parts.items()),
        _alike("steady and working, one session a host", (total[0], total[1])),
        *(_alike(f"not in that: {name}", asked) for name, asked in beside.items()),
    ]


def _alike(situation: str, asked: Asked) -> Row:
    """Return a row in which no second differs from another."""
    namenode, zookeeper = (round(each) for each in asked)
    fleet = FLEETS[0]
    return (situation, fleet.jobs_per_host, fleet.jobs_per_contender, namenode, namenode, zookeeper, zookeeper)


def _figures(loads: Loads) -> tuple[int, ...]:
    return tuple(figure for load in (loads.namenode, loads.zookeeper) for figure in _mean_and_peak(load))


def _mean_and_peak(load: Load) -> tuple[int, int]:
    """Return mean and peak from the event to the end of the series."""
    since = load[BEFORE:]
    return round(sum(since) / len(since)), round(max(since))


def _notes(fleet: Fleet, costs: Costs) -> tuple[str, ...]:
    hosts = f"{fleet.hosts:,} hosts with an agent each, and {fleet.readers:,} readers of one job each"
    return (
        f"Assumed: {fleet.jobs:,} jobs with a leader and a standby each, {hosts}. Default settings.",
        "The library's own code ran in virtual time to count the costs (benchmarks/scale/costs.json).",
        "The model has no overload: the figures are the requests sent to a store, not the requests served.",
        "A sync counts as one request to ZooKeeper, and so does each new connection; heartbeats do not.",
        _assumed(fleet),
        "Requests to ZooKeeper are those to all its servers together, but every sync and write goes to one of them.",
        "With one session a host, contenders are spread over all hosts, and each host's agent confirms one session.",
        f"An agent learns of the next leader {costs.heard:g} s after the death of the last one, on average.",
    )


def _assumed(fleet: Fleet) -> str:
    return (
        f"Working: each job does a batch every {WORK.every:g} s, with an output of {WORK.partitions} partitions, and "
        f"answers {WORK.requests:g} request a day within {WORK.answered:g} s; {fleet.jobs * WORK.replicated:,.0f} are "
        f"replicated, each with {WORK.directories} state stores, every {WORK.round:g} s. Spark's own requests "
        "are not in it."
    )


def _pictures(fleet: Fleet, costs: Costs) -> tuple[Picture, ...]:
    without, worst = outage(fleet, costs), storm(fleet, costs, SHARES[-1])
    without_readers = outage(replace(fleet, hosts=0), costs).namenode
    hundred = outage(replace(fleet, jobs_per_contender=100), costs).zookeeper
    away = f"while ZooKeeper is away for {OUTAGE} s"
    series = {
        "outage-namenode": (f"the NameNode {away}", {"all": without.namenode, "without readers": without_readers}),
        "outage-zookeeper": (
            f"ZooKeeper {away}",
            {"a process for each job": without.zookeeper, "a process for 100 jobs": hundred},
        ),
        "storm-namenode": (f"the NameNode when {SHARES[-1]:.0%} of all leaders die", {"all": worst.namenode}),
    }
    return tuple(
        Picture(name, f"Requests to {what}", curves(f"Requests to {what}", "requests a second", lines, BEFORE))
        for name, (what, lines) in series.items()
    )
