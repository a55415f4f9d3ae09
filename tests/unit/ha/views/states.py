"""Jobs in all states, built from real parts in one directory, and what every view says of them.

python -m tests.unit.ha.views.states writes docs/job-states.md.
"""

import io
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from ha.agent.standalone import EndedJobs, _AgentMetrics
from ha.cli.commands import exit_code
from ha.spark.replication.report import PROMOTED, REPORT, ReplicaReport, ReplicatedQuery, encoded
from leader.job.admin import JobAdmin
from leader.job.barring import bar
from leader.job.checkpoints import Checkpoints
from leader.job.exceptions import Exceptions
from leader.job.failed_attempts import FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.job.pausing import pause
from leader.job.programs import Program, Programs
from leader.job.request_folder import Requests
from leader.job.status import JobStatus, Status
from leader.layout import tree
from leader.layout.bar import Bar
from leader.layout.checkpoint import Metadata
from leader.layout.pause import Pause
from tests.unit.ha.api.serving import Served
from tests.unit.ha.conftest import hurried
from tests.unit.ha.led import Led
from tests.unit.ha.waiting import wait_until

PAGE = Path(__file__).parents[4] / "docs" / "job-states.md"

HEAD = """# What a job's state looks like

Made by `python -m tests.unit.ha.views.states`. Do not edit it.

Each row is a job that was brought into a state, and what was then said of it. A test asks `ha job list`, `ha job show`,
`ha job leader`, `ha job queries`, the API, which the page shows, and the metrics of an agent, and finds that none
contradicts another: `tests/unit/ha/views/test_states.py`. HOLDER is `a` where the lease is held
(`hdfs`), else a dash. `TIME` stands for a time, and `START` for "a standby takes over if there is one, else start
`ha run JOB -- COMMAND` on a host".

| the job | STATE | LEASE | said below the list |
|---|---|---|---|
"""


class Scene:
    def __init__(self, jobs: Led, admin: JobAdmin, job: str) -> None:
        self.jobs, self.admin, self.job = jobs, admin, job

    @property
    def directory(self) -> FencedDirectory:
        return self.admin.directory(self.job)

    @property
    def path(self) -> Path:
        return Path(self.jobs.files.uri.removeprefix("file://"), self.directory.at())

    def led(self, *states: Status) -> "Scene":
        """Have it led, and its state changed to one after the other."""
        self.jobs.claim(self.job, "a:1")
        for each in states:
            status = JobStatus(self.directory)
            status.change(status.read(), each)
        return self

    def released(self) -> "Scene":
        self.jobs.release(self.job)
        return self

    def left(self) -> "Scene":
        """Let all of its processes be killed: the lease is not renewed."""
        held = self.admin.lease(self.job)[1]
        record = self.path / "record"
        (record / held.name).rename(record / replace(held, sequence=held.sequence + 1, ttl_ms=300).name)
        os.utime(record, (time.time() - 900,) * 2)
        return self

    def failed(self, seconds: float = 60.0) -> "Scene":
        """Let its command have failed, so that it is tried again."""
        Exceptions(self.directory).add("exit-3", "The command has ended with 3.")
        attempts = FailedAttempts(self.directory)
        attempts.add("exit-3", "host-a", 1.0)
        attempts.wait(seconds)
        return self


RUNS, AGAIN, FAILING = (Status.RUNNING,), (Status.RUNNING, Status.RESTARTING), (Status.RUNNING, Status.FAILING)
CANCELLING = (Status.RUNNING, Status.CANCELLING)


def _never_led(scene: Scene) -> None:
    tree.create(scene.jobs.files, scene.job)


def _batches(scene: Scene) -> None:
    Checkpoints(scene.led(*RUNS).directory).completed("clean", 4, Metadata(duration_ms=500, rows=100))


def _paused(scene: Scene) -> Scene:
    pause(scene.admin, scene.job, Pause(1_000_000_000, "ann", "upgrade"))
    return scene


def _barred(scene: Scene) -> None:
    bar(scene.admin, scene.job, Bar("a", 4_000_000_000, "ann", "new disks"))


