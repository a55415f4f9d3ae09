"""Check: the pre-flight of one program against all checkpoints of a job, by one dry run of its own process."""

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ha.config.stores import Stores
from ha.hook import run_hook
from ha.leadership.dry_run_job import VARIABLE
from ha.preflight import sink_cut
from ha.preflight.queries import queries_of
from ha.preflight.scratch import Copy, Scratch, scratch
from ha.preflight.verdict import DryRunEnd, PreflightProblem, PreflightVerdict, Told, judge, told
from ha.program.variables import PROGRAM
from ha.sidecar.command.jvm_watch import UNHOOKED
from ha.sidecar.command.spark_overlay import DEFAULTS, check_command, spark_environment, users_configuration
from ha.sidecar.command.spark_submit import check_place
from ha.spark.checkpoint_tools.copying import CopyProgress
from ha.spark.queries.query_failures import Failure, failure
from leader.errors import InvalidSettings
from leader.layout.names import SPARK
from store.clock import BOOT_CLOCK, now
from store.errors import Invalid

POLL_S = 0.1

SETTLE_S = 20.0  # a further query is waited for so long: programs start all of them one after the other
WAITING_S = 2.0  # the same once the program's main thread waits for queries to end
GRACE_S = 10.0  # time for the program to end, and to remove its temporary files
MOST_LOG = 100_000  # characters at the end of the program's output in which its error is looked for


