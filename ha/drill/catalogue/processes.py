"""Processes fail: contenders, drivers and hosts die, leaders pause, readers lose their agent, versions change."""

import re

from ha.drill.asking import Shown, check, queries
from ha.drill.drill import Drill, Expected, bound
from ha.drill.environment import Ability, DrillError
from ha.drill.fixture import READERS, Fixture, Setup
from ha.drill.ha_provider import NEXT_VERSION, STEADY_WORDS, WITH_ENGINE
from ha.drill.outcome import Check
from ha.history.events import Granted
from leader.layout.names import ADOPTED
from store.clock import now

DRIVER_END_S = 8.0
"""Until a driver that lost a process has ended: five seconds for the rest of its group, and what Spark takes."""


def _kill_sidecar(fixture: Fixture) -> None:
    leader, epoch = fixture.leader, fixture.epoch
    fixture.fault_at_once(f"kill -9 of the leading sidecar, {leader.name}", lambda: fixture.lose(leader, leader.kill))
    fixture.await_leader(epoch)
    fixture.contend(leader.name)
    fixture.await_batches()


SUCCESSIONS = 3
"""Kills of the sidecar, one after the other."""


def _kill_sidecar_which_comes_back(fixture: Fixture) -> None:
    name, epoch = fixture.leader.name, fixture.epoch
    worst = max(_succession(fixture, name, number) for number in range(1, SUCCESSIONS + 1))
    starts = fixture.contenders[name].log().count(": the command runs, guarded")
    fixture.measures["slowest_succession_seconds"] = round(worst, 3)
    detail = f"{starts} start of the driver, epoch {epoch} then and {fixture.epoch} now, at most {worst:.1f} s"
    fixture.checks.append(Check("the driver ran on", starts == 1 and fixture.epoch == epoch, detail))


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


LIVES = 3
"""Kills of the program, and of the sidecar, in turn."""

ADOPTS = re.compile(r"words runs, and is adopted ([0-9.]+) s")


def _kill_program_which_comes_back(fixture: Fixture) -> None:
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
    check(fixture, "the query without foreachBatch ran on", same == {"words"}, f"the same runs: {', '.join(same)}")
    starts = fixture.contenders[name].log().count(": the command runs, guarded")
    fixture.measures["slowest_adoption_seconds"] = round(max(adopted), 3)
    detail = f"{starts} start of Spark, epoch {epoch} then and {fixture.epoch} now, at most {max(adopted):.1f} s"
    check(fixture, "Spark ran on", starts == 1 and fixture.epoch == epoch, detail)


def _next_program(fixture: Fixture, name: str, before: dict[str, Shown]) -> float:
    """Kill the program, and return the seconds from the start of the next one until it has adopted what runs."""
    known = len(_adoptions(fixture, name))
    fixture.fault_at_once(f"kill -9 of the program of {name}; Spark stays", lambda: fixture.kill_driver(name))
    fixture.wait_for("a program that adopts the query", lambda: len(_adoptions(fixture, name)) > known)
    for query in before:
        fixture.await_batches(1, query=query)
    return _adoptions(fixture, name)[-1]


def _adoptions(fixture: Fixture, name: str) -> list[float]:
    return [float(each) for each in ADOPTS.findall(fixture.contenders[name].log())]


def _adopted(fixture: Fixture) -> list[Granted]:
    fixture.observer.look()
    return [each for each in fixture.observer.grants if each.reason == ADOPTED]


def _kill_child(fixture: Fixture, kind: str, called: str) -> None:
    leader, epoch = fixture.leader, fixture.epoch

    def kill() -> None:
        if not leader.kill_child(kind):
            raise DrillError(f"{leader.name} has no {called} to kill.")

    fixture.fault_at_once(f"kill -9 of the {called} of {leader.name}", kill)
    fixture.await_leader(epoch)
    fixture.await_batches()


def _lose_host(fixture: Fixture) -> None:
    leader, epoch = fixture.leader, fixture.epoch
    fixture.lost.add(leader.name)
    fixture.fault_at_once(
        f"the host of {leader.name} is lost: no answer, no refusal", lambda: fixture.lose(leader, leader.lose)
    )
    fixture.await_leader(epoch)
    fixture.contend(leader.name)
    fixture.await_batches()


def _pause_leader(fixture: Fixture) -> None:
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
    fixture.await_batches()