def _asked(scene: Scene, verb: str) -> None:
    Requests(scene.led(*RUNS).directory).ask("r1", verb, "ann", kept=True)
    scene.admin.ask_to_look(scene.job)


def _replica(scene: Scene) -> Scene:
    scene.led()
    (scene.path / REPORT).write_bytes(
        encoded(ReplicaReport("hdfs://there/jobs/orders", 1e9, [ReplicatedQuery("q", 4, 4)]))
    )
    return scene


def _mark(scene: Scene, *names: str) -> None:
    for name in names:
        (scene.path / name).mkdir(parents=True)


STATES: dict[str, tuple[str, Callable[[Scene], object]]] = {
    "never-led": ("was made, and never led", _never_led),
    "starting": ("leads, and its command starts", lambda it: it.led()),
    "running": ("runs", lambda it: it.led(*RUNS)),
    "batches": ("runs, and has completed batches", _batches),
    "taken-over": ("runs after a takeover", lambda it: (it.led(*RUNS), it.jobs.claim(it.job, "b:1"))),
    "reconciling": ("finds out what still runs", lambda it: it.led(Status.RUNNING, Status.RECONCILING)),
    "restarting": ("keeps failing, and waits for its next try", lambda it: it.led(*AGAIN).failed()),
    "due": ("keeps failing, and is about to try", lambda it: it.led(*AGAIN).failed(0)),
    "failing": ("stops its queries, because one has failed for good", lambda it: it.led(*FAILING)),
    "cancelling": ("is being cancelled", lambda it: it.led(*CANCELLING)),
    "no-process": ("ran, and all its processes were killed", lambda it: it.led(*RUNS).left()),
    "no-process-starting": ("was starting, and they were killed", lambda it: it.led().left()),
    "no-process-restarting": ("waited for a try, and they were killed", lambda it: it.led(*AGAIN).failed().left()),
    "no-process-failing": ("was failing, and they were killed", lambda it: it.led(*FAILING).left()),
    "no-process-cancelling": ("was being cancelled, and they were killed", lambda it: it.led(*CANCELLING).left()),
    "handed-back": ("ran, and its last process ended in order", lambda it: it.led(*RUNS).released()),
    "suspended": ("was suspended, and handed back", lambda it: it.led(Status.RUNNING, Status.SUSPENDED).released()),
    "failed": ("has failed for good", lambda it: it.led(*FAILING, Status.FAILED).failed().released()),
    "canceled": ("was cancelled", lambda it: it.led(*CANCELLING, Status.CANCELED).released()),
    "finished": ("has finished", lambda it: it.led(Status.RUNNING, Status.FINISHED).released()),
    "finished-killed": ("has finished, and was then killed", lambda it: it.led(Status.RUNNING, Status.FINISHED).left()),
    "paused": ("is paused, and runs", lambda it: _paused(it.led(*RUNS))),
    "paused-left": ("is paused, and its leader was killed", lambda it: _paused(it.led(*RUNS)).left()),
    "paused-free": ("is paused, and handed back", lambda it: _paused(it.led(*RUNS).released())),
    "draining": ("runs on a host that is being drained", lambda it: _barred(it.led(*RUNS))),
    "drained": ("was led by a host that is drained", lambda it: _barred(it.led(*RUNS).released())),
    "handing-over": ("is asked to hand over", lambda it: it.admin.ask_to_hand_over(it.led(*RUNS).job, "b")),
    "stopping": ("is asked to stop", lambda it: _asked(it, "stop")),
    "not-guarded": ("has queries that no takeover continues", lambda it: _mark(it.led(*RUNS), "unguarded=2~1")),
    "rewinding": ("is being rewound", lambda it: _mark(it.led(), "rewinding/clean/x")),
    "importing": ("is given a checkpoint from elsewhere", lambda it: _mark(it.led(), "importing/clean/x")),
    "stored": ("runs, and has a stored program", lambda it: _store(it.led(*RUNS))),
    "replicated.replica": ("is the replica of another, and kept", _replica),
    "left.replica": ("is a replica without a replicator", lambda it: _replica(it).released()),
    "promoted.replica": ("is a promoted replica", lambda it: _mark(_replica(it).released(), f"{PROMOTED}first")),
    "newer": ("has a state of a newer version", lambda it: _newer(it.led(*RUNS))),
    "damaged": ("lost its lease to somebody's hand", lambda it: _damage(it.led(*RUNS))),
}  # fmt: skip


