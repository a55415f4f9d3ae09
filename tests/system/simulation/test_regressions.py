"""Regressions: shrunk plans, each of which once broke a promise."""

import pytest

from leader.timing import Timing
from tests.system.simulation.host import Host
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.plan import Plan, Step
from tests.system.simulation.reader_plans import draw_doubted
from tests.system.simulation.report import report
from tests.system.simulation.run import simulate
from tests.system.simulation.world import World

SLOW_SESSION = Timing(short_ttl=4, long_ttl=12, session_timeout=8, call_timeout=1, stop_margin=1, hand_over=0.5)
LONG_TTL = Timing(short_ttl=10, long_ttl=20, session_timeout=6, hand_over=1)
SHORT_TTL = Timing(short_ttl=4, long_ttl=14, session_timeout=10, hand_over=0.5)
TIGHT = Timing(short_ttl=3, long_ttl=30, session_timeout=4, call_timeout=0.4, drift=0.02, hand_over=2)
GREAT_DRIFT = Timing(short_ttl=12, long_ttl=16, session_timeout=5, call_timeout=0.5, drift=0.05, hand_over=1)
PLANS = {
    "a claim was believed that a NameNode listed, and the next one had never heard of": Plan(
        seed=0, timing=SHORT_TTL, rates=(1.0, 1.0, 1.0), seconds=34.937,
        steps=(
            Step(15.575, "stall", "leader", 18.23, ("15.506",)),
            Step(25.941, "fate", "", 12.763, ("claim", "unwritten", "12.763", "nothing")),
            Step(25.994, "unseat", "", 19.442, ("crash",)),
        ),
    ),
    "a seizure was believed that a NameNode listed, and the next one had never heard of": Plan(
        seed=152, timing=LONG_TTL, audit=4.0, seconds=23.818,
        steps=(
            Step(5.2, "fate", "", 15.987, ("seizure", "unwritten", "15.987", "crash")),
            Step(5.614, "unseat", "", 10.747, ("resign",)),
        ),
    ),
    "a batch was acknowledged that a NameNode listed, and the next one had never heard of": Plan(
        seed=16, timing=LONG_TTL, rates=(0.99, 1.01), servers=3, tick=1.2, jitter=0.3, seconds=32.964,
        steps=(
            Step(7.617, "server-stop", "leader", 4.717, ("5.868",)),
            Step(10.867, "fate", "", 18.346, ("renewal", "unwritten", "18.346", "nothing")),
            Step(10.867, "drop", "leader", 1.849),
        ),
    ),
    "a reader was told of checkpoints that a NameNode listed, and later of older ones": Plan(
        seed=137, timing=GREAT_DRIFT, seconds=21.43,
        steps=(
            Step(5.879, "isolate", "leader", 4.456, ("files", "both")),
            Step(9.389, "journal", "", 13.835, ("0.5",)),
        ),
    ),
    "a reader was told of checkpoints below a claim that was shown and forgotten, and later of older ones": Plan(
        seed=10294, timing=SHORT_TTL, rates=(1.0, 1.0, 1.0), jitter=1 / 3, stubborn=True, seconds=30.182,
        steps=(
            Step(2.472, "server-stop", "0", 4.506, ("11.728",)),
            Step(7.685, "fate", "", 14.236, ("claim", "unwritten", "14.236", "isolate")),
            Step(8.364, "unseat", "", 19.905, ("resign",)),
        ),
    ),
    "a reader was told of checkpoints below a forgotten claim, then of older ones below another of its epoch": Plan(
        seed=560042136, timing=GREAT_DRIFT, rates=(1.0, 0.95), audit=4.0, jitter=0.02, seconds=39.551,
        steps=(
            Step(2.82, "unseat", "", 21.949, ("resign",)),
            Step(14.103, "fate", "", 13.578, ("claim", "late", "15.678", "pause")),
            Step(14.613, "unseat", "", 14.937, ("pause",)),
            Step(25.308, "journal", "", 21.944, ("0",)),
        ),
    ),
    "the name of a lease that was shown and forgotten came back, and was taken for an old one": Plan(
        seed=7397, timing=LONG_TTL, audit=4.0, jitter=0.02, seconds=33.166, end="outage",
        steps=(
            Step(12.723, "pause", "leader", 8.299),
            Step(12.891, "wipe", "leader", 0.201),
            Step(24.305, "outage", "", 30.0),
            Step(25.305, "fate", "", 6.052, ("renewal", "unwritten", "6.052", "nothing")),
            Step(30.436, "wipe", "", 1.138),
        ),
    ),
    "a forgery that had been found out was believed again, after a claim that was shown and forgotten": Plan(
        seed=49836, timing=LONG_TTL, seconds=21.953,
        steps=(
            Step(2.347, "fate", "", 8.623, ("claim", "unwritten", "8.623", "crash")),
            Step(3.187, "unseat", "", 17.815, ("pause",)),
            Step(10.14, "tamper", "", 2.904, ("leader", "forged")),
            Step(11.521, "isolate", "b", 0.587),
        ),
    ),
    "a session was believed that the quorum was about to end": Plan(
        seed=18, timing=SLOW_SESSION, rates=(1.0, 1.0, 1.0), servers=3, tick=4.0, audit=4.0, jitter=0.02,
        seconds=39.43, steps=(Step(5.236, "pause", "a", 7.144),),
    ),
    "a lookup outlasted its deadline while it asked for the leader's session": Plan(
        seed=18, timing=SLOW_SESSION, rates=(1.0, 1.0, 1.0), readers=2, audit=4.0, seconds=39.43,
        steps=(Step(30.639, "expire", "r1", 0.233),),
    ),
    "a confirmation was believed whose server could not tell the quorum any more": Plan(
        seed=617, timing=GREAT_DRIFT, rates=(1.05, 0.95), servers=3, tick=2.5, seconds=21.82,
        steps=(
            Step(9.816, "server-cut", "leader", 1.061, ("1.738",)),
            Step(10.718, "server-cut", "leader", 1.228, ("6.313",)),
            Step(11.154, "pause", "leader", 7.281),
        ),
    ),
    "a leader relied on what was left of a session after a silence, and ZooKeeper fell silent again": Plan(
        seed=9880, calm=True, timing=SHORT_TTL, audit=4.0, seconds=30.434,
        steps=(
            Step(14.031, "hang", "b", 3.723),
            Step(16.958, "outage", "", 0.879),
            Step(20.537, "stall", "", 11.052),
        ),
    ),
    "a former leader deleted its successor's copy, of the same version as its own had": Plan(
        seed=5525, timing=SHORT_TTL, rates=(0.99, 1.01), servers=3, tick=5.0, seconds=20.279,
        steps=(
            Step(7.914, "pause", "leader", 15.994),
            Step(8.103, "server-cut", "leader", 3.479, ("14.760",)),
            Step(17.154, "tamper", "", 0.521, ("leader", "delete")),
        ),
    ),
    "a standby never heard of the leader's end by a connection that was broken at the leader's end only": Plan(
        seed=7, timing=Timing(short_ttl=3, long_ttl=30, session_timeout=4, call_timeout=0.4, drift=0.02, hand_over=2),
        seconds=37.78, audit=4.0, end="crash", suspicion=True,
        steps=(
            Step(17.764, "freeze", "leader", 5.411),
            Step(33.506, "isolate", "b", 2.71),
            Step(36.0, "sever", "leader", 0.621),
        ),
    ),
    "a standby waited for ever for the greeting of a leader that had been paused: it was lost on the way": Plan(
        seed=20681,
        timing=Timing(short_ttl=3, long_ttl=30, session_timeout=4, call_timeout=0.4, drift=0.02, hand_over=2),
        rates=(1.0, 1.0, 1.0), servers=3, tick=2.0, seconds=37.60060589596572, audit=4.0, end="crash", suspicion=True,
        steps=(Step(33.92, "freeze", "leader", 2.524), Step(34.892, "unseat", "", 7.137, ("isolate",))),
    ),
    "a reader's last moments were too short for HDFS, and it took that for a failure: it was not asked again": Plan(
        seed=41022,
        timing=Timing(short_ttl=10, long_ttl=20, session_timeout=6, call_timeout=0.9, drift=0.01, hand_over=1),
        seconds=36.509492801754334, agent=True, servers=0, audit=4.0, jitter=0.02, misled=("b",),
        steps=(
            Step(7.516, "isolate", "r0", 4.912),
            Step(11.41, "unseat", "", 10.291, ("resign",)),
            Step(11.519, "fate", "", 8.704, ("seizure", "late", "8.924", "isolate")),
            Step(14.305, "fate", "", 1.658, ("endpoint", "unwritten", "1.658", "pause")),
            Step(17.664, "unseat", "", 10.69, ("resign",)),
        ),
    ),
    "the simulator let a read overtake what the same session had asked for": Plan(
        seed=6470, timing=TIGHT, audit=4.0, jitter=0.02, seconds=21.818,
        steps=(
            Step(3.019, "server-stop", "leader", 5.957, ("2.518",)),
            Step(7.894, "slow", "b", 11.662, ("zookeeper", "both")),
            Step(15.291, "stall", "", 0.514),
            Step(15.873, "cut", "leader", 4.623, ("files", "both")),
            Step(16.717, "stall", "leader", 5.634, ("1.646",)),
        ),
    ),
    "the simulator lost what a server had heard, though its connection held": Plan(
        seed=12929, timing=GREAT_DRIFT, rates=(1.05, 0.95), servers=3, tick=2.5, jitter=0.16666666666666666,
        seconds=20.597779726148527,
        steps=(
            Step(6.953, "server-cut", "leader", 1.208, ("8.264",)),
            Step(8.673, "pause", "leader", 4.787),
            Step(8.721, "server-cut", "leader", 1.134, ("2.644",)),
        ),
    ),
    "the simulator took a reader that had been started again for one that nothing was done to": Plan(
        seed=3430, timing=SHORT_TTL, servers=0, audit=4.0, seconds=23.534,
        steps=(Step(2.592, "crash", "r0", 0.299), Step(9.53, "cut", "r0", 4.978, ("files", "both"))),
    ),
    "the simulator had a stranger write into a ZooKeeper that was down": Plan(
        seed=5286, timing=GREAT_DRIFT, audit=4.0, seconds=36.474,
        steps=(
            Step(21.933, "wipe", "", 15.413),
            Step(26.456, "tamper", "", 6.418, ("leader", "forged")),
            Step(30.645, "unseat", "", 14.919, ("crash",)),
        ),
    ),
    "the simulator struck once more after all was well": Plan(
        seed=5759, timing=LONG_TTL, servers=0, audit=4.0, seconds=27.277, end="crash",
        steps=(
            Step(18.356, "request", "", 6.234, ("a",)),
            Step(24.668, "fate", "", 10.154, ("renewal", "dropped", "15.268", "isolate")),
            Step(24.842, "unseat", "", 13.925, ("pause",)),
        ),
    ),
    "the simulator held a leader of three seconds, whose lease nobody attested yet, to the session timeout": Plan(
        seed=10316, timing=LONG_TTL, rates=(1.0, 1.01), seconds=39.148, end="crash",
        steps=(
            Step(3.306, "fate", "", 4.04, ("claim", "lost", "2.590", "isolate")),
            Step(3.682, "unseat", "", 10.655, ("resign",)),
            Step(12.475, "pause", "leader", 10.947),
            Step(38.535, "request", "", 3.319, ("b",)),
        ),
    ),
    "the simulator took a seizure that was executed late, long after its sender's crash, for nothing at all": Plan(
        seed=17252, timing=GREAT_DRIFT, audit=4.0, seconds=35.851,
        steps=(
            Step(13.794, "isolate", "leader", 8.478),
            Step(17.614, "wipe", "", 3.871),
            Step(19.761, "pause", "leader", 3.516),
            Step(23.037, "crash", "a", 5.455),
            Step(24.858, "fate", "", 11.501, ("seizure", "late", "14.579", "crash")),
        ),
    ),
    "the simulator cut off a successor after the healing, when it woke up and took an answer": Plan(
        seed=1711, timing=GREAT_DRIFT, rates=(1.05, 0.95), seconds=32.458, end="hand over", misled=("b",),
        steps=(
            Step(1.0, "outage", "", 60.0),
            Step(2.0, "sluggish", "", 8.972, ("files",)),
            Step(6.0, "fate", "", 19.608, ("renewal during a look", "answered", "0", "isolate")),
            Step(13.093, "failover", "", 11.593),
            Step(20.749, "unseat", "", 22.925, ("pause",)),
        ),
    ),
    "the simulator counted audits from when a forgery was written, not from when a reader was told of it": Plan(
        seed=32729, timing=LONG_TTL, rates=(1.0, 1.0, 1.0), readers=2, audit=4.0, jitter=0.02, seconds=26.55,
        steps=(
            Step(2.023, "fate", "", 7.12, ("claim", "lost", "18.046", "pause")),
            Step(2.888, "unseat", "", 10.295, ("isolate",)),
            Step(12.415, "server-cut", "leader", 11.471, ("5.621",)),
            Step(12.849, "tamper", "", 0.67, ("leader", "forged")),
        ),
    ),
    "a reader's last look had hardly any time for HDFS, and it believed a stranger": Plan(
        seed=61012991, timing=TIGHT, rates=(1.0, 1.0, 1.0), audit=4.0, jitter=0.4 / 3, republishes=True,
        suspicion=True, hosts_die=True, seconds=26.53804009055613,
        steps=(
            Step(11.021, "fate", "", 1.904, ("seizure", "lost", "0.324", "nothing")),
            Step(11.234, "unseat", "", 5.534, ("resign",)),
            Step(14.688, "cut", "leader", 4.117, ("files", "both")),
            Step(14.874, "server-stop", "leader", 3.568, ("3.015",)),
            Step(15.695, "fate", "", 3.991, ("claim", "dropped", "3.223", "pause")),
            Step(17.79, "server-cut", "0", 1.014, ("6.754",)),
            Step(21.645, "forge", "", 0.0, ("forged endpoints",)),
        ),
    ),
    "an agent that woke up was asked before its client knew that its session was over": Plan(
        seed=61015548, timing=SHORT_TTL, agent=True, audit=4.0, suspicion=True, seconds=34.47928098374324,
        steps=(Step(4.61, "pause", "r0", 12.221), Step(5.058, "unseat", "", 17.414, ("crash",))),
    ),
    "a release was made again under the name that a standby had seen before": Plan(
        seed=61018243, timing=SHORT_TTL, suspicion=True, lenders=("h1", "h0"), seconds=27.442899816285998,
        steps=(
            Step(9.248, "fate", "", 3.44, ("claim", "dropped", "9.187", "pause")),
            Step(10.048, "unseat", "", 15.362, ("resign",)),
            Step(10.138, "pause", "leader", 12.977, ("files", "both")),
            Step(12.295, "request", "", 8.841, ("a",)),
            Step(14.443, "outage", "", 20.0),
            Step(25.999, "request", "", 5.089, ("b",)),
            Step(27.12, "journal", "", 1.612, ("0",)),
        ),
    ),
    "a leader that was found dead was no news, and its successor was looked for late": Plan(
        seed=237418442, timing=TIGHT, servers=3, tick=0.8, jitter=0.02, seconds=34.94019853131749,
        steps=(
            Step(6.051, "fate", "", 3.423, ("seizure", "refused", "6.762", "pause")),
            Step(11.196, "cut", "leader", 6.201, ("files", "both")),
            Step(11.276, "server-cut", "leader", 5.607, ("7.849",)),
            Step(21.528, "fate", "", 2.543, ("claim", "refused", "5.744", "expire")),
            Step(24.416, "isolate", "leader", 4.789, ("files", "both")),
            Step(24.601, "isolate", "a", 4.841),
        ),
    ),
    "an agent fell asleep, and what it had written, that nobody leads, was believed for too long": Plan(
        seed=661353203, timing=GREAT_DRIFT, rates=(0.95, 1.05, 0.95), readers=2, agent=True, servers=0, jitter=0.02,
        seconds=26.389342329995774, steps=(Step(4.492, "pause", "c", 18.792), Step(16.321, "pause", "r0", 5.49)),
    ),
    "HDFS's answer to an audit was too old for the view, and the next audit came an interval later": Plan(
        seed=520008108, timing=GREAT_DRIFT, rates=(1.0, 1.05, 0.95), agent=True, audit=10.0, jitter=0.02,
        republishes=True, suspicion=True, seconds=29.30377970676932,
        steps=(
            Step(6.867, "fate", "", 7.002, ("claim", "fine", "10.445", "crash")),
            Step(7.128, "fate", "", 4.633, ("endpoint", "unwritten", "4.633", "crash")),
            Step(7.245, "unseat", "", 17.641, ("isolate",)),
            Step(12.032330823009968, "pause-job", "", 13.964680000313328),
            Step(19.124, "isolate", "r0", 8.482),
            Step(24.406, "forge", "", 0.0, ("forged endpoints",)),
        ),
    ),
    "the simulator took a record for there that had gone as ZooKeeper was wiped": Plan(
        seed=520001211, timing=GREAT_DRIFT, audit=4.0, suspicion=True, seconds=20.39306242843543,
        steps=(
            Step(3.413, "isolate", "leader", 6.314, ("files", "both")),
            Step(3.438, "wipe", "leader", 0.268, ("4.227",)),
            Step(6.534, "cut", "r0", 5.488, ("files", "both")),
            Step(8.328, "unseat", "", 22.46, ("crash",)),
        ),
    ),
    "a reader took a leader for dead whose node a stranger had deleted, while ZooKeeper was cut off from it": Plan(
        seed=600012010, calm=True, seconds=32.654, timing=SHORT_TTL, readers=2, patience=(2.0,), audit=4.0,
        republishes=True, suspicion=True, lenders=("h0", "h1"),
        steps=(
            Step(5.319, "server-cut", "0", 2.526, ("15.782",)),
            Step(6.044, "cut", "h0", 7.497, ("zookeeper", "both")),
            Step(7.459, "stranger", "leader", 19.349, ("replace",)),
        ),
    ),
    "a reader used a forgery of an outage again, when HDFS had told the agent otherwise": draw_doubted(4),
}  # fmt: skip


@pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: f"seed-{plan.seed}-{len(plan.steps)}")
def test_a_plan_that_once_broke_a_promise_keeps_it(plan: Plan) -> None:
    run = simulate(plan)
    assert not run.violations, report(run)


def test_a_command_that_waits_for_a_namenode_survives_another_failover() -> None:
    files, arrived = Namespace(), []
    files.stop()
    files.arrive(lambda: arrived.append("first"))
    files.stop()
    files.arrive(lambda: arrived.append("second"))
    files.start()
    assert arrived == ["first", "second"]


def test_time_does_not_run_ahead_past_a_call_that_was_cancelled() -> None:
    """Seed 75710: a step of the plan struck after the healing, because the call before it had been cancelled."""
    world, called = World(), list[float]()
    world.after(1.0, lambda: called.append(1.0)).cancel()
    world.after(3.0, lambda: called.append(world.now))
    world.run(2.0)
    assert (world.now, called) == (2.0, [])
    world.run(2.0)
    assert (world.now, called) == (4.0, [3.0])


def test_a_process_that_wakes_up_again_and_again_is_found() -> None:
    world = World()

    def again() -> None:
        world.after(1e-6, again)

    again()
    with pytest.raises(AssertionError, match="wakes up again and again"):
        world.run(1.0)


