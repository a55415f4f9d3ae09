"""Remarks: what a person has to know of a job beside its state, in sentences, and the commands that help now."""

from collections.abc import Iterator

from ha.spark.replication.report import SUFFIX
from ha.views.jobs import DAMAGED, NOT_YOURS, UNREACHABLE, JobSummary
from leader.job.status import Status
from leader.layout.hosts import covers

_TERMINAL = {each.value for each in Status if each.globally_terminal}
_UNKNOWN = {
    DAMAGED: "its record holds no lease: somebody has changed it by hand, and `ha host doctor {job}` says what helps",
    UNREACHABLE: "its root does not answer",
    NOT_YOURS: "it is another user's, who lets nobody else read it: ask as that user",
}
_ENDS = {"released": "gave its lease back", "session-gone": "was gone", "expired": "stopped renewing its lease"}


def remarks(row: JobSummary) -> Iterator[str]:
    """Yield the remarks, without the job's name in front."""
    yield from _leading(row)
    if (pause := row.paused) is not None:
        said = f"paused by {pause.by or 'an operator'} since {pause.at or 'a time that is not known'}"
        yield f"{said}{_why(pause.reason)}: no takeover until `ha job resume {row.job}`"
    for each in row.barred:
        then = (
            "it leads until another takes over, and does"
            if row.holder and covers(each.contender, row.holder)
            else "it does"
        )
        yield (
            f"{each.contender} is barred by {each.by or 'an operator'} until {each.until}{_why(each.reason)}: "
            f"{then} not take over before, unless you `ha host undrain {each.contender}`"
        )
    if (tries := row.next_try) is not None:
        remedy = f"; no restart mends this: {tries.remedy}" if tries.remedy else ""
        yield (
            f"has failed {tries.failures} times in a row, last on {tries.host} ({tries.cause}): the next try is at "
            f"{tries.at}{remedy}"
        )
    yield from (each.why for each in row.others)
    if row.unguarded:
        yield (
            f"not guarded, queries: {row.unguarded}. No takeover goes on where they were: the program's log names them."
        )
    if row.repeated:
        yield (
            f"not exactly once, queries: {row.repeated}. A takeover may repeat rows of theirs: the program's log names "
            "them."
        )


def _leading(row: JobSummary) -> Iterator[str]:
    if row.overdue:
        yield f"{row.holder} has not renewed its lease{_since(row)}: it may be frozen, cut off or gone"
    elif row.lease in _UNKNOWN:
        yield _UNKNOWN[row.lease].format(job=row.job)
    elif row.job.endswith(SUFFIX) and row.holder is None:
        source = row.job.removesuffix(SUFFIX)
        yield f"no process replicates it{_since(row)}: `ha replica run {source} --to URI` does, unless it was promoted"
    elif is_left(row):
        last = f": {row.last_holder} {_ENDS[row.lease]}" if row.last_holder else ""
        yield f"no process leads it{_since(row)}{last}; {_successor(row)}"
    if row.state is None and row.lease not in _UNKNOWN:
        yield "its state is one of a newer version: ask with that version of ha"


def possible(row: JobSummary) -> list[str]:
    """Return the commands that a person may give now, each with what it does."""
    job = row.job
    if job.endswith(SUFFIX):
        return [f"`ha replica status {job.removesuffix(SUFFIX)} --to URI` says how far it is"]
    if row.state in _TERMINAL:
        return [f"`ha run {job} --again -- COMMAND` runs it once more", f"`ha job clean {job}` clears its leftovers"]
    found = [f"`ha job resume {job}` ends the pause"] if row.paused else []
    if row.holder is None:
        return [*found, f"`ha run {job} -- COMMAND` on a host runs it", f"`ha job cancel {job}` ends it for good"]
    if row.contenders is None or len(row.contenders) > 1:
        found += [f"`ha job handover {job}` has a standby lead"] if not row.paused else []
    return [
        *found,
        f"`ha job restart {job}` starts its command again",
        f"`ha job stop {job}` ends it in order",
        f"`ha job cancel {job}` ends it at once",
    ]


def is_left(row: JobSummary) -> bool:
    """Whether a process should lead the job, and none does."""
    return row.holder is None and row.state is not None and row.state not in _TERMINAL


def _successor(row: JobSummary) -> str:
    if row.paused is not None:
        return "no contender may, while it is paused"
    free = sorted({*(row.contenders or ())} - {each.contender for each in row.barred})
    if free:
        return f"{' or '.join(free)} takes over"
    run = f"start `ha run {row.job} -- COMMAND` on a host"
    if row.contenders is None:
        return f"a standby takes over if there is one, else {run}"
    return f"no contender may take over: {run}" if row.contenders else f"no process contends for it: {run}"


def _since(row: JobSummary) -> str:
    return f" since {row.since}" if row.since else ""


def _why(reason: str | None) -> str:
    return f" ({reason})" if reason else ""
