"""The agent of the readers' host is frozen, and dies; they go on, and hear of a leader that it has not heard of."""

from ha.drill.drill import Drill, Expected, changed
from ha.drill.stage import READERS, Stage
from store.clock import now

ALONE = 5.0
"""Seconds for which readers do without it; in the sandbox, where all are on one host, a sidecar's takes its place."""


def _freeze_and_kill(stage: Stage) -> None:
    _await_answers(stage, "the agent")
    leader, epoch = stage.leader, stage.epoch
    with stage.fault(f"the readers' agent is frozen, and {leader.name} is killed meanwhile"):
        stage.agent.freeze()
        _await_answers(stage, "a store")
        stage.gone(leader, leader.kill)
        stage.await_leader(epoch)
        _await_answers(stage, "a store", epoch + 1)
        stage.agent.thaw()
        _await_answers(stage, "the agent", epoch + 1)
    with stage.fault("the readers' agent is killed"):
        stage.agent.kill()
        stage.rest(ALONE)
    stage.contend(leader.name)
    stage.batches()


def _await_answers(stage: Stage, by: str, epoch: int = 1) -> None:
    """Wait until every reader is told of this epoch or a later one, by the agent's snapshot or by a store."""
    since = now()

    def told() -> bool:
        right = [
            each
            for each in stage.observer.answers(since)
            if each.epoch >= epoch and (each.source == "snapshot") == (by == "the agent")
        ]
        return len(right) >= len(READERS)

    stage.wait(f"answers by {by}", told)


DRILLS = (
    Drill(
        "agent-frozen-and-killed",
        "the agent of the readers' host is frozen while the leader is killed, woken, and killed itself",
        "agent",
        _freeze_and_kill,
        # The leader is killed once the frozen agent's snapshots have run out.
        Expected((1, 1), changed("snapshot_fresh + session timeout + 1 s", "snapshot_fresh", "session_timeout")),
        settings={"snapshot_fresh": 3.0},
        agent=True,
        quick=True,
    ),
)