def test_a_namenode_forgets_what_it_showed_and_answered_nobody() -> None:
    files, said, told = Namespace(), list[str](), list[str]()
    files.told = lambda _at, _operation, path, _target, _by: told.append(path)
    files.make("job")

    def make(path: str) -> None:
        unwritten = files.unwritten
        files.make(path)
        files.answer(lambda: said.append(path), lambda: said.append(f"no {path}"), unwritten=unwritten)

    files.lose_journal()
    make("job/a")
    make("job/b")
    make("job/a")  # it is there, so nothing is changed, and nothing has to be written
    assert files.list("job") == ["a", "b"]
    assert said == ["job/a"]
    files.forget(0.5)
    assert files.list("job") == ["a"]
    assert said == ["job/a", "no job/a", "no job/b"]
    assert told == ["job", "job/a"]
    files.lose_journal()
    make("job/c")
    files.regain_journal()
    assert said[-1] == "job/c"
    assert told == ["job", "job/a", "job/c"]


def test_a_timer_that_is_cancelled_is_not_called_even_if_its_process_slept_when_it_went_off() -> None:
    """As in production's event loop. A closed watch was called once more, without a listener."""
    world, called = World(), list[str]()
    host = Host(world, "a", Namespace(), None, Timing())
    late = host.call_at(host.now() + 2.0, lambda: called.append("late"))
    host.call_at(host.now() + 1.0, late.cancel)
    host.pause()
    world.run(3.0)
    host.resume()
    assert called == []
    host.call_at(host.now() + 1.0, lambda: called.append("in time"))
    world.run(2.0)
    assert called == ["in time"]
