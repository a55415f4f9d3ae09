"""Clusters: a job's replica elsewhere, while its replicator dies, and when the job's whole cluster is lost."""

import json
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from ha.drill.asking import ASK_S, HA, PATIENT, asked, check_words, runs_of_late_contender
from ha.drill.drill import Expected, drill
from ha.drill.environment import Ability, DrillError, Environment, Member
from ha.drill.fixture import Fixture
from ha.drill.ha_provider import HYBRID
from store.clock import now

SERVERS = ("zookeeper", "journalnode", "namenode", "datanode")
ALONE: Mapping[str, str] = {"HA_HISTORY": "", "HA_ZOOKEEPER": ""}
"""Settings of work beside the job: it is not part of the job's history, and no reader looks it up."""

BEFORE = 5  # batches in the replica before the cluster is lost
TRIES = 10  # looks at a replica until one is answered

KILLS = 12
ALIVE_S = 2.0  # for so long at most a replicator lives after its first round: some rounds

START_S = 240.0


def _replicating(fixture: Fixture, there: str, name: str) -> Member:
    command = [*HA, "replica", "run", fixture.job.name, "--to", there, "--interval", "0.3"]
    return fixture.beside(name, command, ALONE)


def _promote(fixture: Fixture, there: str, *flags: str) -> list[str]:
    return ["replica", "promote", fixture.job.name, "--files", there, "--zookeeper", "", *flags]


def _has(fixture: Fixture, there: str) -> dict[str, int]:
    """Return what the replica can be promoted to: the batch of each query."""
    for left in reversed(range(TRIES)):
        try:
            return {
                each["query"]: each["batch"]
                for each in asked(fixture, *_promote(fixture, there, "--dry-run"))["queries"]
            }
        except DrillError:  # another leader of the replica has just begun, or the store is slow
            if not left:
                raise
    raise AssertionError


def _run_there(fixture: Fixture, output: str, variables: Mapping[str, str]) -> Member:
    """Run the query that counts all words from the files, where the job was promoted."""
    job = fixture.job
    program = ["python", job.driver, "--input", job.input, "--output", output, "--only", "totals"]
    return fixture.beside("there", [*HA, "run", job.name, "--contender", "there", "--", *program], variables)


def _until_it_moves(fixture: Fixture, replicator: Member) -> None:
    """Wait until a replicator has taken over the lease of a killed one, and made its first round."""
    fixture.wait_for("a round", lambda: " is at batch " in replicator.log(), START_S)


# --- cluster-lost


def _batches(fixture: Fixture, second: Environment, output: str) -> int:
    try:
        return int(json.loads(second.call([*HYBRID.results, output], fixture.folder, ASK_S))["batches"])
    except DrillError:  # the first one has not made the directory yet
        return 0


# A later contender at the old side has to lead for a moment, to see that there is nothing to do.
@drill("clusters", Expected((0, 3), blind=True), Ability.CLUSTER, setup=replace(PATIENT, clusters=2))
def cluster_lost(fixture: Fixture) -> None:
    """All servers of the job's cluster are killed; its replica at another one is promoted, and counts to the end."""
    first, second, job = fixture.environment, fixture.second, fixture.job
    assert second is not None, "the setup asks for it"
    here, there = first.variables()["HA_FILES"], second.variables()["HA_FILES"]
    replicator = _replicating(fixture, there, "replicator")
    _until_it_moves(fixture, replicator)
    fixture.wait_for("more batches in it", lambda: _has(fixture, there).get("totals", -1) >= BEFORE, START_S)
    with fixture.fault("all servers and hosts of the cluster are killed; the replica is promoted at the other one"):
        fixture.stop()
        for server in [each for kind in SERVERS for each in first.cluster.names(kind)]:
            first.cluster.kill(server)
        lost = now()
        output = f"{second.scratch}/{job.name}/output"
        command = [*HA, *_promote(fixture, there, "--yes", "--json")]
        promoted = json.loads(second.call(command, fixture.folder, START_S))
        fixture.measures["promoted_seconds"] = round(now() - lost, 3)
        run = _run_there(fixture, output, {**second.variables(), "HA_HISTORY": ""})
        totals = f"{output}/totals"
        fixture.wait_for("a batch at the other side", lambda: _batches(fixture, second, totals) > 0, START_S)
        fixture.measures["rto_seconds"] = round(now() - lost, 3)
        batches = {each["query"]: each["batch"] for each in promoted["queries"]}
        fixture.check("each query is promoted", set(batches) == {"words", "counts", "totals"}, f"{batches}")
        first.up(fixture.say)
    _check_fenced(fixture, here, there)
    fixture.finish()
    fixture.await_end(run, START_S)
    fixture.outcomes = [totals]


def _check_fenced(fixture: Fixture, here: str, there: str) -> None:
    """The old side is back: it is told, and a contender there runs nothing."""
    told = ("--files", there, "--old-files", here, "--yes")
    asked(fixture, "replica", "promote", fixture.job.name, *told, seconds=START_S)
    runs = runs_of_late_contender(fixture)
    fixture.check("the old side is fenced", not runs, f"a contender there has started its command {runs} times")


# --- replicate-under-kills


@drill("clusters", setup=PATIENT)
def replicate_under_kills(fixture: Fixture) -> None:
    """The process that replicates the job is killed 12 times; the replica is promotable each time."""
    there = f"{fixture.environment.variables()['HA_FILES'].rsplit('/', 1)[0]}/replicas"
    once = [*HA, "replica", "run", fixture.job.name, "--to", there, "--once"]
    fixture.let("replicated-first", once, START_S, ALONE)
    random, seen, back = Random(0), _has(fixture, there), 0  # noqa: S311  # drawn points, not secrets
    first = dict(seen)
    with fixture.fault(f"the replicator is killed {KILLS} times, at drawn moments"):
        for number in range(KILLS):
            replicator = _replicating(fixture, there, f"replicator-{number}")
            _until_it_moves(fixture, replicator)
            fixture.run_for(random.uniform(0, ALIVE_S))
            replicator.kill()
            found = _has(fixture, there)
            back += any(found.get(query, -1) < batch for query, batch in seen.items())
            seen = found
    promotable = not back and all(seen[query] > batch for query, batch in first.items())
    fixture.check("promotable each time, and never to less", promotable, f"{KILLS} kills; from {first} to {seen}")
    fixture.let("replicated-last", once, START_S, ALONE)
    asked(fixture, "checkpoint", "verify", f"{fixture.job.name}.replica", "--files", there, seconds=START_S)
    asked(fixture, *_promote(fixture, there, "--force", "--yes"), seconds=START_S)
    output = f"{fixture.job.directory}/there"
    run = _run_there(fixture, output, {**ALONE, "HA_FILES": there})
    fixture.finish()
    fixture.await_end(run, START_S)
    check_words(fixture, "a job started from the replica counts every word once", f"{output}/totals", f"{seen}")