class DryRun:
    """One run of a program over the copies of a job's queries; its own files are in an empty folder of this host."""

    def __init__(self, scratch: Scratch, job: str, copies: Collection[Copy], folder: Path) -> None:
        self._scratch, self._job, self._copies, self._folder = scratch, job, copies, folder
        self._report, self._log = folder / "report", folder / "log"

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], directory: Path, timeout: float
    ) -> tuple[dict[str, Told], DryRunEnd]:
        """Run the program, so many seconds at most; return the reports of each query, and how the process has ended."""
        # InvalidSettings: the program cannot be started here, or its driver would not be on this host.
        users = users_configuration(environment)
        check_place(command, environment, users / DEFAULTS if users is not None else None)
        check_command(command, warm=False)
        prepared = self._prepare(environment)
        with self._log.open("wb") as log:
            try:
                program = subprocess.Popen(
                    list(command), cwd=directory, env=prepared, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise InvalidSettings(
                    f"{command[0]!r} cannot be started on this host ({error.strerror}): check the program where its "
                    "sidecars run, or leave the check out with --no-preflight."
                ) from error
        try:
            end = self._watch(program, timeout)
        finally:
            _end(program)
        return self._told(), end

    def _prepare(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Write the run's files, and return the environment of its process."""
        self._report.touch()
        plan: sink_cut.Plan = {
            "mark": self._scratch.mark,
            "idle": f"{self._scratch.uri.rstrip('/')}/idle",
            "report": str(self._report),
            "queries": {
                each.query: {"batch": each.batch, "settings": list(each.offsets.settings)} for each in self._copies
            },
        }
        own = {
            **{name: value for name, value in environment.items() if name not in PROGRAM},
            "HA_JOB": self._job,
            "HA_FILES": self._scratch.uri,
            "HA_ZOOKEEPER": "",
            "HA_HISTORY": "",
            "HA_SNAPSHOTS": "off",
            "HA_LEADER_DIRECTORY": self._scratch.leader_directory,
            VARIABLE: self._scratch.uri,
        }
        overlay = self._folder / "conf"
        guard = {name: str(self._folder / name) for name in ("file", "end")}
        guard |= {"checkpoints": f"{self._scratch.leader_directory}/{SPARK}"}
        hooks = {sink_cut.__file__: plan, run_hook.__file__: guard}
        own |= spark_environment(overlay, own, spark=True, hooks=hooks)
        own.pop("HA_SPARK_JVM")
        with (overlay / DEFAULTS).open("a") as file:
            file.write(f"spark.sql.streaming.checkpointLocation {self._scratch.leader_directory}/{SPARK}\n")
            file.write(f"{sink_cut.GUARD} {sink_cut.NO_CUT}\n")
        return own

    def _watch(self, program: "subprocess.Popen[bytes]", timeout: float) -> DryRunEnd:
        deadline, seen, last = now() + timeout, 0, now()
        while now() < deadline:
            code = program.poll()
            said = self._told()
            if all(each.query in said and said[each.query].over for each in self._copies):
                return DryRunEnd("all were seen.")
            if code is not None:
                return DryRunEnd(f"it has ended with code {code}.", self._failure())
            size = self._report.stat().st_size
            if size != seen:
                seen, last = size, now()
            busy = any(not each.over for each in said.values())
            settle = WAITING_S if "" in said and said[""].waiting else SETTLE_S
            if said and not busy and now() > last + settle:
                return DryRunEnd("the others are started.")
            BOOT_CLOCK.sleep(POLL_S)
        return DryRunEnd(f"{timeout:g} s are over.")

    def _failure(self) -> Failure:
        log = self._log.read_text(errors="replace")[-MOST_LOG:]
        return Failure("", *UNHOOKED) if sink_cut.NO_CUT in log else failure("", log)

    def _told(self) -> dict[str, Told]:
        data = self._report.read_bytes()
        return told(data[: data.rfind(b"\n") + 1].splitlines())


def _end(program: "subprocess.Popen[bytes]") -> None:
    """End the program with all processes that it has started."""
    for number, grace in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        with suppress(ProcessLookupError):
            os.killpg(program.pid, number)
        with suppress(subprocess.TimeoutExpired):
            program.wait(grace)
            break
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


TIMEOUT_S = 300.0  # of the program's run: its session has to start, and states to load


class Preflight(msgspec.Struct, frozen=True):
    """The result for a job: a verdict for each query that has a checkpoint."""

    job: str
    fits: bool
    queries: list[PreflightVerdict]


def preflight(
    stores: Stores,  # those of the job
    job: str,
    command: Sequence[str],  # the program and its arguments
    environment: Mapping[str, str],  # the one that it would have
    directory: Path,  # its working directory
    *,
    timeout: float = TIMEOUT_S,  # seconds for its run; the copies take what they take
    without: Collection[str] = (),  # queries that the program has dropped on purpose
    copying: Callable[[CopyProgress], object] | None = None,  # told of the progress of each copy, from any thread
) -> Preflight:
    """Return whether a program would restart from the checkpoints of a job, which may run and stays unchanged."""
    verdicts: dict[str, PreflightVerdict] = {}
    if not (names := queries_of(stores, job, without)):
        return Preflight(job, fits=True, queries=[])
    with scratch(stores, job) as place:
        copies = []
        for query in names:
            try:
                copy = place.copy(query, copying)
            except Invalid as error:
                hint = (
                    f"`ha checkpoint verify {job} {shlex.quote(query)}` says which batches can be "
                    "continued, and how to go back"
                )
                verdicts[query] = PreflightVerdict(
                    query, fits=False, problems=[PreflightProblem("checkpoint", f"{error}", hint)]
                )
                continue
            if copy is None:
                verdicts[query] = PreflightVerdict(
                    query, fits=True, notes=["No batch is committed: it starts from scratch."]
                )
            else:
                copies.append(copy)
        if copies:
            with tempfile.TemporaryDirectory(prefix="ha-preflight-") as folder:
                run = DryRun(place, job, copies, Path(folder))
                said, end = run.run(command, environment, directory, timeout)
            for copy in copies:
                mine = said.get(copy.query, Told())
                verdicts[copy.query] = judge(copy, mine, place.layouts(copy.query) if mine.begun else {}, end)
    found = [verdicts[each] for each in names]
    return Preflight(job, all(each.fits for each in found), found)
