"""Leading a job for an operator's command, which no other process may lead meanwhile."""

import contextlib
from collections.abc import Iterator

from ha.config.stores import Stores
from ha.leadership.lead import lead
from ha.leadership.leadership import Leadership
from ha.spark.rewind.completing import settle
from leader.errors import NoLeader, NotLeader
from leader.job.admin import JobAdmin
from leader.layout.lease import Mode

LEASE_S = 10.0  # time to get a lease, if nothing else is said


@contextlib.contextmanager
def led(
    opened: Stores, job: str, timeout: float = LEASE_S, cause: str = "operated", *, files: str = "", alone: bool = False
) -> Iterator[Leadership]:
    """Lead a job for as long as the block lasts."""
    # opened: the stores whose settings say where the job is.
    # timeout: seconds to wait for its lease.
    # cause: what its history says of the end, if nothing fails.
    # files: another root, if the job is there.
    # alone: leave ZooKeeper out: nobody looks the job up.
    # NotLeader: another contender leads it; the message names it.
    zookeeper = "" if alone else opened.settings.stores.zookeeper
    leading = lead(job, timeout=timeout, files=files or opened.settings.stores.files, zookeeper=zookeeper)
    with contextlib.ExitStack() as stack:
        try:
            leadership = stack.enter_context(leading)
        except NotLeader as error:
            raise NotLeader(f"{_holder(opened, job, files) or error}") from error
        settle(leadership)  # a rewind that was decided comes before whatever else is done
        yield leadership
        leading.record_end(cause)


def _holder(opened: Stores, job: str, files: str) -> str:
    try:
        with opened.open(files or opened.settings.stores.files) as jobs:
            directory, lease = JobAdmin(jobs, None, opened.patience).lease(job)
    except NoLeader:
        return ""
    if lease.mode is Mode.RELEASED:
        return (
            f"Job {job!r} is paused, so it cannot be led: stop all processes that contend for it, and give "
            f"`ha job resume {job}` first."
            if lease.paused
            else ""
        )
    return (
        f"Job {job!r} is led by {lease.contender} at epoch {directory.epoch}: stop all processes that contend for it, "
        "or do this in its program."
    )
