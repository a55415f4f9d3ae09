"""People ask for something while things fail: upgrades, cancellations, and savepoints under fire."""

import re

from ha.drill.asking import (
    ASK_S,
    HA,
    PATIENT,
    asked,
    check_words,
    client,
    heal,
    poison,
    queries,
    runs_of_late_contender,
    starts,
    state,
)
from ha.drill.catalogue.hdfs import namenode_killed
from ha.drill.drill import Expected, drill
from ha.drill.environment import Member
from ha.drill.fixture import CONTENDERS, Fixture, Setup
from ha.drill.ha_provider import HYBRID, WORD_REGIONS, DrillJob
from store.clock import now

# --- upgrade


def _split(job: DrillJob, name: str) -> tuple[list[str], list[str]]:
    """Return the command of a contender, and that of its program, which begins with two hyphens."""
    command = HYBRID.contend(job, name)
    at = command.index("--")
    return command[:at], command[at:]


def _stored(job: DrillJob, name: str) -> list[str]:
    """Run what is stored."""
    return _split(job, name)[0]


def _submit(fixture: Fixture, release: int) -> None:
    job = fixture.job
    files = (job.driver, job.driver.replace(job.program.file, "running.py"))
    given = [part for each in files for part in ("--file", each)]
    program = ["python", job.program.file, *job.arguments(), "--release", f"{release}"]
    fixture.environment.call([*HA, "job", "submit", job.name, *given, "--", *program], fixture.folder, ASK_S)


def _releases(fixture: Fixture) -> list[str]:
    return re.findall(r"This is release (\d+)\.", fixture.leader.log())


def _restart(fixture: Fixture, expected: list[str]) -> None:
    asked(fixture, "job", "restart", fixture.job.name)
    fixture.wait_for(f"release {expected[-1]}", lambda: len(_releases(fixture)) >= len(expected))
    fixture.await_batches(2, query="counts")
    fixture.await_batches(1, query="totals")
    found = _releases(fixture)
    fixture.check("the newest version runs", found == expected, f"releases that were started: {', '.join(found)}")


@drill("upgrade", setup=Setup(program=WORD_REGIONS, before=lambda fixture: _submit(fixture, 1), contend=_stored))
def upgrade(fixture: Fixture) -> None:
    """A new version is submitted and the job restarted, then rolled back; the leader stays."""
    with fixture.fault("release 2 is submitted, and the job is restarted"):
        _submit(fixture, 2)
        _restart(fixture, ["1", "2"])
    with fixture.fault("it is rolled back to version 1, and the job is restarted"):
        asked(fixture, "job", "submit", fixture.job.name, "--version", "1")
        _restart(fixture, ["1", "2", "1"])
    found = [(each["version"], each["same_as"]) for each in asked(fixture, "job", "submit", fixture.job.name, "--list")]
    as_said = [version for version, _ in found] == [1, 2, 3] and found[-1][1] == 1
    fixture.check("versions are as said", as_said, f"{found}: version, and as which it is")


# --- cancel-while-failing


def _again(job: DrillJob, name: str) -> list[str]:
    """Run the job once more."""
    sidecar, program = _split(job, name)
    return [*sidecar, "--again", *program]


def _bad_again(job: DrillJob, name: str) -> list[str]:
    return [*_again(job, name), "--no-such-option"]


def _cancel(fixture: Fixture, while_what: str) -> None:
    """Cancel the job: it ends, and a contender that comes later runs nothing."""
    asked(fixture, "job", "cancel", fixture.job.name)
    contenders = fixture.contenders
    fixture.wait_for("the contenders' end", lambda: not any(each.running for each in contenders.values()))
    ended = state(fixture)
    runs = runs_of_late_contender(fixture)
    detail = f"{while_what}: {ended}; a contender that came later has started its command {runs} times"
    fixture.check("cancelled for good", (ended, runs) == ("CANCELED", 0), detail)


# Those that come later have to lead for a moment, to see that there is nothing to do.
@drill("requests", Expected((1, 8)), setup=PATIENT)
def cancel_while_failing(fixture: Fixture) -> None:
    """A job is cancelled while a region of it restarts, and while its program fails at each start."""
    with fixture.fault("counts is poisoned for ever, and the job is cancelled between two restarts of its region"):
        poison(fixture, "counts")
        fixture.wait_for("two restarts", lambda: queries(fixture)["counts"].restarts >= 2)  # noqa: PLR2004
        _cancel(fixture, "its region restarts")
        heal(fixture, "counts")
    with fixture.fault("the job is run again, in a version that fails at each start, and cancelled meanwhile"):
        since = now()
        fixture.contend(CONTENDERS[0], _bad_again)
        fixture.wait_for("two starts", lambda: starts(fixture, since) >= 2)  # noqa: PLR2004
        _cancel(fixture, "its command fails at each start")
    fixture.contend_all(_again)
    fixture.await_batches(2, query="counts")


