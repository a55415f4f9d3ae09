"""Dry run: the program's own process, with the cut, until each query that has a checkpoint has told how it went."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ha.config.variables import OF_SIDECAR
from ha.leadership.throw_away import VARIABLE
from ha.preflight import cut
from ha.preflight.scratch import Copy, Scratch
from ha.preflight.verdict import End, Told, told
from ha.sidecar.spark_overlay import DEFAULTS, check_command, spark_environment, users_configuration
from ha.sidecar.spark_submit import check_place
from ha.spark.failures import failure
from leader.errors import InvalidSettings
from leader.layout.names import SPARK
from store.clock import BOOT_CLOCK, now

POLL_S = 0.1

SETTLE_S = 20.0
"""For so long a further query is waited for after the last one: programs start all of them one after the other."""

WAITING_S = 2.0
"""The same once the program's main thread waits for queries to end."""

GRACE_S = 10.0
"""Time for the program to end, and to remove its temporary files."""

MOST_LOG = 100_000
"""Characters at the end of the program's output in which its error is looked for."""


class DryRun:
    """One run of a program over the copies."""

    def __init__(self, scratch: Scratch, job: str, copies: Collection[Copy], folder: Path) -> None:
        """Start nothing yet.

        Args:
            scratch: the throw-away job.
            job: its name.
            copies: of its queries.
            folder: an empty directory of this host, for the run's own files.
        """
        self._scratch, self._job, self._copies, self._folder = scratch, job, copies, folder
        self._report, self._log = folder / "report", folder / "log"

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], directory: Path, timeout: float
    ) -> tuple[dict[str, Told], End]:
        """Run the program.

        Args:
            command: program and arguments.
            environment: the one that it would have.
            directory: its working directory.
            timeout: seconds, after which it is ended.

        Returns:
            what was told of each query; and how it has ended.

        Raises:
            InvalidSettings: the program cannot be started here, or its driver would not be on this host.
            OSError: a file of this host cannot be written.
        """
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
        hook = self._folder / "hook"
        hook.mkdir()
        shutil.copyfile(cut.__file__, hook / "sitecustomize.py")
        self._report.touch()
        plan: cut.Plan = {
            "mark": self._scratch.mark,
            "idle": f"{self._scratch.uri.rstrip('/')}/idle",
            "report": str(self._report),
            "queries": {
                each.query: {"batch": each.batch, "settings": list(each.offsets.settings)} for each in self._copies
            },
        }
        (hook / "plan.json").write_text(json.dumps(plan))
        own = {
            **{name: value for name, value in environment.items() if name not in OF_SIDECAR},
            "HA_JOB": self._job,
            "HA_FILES": self._scratch.uri,
            "HA_ZOOKEEPER": "",
            "HA_HISTORY": "",
            "HA_SNAPSHOTS": "off",
            "HA_LEADER_DIRECTORY": self._scratch.leader_directory,
            VARIABLE: self._scratch.uri,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(hook), environment.get("PYTHONPATH", "")))),
        }
        overlay = self._folder / "conf"
        own |= spark_environment(overlay, own, spark=True)
        own.pop("HA_SPARK_JVM")
        with (overlay / DEFAULTS).open("a") as file:
            file.write(f"spark.sql.streaming.checkpointLocation {self._scratch.leader_directory}/{SPARK}\n")
            file.write(f"{cut.GUARD} ha.preflight.Cut\n")
        return own

    def _watch(self, program: "subprocess.Popen[bytes]", timeout: float) -> End:
        deadline, seen, last = now() + timeout, 0, now()
        while now() < deadline:
            code = program.poll()
            said = self._told()
            if all(each.query in said and said[each.query].over for each in self._copies):
                return End("all were seen.")
            if code is not None:
                return End(
                    f"it has ended with code {code}.", failure("", self._log.read_text(errors="replace")[-MOST_LOG:])
                )
            size = self._report.stat().st_size
            if size != seen:
                seen, last = size, now()
            busy = any(not each.over for each in said.values())
            settle = WAITING_S if "" in said and said[""].waiting else SETTLE_S
            if said and not busy and now() > last + settle:
                return End("the others are started.")
            BOOT_CLOCK.sleep(POLL_S)
        return End(f"{timeout:g} s are over.")

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