def _store(scene: Scene) -> None:
    Programs(scene.directory).add(Program(["orders.py"], by="ann"), {})


def _newer(scene: Scene) -> None:
    scene.path.joinpath("status=RUNNING~2").rename(scene.path / "status=HIBERNATING~3")


def _damage(scene: Scene) -> None:
    (scene.path / "record" / scene.admin.lease(scene.job)[1].name).rmdir()


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Told(NamedTuple):
    job: str
    row: dict[str, Any]
    listed: list[str]
    show: Answer
    story: Answer
    leader: Answer
    queries: Answer
    api: dict[str, tuple[int, Any]]
    metrics: float | None


def ha(*words: str) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code([*words])
    return Answer(code, out.getvalue(), err.getvalue())


@contextmanager
def served() -> Iterator[tuple[Served, CollectorRegistry]]:
    with closing(Served()) as found:
        registry = CollectorRegistry()
        registry.register(_AgentMetrics(found.agent, EndedJobs(found.stores.files, 5)))
        yield found, registry


def gather(root: Path) -> dict[str, Told]:
    """Build the jobs below a root that the environment names, and ask all views."""
    root.mkdir(exist_ok=True)
    found: dict[str, Told] = {}
    with served() as (api, registry):
        for job, (_, build) in STATES.items():
            build(Scene(Led(root), JobAdmin(api.stores.files, None, 5), job))
        rows = {each["job"]: each for each in ha("job", "list", "--json").json}
        lines = ha("job", "list").out.splitlines()
        for job in STATES:
            asked = {part: api.get(f"/api/v1/jobs/{job}{part}") for part in ("", "/story", "/queries")}
            asked["all"] = next((200, each) for each in api.get("/api/v1/jobs")[1] if each["job"] == job)
            asked["/leader"] = _leader(api, job, led=rows[job]["holder"] is not None)
            found[job] = Told(
                job,
                rows[job],
                [each.removeprefix(f"{job}: ") for each in lines if each.startswith(f"{job}: ")],
                ha("job", "show", job),
                ha("job", "show", job, "--json"),
                ha("job", "leader", job),
                ha("job", "queries", job, "--json"),
                asked,
                registry.get_sample_value("ha_agent_job_led", {"job_name": job}),
            )
    return found


def _leader(api: Served, job: str, *, led: bool) -> tuple[int, Any]:
    """Ask the agent, which watches a lease for its time to live before it says that nobody renews it."""

    def asked() -> tuple[int, Any]:
        code, said = api.get(f"/api/v1/jobs/{job}/leader?wait=1")
        return code, said if code == 200 else {"leader": None}

    if job != "damaged":  # a reader keeps the last leader while there is no lease: nobody has taken over
        wait_until(lambda: (asked()[1]["leader"] is not None) == led, what=job)
    return asked()


def page(found: dict[str, Told]) -> str:
    rows = []
    for job, told in found.items():
        said = "<br>".join(told.listed) or "-"
        cells = (STATES[job][0], told.row["state"] or "?", told.row["lease"], said)
        rows.append(f"| {' | '.join(_short(each) for each in cells)} |")
    return HEAD + "\n".join(rows) + "\n"


START = re.compile(r"a standby takes over if there is one, else start `ha run \S+ -- COMMAND` on a host")


def _short(text: str) -> str:
    return START.sub("`START`", re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        hurried(Path(made), patch)
        PAGE.write_text(page(gather(Path(made) / "jobs")))
        sys.stderr.write(f"{PAGE}\n")
