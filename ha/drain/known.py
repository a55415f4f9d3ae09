"""Known hosts: the names under which processes contend for the jobs, or have led one."""

from contextlib import suppress

from ha.config.setting import nearest
from leader.errors import LeaderError, NoLeader
from leader.job.admin import JobAdmin
from leader.layout.bar import bars


def check_known(admin: JobAdmin, host: str, what: str) -> None:
    """Refuse a name that no process is known by, before a person believes that a host is drained."""
    # Histories are read only if nothing else knows the name.
    # `host`: the name. `what`: sentence that says what to do if the name is right all the same.
    jobs, unseen = admin.jobs(), False
    seen: set[str] = set()
    for past in (False, True):
        for job in jobs:
            with suppress(NoLeader):
                _, record = admin.record(job)
                contenders = admin.contenders(job) if not past else ()
                unseen = unseen or contenders is None
                seen.update([record.lease.contender] if record.lease else (), bars(record), contenders or ())
                if past:
                    seen.update(each.contender for each in admin.history(job))
            if host in seen:
                return
    close = nearest(host, seen, 3)
    hint = f" Did you mean {' or '.join(close)}?" if close else " `ha job list` shows all contenders."
    blind = " ZooKeeper does not say who stands by, so a standby that has never led is not seen." if unseen else ""
    raise LeaderError(
        f"No process contends as {host!r} for any of the {len(jobs)} jobs, and none has led one under that name."
        f"{hint}{blind} {what}"
    )
