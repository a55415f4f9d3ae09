"""``ha replicate``: keeps a copy of a job's checkpoints on another file system, from which it can be promoted."""

import contextlib
import json
import signal
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
import msgspec

import ha
from ha.cli.adopt_export import led, refusals_as_errors, shown
from ha.cli.options import Seconds, json_option, printable, settings, stores
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from leader.errors import Fenced, LeaderError, NoLeader, NotLeader
from leader.job.admin import JobAdmin
from leader.layout.names import check_job
from store.clock import BOOT_CLOCK
from store.errors import Conflict, Invalid, NotFound, StoreError

if TYPE_CHECKING:
    from ha.metrics.replication import ReplicationMetrics
    from ha.spark.replication.replicator import QueryRound, Replicator

TRIES = 10
"""Rounds of --once: Spark may forget a file while it is moved."""

LEASE_S = 10.0
"""Time to get the lease of the replica with --once."""


@click.command()
@click.argument("job")
@click.option("--to", metavar="URI", required=True, help="Root of the jobs at the other side: its setting `files`.")
@click.option("--query", "queries", multiple=True, metavar="QUERY", help="Only this query; may be repeated.")
@click.option("--once", is_flag=True, help="End as soon as the replica has the newest batches.")
@click.option("--status", is_flag=True, help="Only say how far the replica is.")
@click.option(
    "--interval", type=Seconds(), default=1.0, show_default=True, metavar="SECONDS", help="Time between two rounds."
)
@click.option(
    "--rate",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="Move at most this many bytes in a second.  [default: no limit]",
)
@click.option(
    "--calls",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Ask the store of JOB at most this many times in a second.  [default: no limit]",
)
@click.option(
    "--retain",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Keep what the newest N batches that were moved need.",
)
@click.option(
    "--metrics-file",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write metrics for Prometheus's node exporter into this file after each round.",
)
@click.option("--quiet", is_flag=True, help="Say only what goes wrong.")
@click.option("--again", is_flag=True, help="Begin once more after the replica was promoted.")
@json_option
@stores
def replicate(
    job: str,
    to: str,
    queries: tuple[str, ...],
    once: bool,
    status: bool,
    interval: float,
    rate: int | None,
    calls: float | None,
    retain: int,
    metrics_file: str | None,
    quiet: bool,
    again: bool,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Keep a replica of the checkpoints of JOB below URI, on another file system; `ha promote` there makes it the job.

    It goes on until it is interrupted. Each round moves what the newest batch adds. JOB may run and change its leader,
    and is only read. Of several processes that replicate JOB to URI one does so; the others wait to take over. If it
    is killed, start it again: it goes on with what is missing.
    """
    if find_spec("pyarrow") is None:
        raise click.UsageError("Replicating needs pyarrow: pip install 'hybrid-ha[spark]'.")
    from ha.spark.replication.source import Budget  # noqa: PLC0415  # loads pyarrow

    with contextlib.closing(Stores(settings(files=files, zookeeper=zookeeper))) as opened:
        with refusals_as_errors():
            _check(opened, job, to)
        if status:
            with refusals_as_errors(changes=False):
                _print_status(opened, job, to, as_json=as_json)
            return
        replication = _Replication(opened, job, to, queries, retain, Budget(calls, rate), as_json=as_json)
        replication.metrics_file, replication.quiet = metrics_file, quiet
        if once:
            with refusals_as_errors():
                replication.once(again=again)
            return
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # gives the lease back
        replication.go_on(interval, again=again)


def _check(opened: Stores, job: str, to: str) -> None:
    from ha.checkpoints.trees import check_bulk  # noqa: PLC0415
    from ha.spark.replication.report import replica_of  # noqa: PLC0415

    check_job(replica_of(check_job(job)))
    with opened.open(to) as there:
        check_bulk(there.uri)
        check_bulk(opened.files.uri)
        if there.uri.rstrip("/") == opened.files.uri.rstrip("/"):
            raise Invalid(f"{to} is the root of job {job!r} itself: give that of the other side.")
    JobAdmin(opened.files, None, opened.timing.call_timeout).directory(job)  # raises if there is no such job


class _Replication:
    """The replication of one job by this process."""

    def __init__(
        self,
        opened: Stores,
        job: str,
        to: str,
        queries: tuple[str, ...],
        retain: int,
        budget: Any,
        *,
        as_json: bool,
    ) -> None:
        self._opened, self._job, self._to, self._queries = opened, job, to, queries
        self._retain, self._budget, self._as_json = retain, budget, as_json
        self._told: dict[str, str] = {}
        self.metrics_file: str | None = None
        self.quiet = False
        self._complained = ""
        self._metrics: ReplicationMetrics | None = None

    def once(self, *, again: bool) -> None:
        """Make rounds until one has nothing to complain of."""
        from ha.spark.replication.report import replica_of  # noqa: PLC0415

        with (
            shown(self._as_json) as told,
            led(replica_of(self._job), LEASE_S, self._to, "", "replicated") as leadership,
            self._replicator(leadership, again=again, told=told) as replicator,
        ):
            for _ in range(TRIES):
                done = self._round(replicator)
                if done and not any(each.problem for each in done):
                    return
        raise Conflict(
            f"{TRIES} rounds were not enough: {done[0].problem if done else 'the leader changes'} Run it again."
        )

    def go_on(self, interval: float, *, again: bool) -> None:
        """Make rounds for ever; another process may take over, and back."""
        from ha.spark.replication.replicator import Promoted  # noqa: PLC0415
        from ha.spark.replication.report import replica_of  # noqa: PLC0415

        while True:
            try:
                with (
                    ha.lead(replica_of(self._job), files=self._to, zookeeper="") as leadership,
                    self._replicator(leadership, again=again) as replicator,
                ):
                    again = False
                    while True:
                        self._round_or_complaint(replicator, leadership)
                        BOOT_CLOCK.sleep(interval)
            except Promoted:
                raise
            except (Fenced, NotLeader) as error:
                self._complain(f"it waits for its turn. {error}")
            except (StoreError, NoLeader) as error:
                self._complain(f"it tries again. {error}")
                BOOT_CLOCK.sleep(interval)

    def _round_or_complaint(self, replicator: "Replicator", leadership: Leadership) -> None:
        """Make a round; if the source cannot be read, keep the replica: whoever promotes it must not race with epochs.

        Raises:
            LeaderError: the replica is led by another process, or was promoted.
            StoreError: the leadership ends as well, because the store of the replica does not answer.
        """
        try:
            self._round(replicator)
        except (StoreError, NoLeader) as error:
            if not leadership.is_leader():
                raise
            self._complain(f"it tries again. {error}")

    def _complain(self, said: str) -> None:
        """Say it once, however often it happens in a row."""
        if said != self._complained:
            click.echo(f"{self._job}: {said}", err=True)
        self._complained = said

    @contextlib.contextmanager
    def _replicator(self, leadership: Leadership, *, again: bool, told: Any = None) -> "Iterator[Replicator]":
        from ha.spark.checkpoint_copy.copying import WORKERS  # noqa: PLC0415
        from ha.spark.replication.marks import unmark  # noqa: PLC0415
        from ha.spark.replication.replicator import Replicator  # noqa: PLC0415
        from ha.spark.replication.source import Source  # noqa: PLC0415

        timeout = self._opened.timing.call_timeout
        with (
            self._opened.open(self._opened.files.uri, workers=WORKERS) as here,
            self._opened.open(self._to, workers=WORKERS) as there,
        ):
            source = Source(JobAdmin(here, None, timeout), here, self._job, self._budget, self._queries)
            directory = JobAdmin(there, None, timeout).directory(leadership.job, leadership.own.leader)
            if again:
                unmark(directory)
            yield Replicator(source, there, leadership, directory, retained=self._retain, told=told)

    def _round(self, replicator: "Replicator") -> "list[QueryRound]":
        done = replicator.round()
        self._complained = ""
        self._print(done)
        if self.metrics_file is not None:
            from prometheus_client import CollectorRegistry  # noqa: PLC0415

            from ha.metrics.replication import ReplicationMetrics  # noqa: PLC0415

            self._metrics = self._metrics or ReplicationMetrics(CollectorRegistry(), self._job)
            for each in replicator.report.queries:
                self._metrics.set(each.name, each.level_at, each.behind)
            try:
                self._metrics.write(self.metrics_file)
            except OSError as error:
                raise LeaderError(f"{self.metrics_file} cannot be written: {error.strerror}.") from error
        return done

    def _print(self, done: "list[QueryRound]") -> None:
        for each in done:
            if self._as_json:
                from ha.spark.replication.report import today  # noqa: PLC0415

                if each.files or each.problem:
                    click.echo(json.dumps({"job": self._job, "at": today(), **asdict(each)}))
                continue
            said = _said(each)
            if self.quiet:
                if each.problem and self._told.get(each.query) != said:
                    click.echo(f"{self._job}: {printable(said)}", err=True)
            elif each.files or each.problem or each.query not in self._told:
                click.echo(f"{self._job}: {printable(said)}")
            self._told[each.query] = said


def _said(each: "QueryRound") -> str:
    batch = "has no batch yet" if each.batch is None else f"is at batch {each.batch}"
    if each.problem:
        return f"{each.query} {batch}. {each.problem}"
    if not each.files:
        return f"{each.query} {batch}: nothing to move"
    behind = (each.newest or 0) - (each.batch or 0)
    more = f", {behind} behind" if behind > 0 else ""
    anew = ", begun anew" if each.anew else ""
    moved = f"{each.files} files, {each.bytes:,} bytes, {each.calls} calls, {each.seconds:.1f} s"
    return f"{each.query} {batch}{more}: {moved}{anew}"


def _print_status(opened: Stores, job: str, to: str, *, as_json: bool) -> None:
    from ha.spark.replication.marks import promoted  # noqa: PLC0415
    from ha.spark.replication.report import REPORT, decoded, replica_of, today  # noqa: PLC0415

    with opened.open(to) as there:
        try:
            directory = JobAdmin(there, None, opened.timing.call_timeout).directory(replica_of(job))
            ended, report = promoted(directory), decoded(directory.read(REPORT))
        except (NoLeader, NotFound) as error:
            raise LeaderError(
                f"There is no replica of job {job!r} at {to}, or no round has ended there yet."
            ) from error
    now = today()
    if as_json:
        rows = [
            {**msgspec.to_builtins(each), "behind": each.behind, "age": now - each.level_at if each.level_at else None}
            for each in report.queries
        ]
        click.echo(
            json.dumps({"job": job, "source": report.source, "at": report.at, "promoted": ended, "queries": rows})
        )
        return
    written = datetime.fromtimestamp(report.at, UTC).isoformat(timespec="seconds")
    click.echo(f"{job}: replica of {report.source} as of {written}{', promoted' if ended else ''}")
    for each in report.queries:
        batch = "no batch" if each.batch is None else f"batch {each.batch}"
        level = f"had all {max(0.0, now - each.level_at):.0f} s ago" if each.level_at else "never had all"
        problem = f". {each.problem}" if each.problem else ""
        begun = f", batch {each.begun} begun" if (each.begun or 0) > (each.newest or 0) else ""
        click.echo(f"  {printable(each.name)}  {batch}, {each.behind} behind{begun}, {level}{printable(problem)}")
