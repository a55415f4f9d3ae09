"""Processes fail: contenders, drivers and hosts die, leaders pause, readers lose their agent, versions change."""

import re

from ha.drill.asking import Shown, queries
from ha.drill.drill import STAYS, SUCCEEDED, Expected, bound, drill
from ha.drill.environment import Ability
from ha.drill.fixture import READERS, Fixture, Setup
from ha.drill.ha_provider import NEXT_VERSION, STEADY_WORDS, WITH_ENGINE
from ha.history.events import Granted
from leader.layout.names import ADOPTED
from store.clock import now

DRIVER_END_S = 8.0
"""Until a driver that lost a process has ended: five seconds for the rest of its group, and what Spark takes."""


@drill("kills", SUCCEEDED, baselines=True, quick=True)
def kill_sidecar(fixture: Fixture) -> None:
    """Kill -9 of the leading sidecar; its driver dies with it and a standby takes over."""
    leader = fixture.leader
    fixture.fault_at_once(f"kill -9 of the leading sidecar, {leader.name}", lambda: fixture.lose(leader, leader.kill))


# --- a killed sidecar, or program, is started again, and takes up what the killed one has left

SUCCESSIONS = 3  # kills of the sidecar, one after the other
LIVES = 3  # kills of the program, and of the sidecar, in turn

PATIENCE = {"session_timeout": 20.0, "short_ttl": 20.0, "adopt_within": 20.0}
"""A small machine, on which the whole drill runs, has the time to start a sidecar."""

REATTACHES = re.compile(r"words runs, and is reattached ([0-9.]+) s")


@drill("kills", STAYS, Ability.RETURN, setup=Setup(settings=PATIENCE))
def sidecar_killed_and_back(fixture: Fixture) -> None:
    """Kill -9 of the leading sidecar, three times; the next one on its host takes up the driver, which runs on."""
    name, epoch = fixture.leader.name, fixture.epoch
    worst = max(_succession(fixture, name, number) for number in range(1, SUCCESSIONS + 1))
    _check_started_once(fixture, "driver", name, epoch, worst)
    fixture.measures["slowest_succession_seconds"] = round(worst, 3)


def _check_started_once(fixture: Fixture, what: str, name: str, epoch: int, slowest: float) -> None:
    starts = fixture.contenders[name].log().count(": the command runs, guarded")
    detail = f"{starts} start of it, epoch {epoch} then and {fixture.epoch} now, at most {slowest:.1f} s"
    fixture.check(f"the {what} ran on", starts == 1 and fixture.epoch == epoch, detail)


def _succession(fixture: Fixture, name: str, number: int) -> float:
    """Kill the sidecar, start it again, and return the seconds from then until it has taken up the leadership."""
    member = fixture.contenders[name]
    what = f"kill -9 of the leading sidecar, {name}, which is started again"
    fixture.fault_at_once(what, lambda: fixture.lose(member, member.kill))
    began = now()
    fixture.succeed(name)
    fixture.wait_for("a sidecar that takes the driver up", lambda: len(_adopted(fixture)) >= number)
    fixture.await_batches()
    return _adopted(fixture)[-1].at - began


def _adopted(fixture: Fixture) -> list[Granted]:
    fixture.observer.look()
    return [each for each in fixture.observer.grants if each.reason == ADOPTED]


@drill(
    "kills",
    STAYS,
    Ability.RETURN,
    setup=Setup(settings={**PATIENCE, "stop_grace": 10.0}, program=STEADY_WORDS, contend=WITH_ENGINE),
)
def program_killed_and_back(fixture: Fixture) -> None:
    """Kill -9 of the program and of the sidecar, in turn; Spark and its query go on, and are adopted each time."""
    name, epoch = fixture.leader.name, fixture.epoch
    fixture.await_batches(2, query="words")
    fixture.wait_for("queries that run", lambda: all(each.state == "RUNNING" for each in queries(fixture).values()))
    before = queries(fixture)
    adopted: list[float] = []
    for number in range(1, LIVES + 1):
        adopted.append(_next_program(fixture, name, before))
        _succession(fixture, name, number)
    after = queries(fixture)
    same = {each for each in after if after[each].run_id == before[each].run_id}
    fixture.check("the query without foreachBatch ran on", same == {"words"}, f"the same runs: {', '.join(same)}")
    _check_started_once(fixture, "Spark", name, epoch, max(adopted))
    fixture.measures["slowest_reattachment_seconds"] = round(max(adopted), 3)


def _next_program(fixture: Fixture, name: str, before: dict[str, Shown]) -> float:
    """Kill the program, and return the seconds from the start of the next one until it has reattached to what runs."""
    known = len(_reattachments(fixture, name))
    fixture.fault_at_once(f"kill -9 of the program of {name}; Spark stays", lambda: fixture.kill_driver(name))
    fixture.wait_for("a program that reattaches to the query", lambda: len(_reattachments(fixture, name)) > known)
    for query in before:
        fixture.await_batches(1, query=query)
    return _reattachments(fixture, name)[-1]


