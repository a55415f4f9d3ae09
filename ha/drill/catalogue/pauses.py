"""The leader sleeps through its own end, and wakes up."""

from ha.drill.drill import Drill, Expected, changed
from ha.drill.stage import Stage


def _pause_leader(stage: Stage) -> None:
    leader, epoch = stage.leader, stage.epoch
    stage.batches(1)  # so that the next one has just begun
    seconds = 2 * stage.durations["session_timeout"]
    with stage.fault(
        f"{leader.name} with its driver is paused for {seconds:.0f} s in the middle of a batch, then woken"
    ):
        leader.freeze()
        stage.rest(seconds)
        stage.await_leader(epoch)
        leader.thaw()
    stage.rest(5.0)
    stage.batches()


DRILLS = (
    Drill(
        "leader-paused",
        "the leader is paused for twice the session timeout and woken in the middle of a batch",
        "pauses",
        _pause_leader,
        Expected((1, 1), changed("session timeout + 1 s", "session_timeout")),
        peers=True,
        quick=True,
        dwell=2.0,
    ),
)
