"""Example: one of the examples as users run it, with its sidecars, input and output."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import ha
from ha.drill.kill import descendants
from leader.errors import LeaderError
from leader.lookup.answers import Answer
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import files_of, names

EXAMPLES = Path(__file__).parents[3] / "examples"


class Example:
    def __init__(self, program: str, root: str, zookeeper: str, logs: Path, *options: str) -> None:
        """Make the input directory.

        Args:
            program: the example's file.
            root: directory of the jobs.
            zookeeper: as in the settings.
            logs: a directory for the logs of the sidecars.
            options: for the program.
        """
        name = uuid.uuid4().hex[:8]
        self.job, self.files, self.zookeeper, self.logs = f"{Path(program).stem}-{name}", root, zookeeper, logs
        self.input, self.output = f"{root}-demo/{name}/in", f"{root}-demo/{name}/out"
        self.program = [sys.executable, str(EXAMPLES / program), "--input", self.input, "--output", self.output]
        self.program += options
        with files_of(self.input) as do:
            do(lambda files: files.make_root())

    def add(self, *texts: str, folder: str = "") -> None:
        with files_of(f"{self.input}/{folder}".rstrip("/")) as do:
            do(lambda files: files.make_root())
            for text in texts:
                do(lambda files, text=text: files.write(f"{uuid.uuid4().hex}.txt", text.encode()))  # type: ignore[misc]

    def stop(self) -> None:
        with files_of(self.input) as do:
            do(lambda files: files.write("_STOP", b""))

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "HA_FILES": self.files, "HA_ZOOKEEPER": self.zookeeper}

    @contextmanager
    def sidecar(self, name: str) -> Iterator["subprocess.Popen[bytes]"]:
        command = [
            *(sys.executable, "-m", "ha.cli", "run", self.job),
            *("--endpoint", f"jobmaster={name}:1", "--contender", name, "--", *self.program),
        ]
        with (self.logs / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE_S)

    def leader(self, client: ha.Client) -> Answer | None:
        with suppress(LeaderError):
            return client.leader(self.job)
        return None

    def batches(self) -> list[str]:
        try:
            return names(self.output)
        except Exception:  # noqa: BLE001  # the driver makes the directory
            return []

    def tell(self) -> None:
        for log in sorted(self.logs.glob("*.log")):
            sys.stdout.write(f"--- {log.name}\n{log.read_text()[-3000:]}\n")


def driver_of(sidecar: "subprocess.Popen[bytes]") -> int:
    """Return the process id of the program that a sidecar runs; 0 if it runs none."""
    family = descendants(sidecar.pid)  # the sidecar, its guard, the program, the program's JVM, ...
    return family[2] if len(family) > 2 else 0