def _reattachments(fixture: Fixture, name: str) -> list[float]:
    return [float(each) for each in REATTACHES.findall(fixture.contenders[name].log())]


# --- what runs below a sidecar, and whole hosts


_DRIVER_ENDS = Expected((1, 1), bound("the driver's end", more=DRIVER_END_S))


def _kill_child(fixture: Fixture, kind: str) -> None:
    leader = fixture.leader
    fixture.fault_at_once(f"kill -9 of the {kind} of {leader.name}", lambda: fixture.strike(leader, "kill", kind))


@drill("kills", _DRIVER_ENDS, baselines=True)
def kill_driver(fixture: Fixture) -> None:
    """Kill -9 of the driver only; the sidecar gives the leadership back."""
    _kill_child(fixture, "driver")


@drill("kills", _DRIVER_ENDS, baselines=True)
def kill_jvm(fixture: Fixture) -> None:
    """Kill -9 of the Java virtual machine under the driver; the leadership follows it."""
    _kill_child(fixture, "jvm")


@drill("kills", SUCCEEDED, Ability.HOST, baselines=True, quick=True)
def lose_host(fixture: Fixture) -> None:
    """The leader's host is lost: every packet to it vanishes without an error."""
    leader = fixture.leader
    what = f"the host of {leader.name} is lost: no answer, no refusal"
    fixture.fault_at_once(what, lambda: fixture.lose(leader, leader.lose))


@drill("pauses", SUCCEEDED, baselines=True, quick=True, setup=Setup(dwell=2.0))
def leader_paused(fixture: Fixture) -> None:
    """The leader is paused for twice the session timeout and woken in the middle of a batch."""
    leader, epoch = fixture.leader, fixture.epoch
    fixture.await_batches(1)  # so that the next one has just begun
    seconds = 2 * fixture.durations["session_timeout"]
    with fixture.fault(
        f"{leader.name} with its driver is paused for {seconds:.0f} s in the middle of a batch, then woken"
    ):
        leader.freeze()
        fixture.run_for(seconds)
        fixture.await_leader(epoch)
        leader.thaw()
    fixture.run_for(5.0)


# --- versions

NEXT_VERSION_S = 5.0  # time for which readers of the old version meet the records of the new one


@drill("upgrade", Expected((2, 2)))
def rolling_upgrade(fixture: Fixture) -> None:
    """A standby is upgraded to another record format, leads, and is downgraded again."""
    new = fixture.standby
    with fixture.fault(f"{new.name} runs the next version, with another format of records"):
        fixture.contend(new.name, NEXT_VERSION)
        fixture.wait_for(f"{new.name} to contend", lambda: "contending" in fixture.contenders[new.name].log())
        _replace_leader(fixture)  # the next version takes over
        fixture.run_for(NEXT_VERSION_S)
        _replace_leader(fixture)  # and back


def _replace_leader(fixture: Fixture) -> None:
    leader, epoch = fixture.leader, fixture.epoch
    fixture.lose(leader, leader.kill)
    fixture.await_leader(epoch)
    fixture.await_batches()
    fixture.contend(leader.name)  # as a standby of this version


# --- the agent

WITHOUT_AGENT_S = 5.0
"""Time that readers do without an agent; in the sandbox, where all are on one host, a sidecar's agent takes over."""


# The leader is killed once the frozen agent's snapshots have run out.
@drill(
    "agent",
    Expected((1, 1), bound("a tenth of audit + session timeout + 1 s", "session_timeout", more=4.0)),
    setup=Setup(agent=True),
)
def agent_frozen_and_killed(fixture: Fixture) -> None:
    """The agent of the readers' host is frozen while the leader is killed, woken, and killed itself."""
    _await_answers(fixture, "the agent")
    leader, epoch = fixture.leader, fixture.epoch
    with fixture.fault(f"the readers' agent is frozen, and {leader.name} is killed meanwhile"):
        fixture.agent.freeze()
        _await_answers(fixture, "a store")
        fixture.lose(leader, leader.kill)
        fixture.await_leader(epoch)
        _await_answers(fixture, "a store", epoch + 1)
        fixture.agent.thaw()
        _await_answers(fixture, "the agent", epoch + 1)
    with fixture.fault("the readers' agent is killed"):
        fixture.agent.kill()
        fixture.run_for(WITHOUT_AGENT_S)


def _await_answers(fixture: Fixture, by: str, epoch: int = 1) -> None:
    """Wait until the agent's snapshot, or a store, tells every reader of this epoch or a later one."""
    since = now()

    def answered() -> bool:
        right = [
            each
            for each in fixture.observer.answers(since)
            if each.epoch >= epoch and (each.source == "snapshot") == (by == "the agent")
        ]
        return len(right) >= len(READERS)

    fixture.wait_for(f"answers by {by}", answered)