NEXT_VERSION_S = 5.0
"""Time for which readers of the old version meet the records of the new one."""


def _replace_leader(fixture: Fixture) -> None:
    leader, epoch = fixture.leader, fixture.epoch
    fixture.lose(leader, leader.kill)
    fixture.await_leader(epoch)
    fixture.await_batches()
    fixture.contend(leader.name)  # as a standby of this version


def _roll(fixture: Fixture) -> None:
    new = fixture.standby
    with fixture.fault(f"{new.name} runs the next version, with another format of records"):
        fixture.contend(new.name, NEXT_VERSION)
        fixture.wait_for(f"{new.name} to contend", lambda: "contending" in fixture.contenders[new.name].log())
        _replace_leader(fixture)  # the next version takes over
        fixture.run_for(NEXT_VERSION_S)
        _replace_leader(fixture)  # and back
    fixture.await_batches()


WITHOUT_AGENT_S = 5.0
"""Time that readers do without an agent; in the sandbox, where all are on one host, a sidecar's agent takes over."""


def _freeze_and_kill(fixture: Fixture) -> None:
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
    fixture.contend(leader.name)
    fixture.await_batches()


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


DRILLS = (
    Drill(
        "kill-sidecar",
        "kill -9 of the leading sidecar; its driver dies with it and a standby takes over",
        "kills",
        _kill_sidecar,
        Expected((1, 1), bound("session timeout + 1 s", "session_timeout")),
        baselines=True,
        quick=True,
    ),
    Drill(
        "sidecar-killed-and-back",
        "kill -9 of the leading sidecar, three times; the next one on its host takes up the driver, which runs on",
        "kills",
        _kill_sidecar_which_comes_back,
        needs=frozenset({Ability.RETURN}),
        # So long that a small machine, on which the whole drill runs, has the time to start a sidecar.
        setup=Setup(settings={"session_timeout": 20.0, "short_ttl": 20.0, "adopt_within": 20.0}),
    ),
    Drill(
        "program-killed-and-back",
        "kill -9 of the program and of the sidecar, in turn; Spark and its query go on, and are adopted each time",
        "kills",
        _kill_program_which_comes_back,
        needs=frozenset({Ability.RETURN}),
        setup=Setup(
            settings={"session_timeout": 20.0, "short_ttl": 20.0, "adopt_within": 20.0, "stop_grace": 10.0},
            program=STEADY_WORDS,
            contend=WITH_ENGINE,
        ),
    ),
    Drill(
        "kill-driver",
        "kill -9 of the driver only; the sidecar gives the leadership back",
        "kills",
        lambda fixture: _kill_child(fixture, "driver", "driver"),
        Expected((1, 1), bound("the driver's end", more=DRIVER_END_S)),
        baselines=True,
    ),
    Drill(
        "kill-jvm",
        "kill -9 of the Java virtual machine under the driver; the leadership follows it",
        "kills",
        lambda fixture: _kill_child(fixture, "jvm", "Java virtual machine"),
        Expected((1, 1), bound("the driver's end", more=DRIVER_END_S)),
        baselines=True,
        quick=True,
    ),
    Drill(
        "lose-host",
        "the leader's host is lost: every packet to it vanishes without an error",
        "kills",
        _lose_host,
        Expected((1, 1), bound("session timeout + 1 s", "session_timeout")),
        needs=frozenset({Ability.HOST}),
        baselines=True,
        quick=True,
    ),
    Drill(
        "leader-paused",
        "the leader is paused for twice the session timeout and woken in the middle of a batch",
        "pauses",
        _pause_leader,
        Expected((1, 1), bound("session timeout + 1 s", "session_timeout")),
        baselines=True,
        quick=True,
        setup=Setup(dwell=2.0),
    ),
    Drill(
        "rolling-upgrade",
        "a standby is upgraded to another record format, leads, and is downgraded again",
        "upgrade",
        _roll,
        Expected((2, 2)),
        quick=True,
    ),
    Drill(
        "agent-frozen-and-killed",
        "the agent of the readers' host is frozen while the leader is killed, woken, and killed itself",
        "agent",
        _freeze_and_kill,
        # The leader is killed once the frozen agent's snapshots have run out.
        Expected((1, 1), bound("snapshot_fresh + session timeout + 1 s", "snapshot_fresh", "session_timeout")),
        setup=Setup(settings={"snapshot_fresh": 3.0}, agent=True),
        quick=True,
    ),
)