# --- savepoint-under-fire

TAKES = " asks to savepoint."  # a leader's sidecar says that

OUTAGE_S = 8.0
SAVING_S = 90.0  # time-out of a savepoint, which may wait for the next batch of each query, and for the stores


def _places(fixture: Fixture) -> str:
    return f"{fixture.job.directory}/savepoints"


def _save(fixture: Fixture, number: int) -> Member:
    """Ask for a savepoint, and return when its leader has begun to take it."""
    leader = fixture.leader
    before = leader.log().count(TAKES)
    where, limit = f"{_places(fixture)}/{number}", f"{SAVING_S:g}"
    saving = fixture.beside(
        f"savepoint-{number}", [*HA, "savepoint", "take", fixture.job.name, where, "--timeout", limit]
    )
    fixture.wait_for("the request", lambda: leader.log().count(TAKES) > before or not saving.running)
    return saving


def _kill_leader(fixture: Fixture) -> None:
    leader, epoch = fixture.leader, fixture.epoch
    fixture.lose(leader, leader.kill)
    fixture.await_leader(epoch)
    fixture.contend(leader.name)


def _without_zookeeper(fixture: Fixture) -> None:
    fixture.without(fixture.cluster.names("zookeeper"), OUTAGE_S, fixture.cluster.kill)


FIRE = (
    ("the leader is killed", _kill_leader),
    ("HDFS fails over, and its active NameNode is killed", namenode_killed),
    (f"ZooKeeper is away for {OUTAGE_S:.0f} s", _without_zookeeper),
    ("nothing happens", lambda _: None),
)


@drill("requests", Expected((1, 1)), setup=PATIENT)
def savepoint_under_fire(fixture: Fixture) -> None:
    """The leader, the active NameNode and ZooKeeper die while savepoints are taken."""
    saving = {}
    for number, (what, fire) in enumerate(FIRE, 1):
        with fixture.fault(f"a savepoint is asked for; {what} meanwhile"):
            saving[f"{number}"] = _save(fixture, number)
            fire(fixture)
        fixture.wait_for("all answers", lambda: not any(each.running for each in saving.values()))
        fixture.await_batches(2, query="counts")
    found = client(fixture, "savepoints", _places(fixture))
    whole = sorted(name for name, names in found.items() if names)
    for number, (what, _) in enumerate(FIRE, 1):
        name = f"{number}"
        code, there = saving[name].exit_code, name in found
        complete = sorted(found.get(name) or []) == ["counts", "totals", "words"]
        detail = f"{what}: {'complete' if complete else 'in part' if there else 'not there'}, exit code {code}"
        fixture.check("a savepoint is complete or not there", complete if there else code != 0, detail)
    waiting = [name for name, each in saving.items() if "The request stays" in each.log()]
    fixture.check("each request is answered", not waiting, f"{', '.join(waiting) or 'none'} was not")
    fixture.check("an undisturbed savepoint is there", f"{len(FIRE)}" in whole, f"{', '.join(whole)} are complete")
    fixture.finish()
    for name in whole:
        _start_from(fixture, name)


def _start_from(fixture: Fixture, name: str) -> None:
    """Verify a savepoint by its files, and start another job from it, which counts the rest of the input."""
    job, where = fixture.job, f"{_places(fixture)}/{name}"
    for query in ("words", "counts", "totals"):
        fixture.environment.call([*HA, "checkpoint", "verify", f"{where}/spark/{query}"], fixture.folder, ASK_S)
    output = f"{job.directory}/from-{name}"
    program = ["python", job.driver, "--input", job.input, "--output", output, "--only", "totals"]
    run = [*HA, "run", f"{job.name}-from-{name}", "--from", where, "--", *program]
    fixture.let(f"from-{name}", run, ASK_S + SAVING_S, {"HA_HISTORY": ""})
    check_words(fixture, "a job started from a savepoint counts every word once", f"{output}/totals", name)
