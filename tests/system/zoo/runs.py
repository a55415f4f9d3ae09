"""Runs of a program: under the product or in a restart loop of plain Spark, and what is killed in them."""

import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from ha.drill.kill import descendants
from tests.system.zoo.declared import Program, kafka_settings
from tests.system.zoo.places import ZOO, Places

HA = (sys.executable, "-P", "-m", "ha.cli")
TIMINGS = {
    "HA_SESSION_TIMEOUT": "4",
    "HA_SNAPSHOTS": "off",
    "HA_STOP_GRACE": "5",
    "HA_CLASS_DATA": "true",
    "HA_HAND_OVER": "0.5",
}


class Run:
    def __init__(self, program: Program, places: Places, jars: Path, *, guarded: bool) -> None:
        self.program, self.places, self.jars, self.guarded = program, places, jars, guarded
        self.beside: Run | None = None
        self.job = f"{program.name.replace('_', '-')}-{places.name}"
        self.log = places.folder / "log"
        self.starts = 0
        self.ended: list[int] = []
        self.process: subprocess.Popen[bytes] | None = None
        checkpoints = {} if guarded else {"spark.sql.streaming.checkpointLocation": f"{places.base}/checkpoints"}
        conf = places.spark_conf(jars, **checkpoints, **kafka_settings(program))
        self.environment = {**places.variables(), **conf, **TIMINGS, "JOB": self.job}
        self.environment["FORMAT"] = "ha" if guarded else "text"
        if not guarded:
            self.environment = {k: v for k, v in self.environment.items() if not k.startswith("HA_")}

    @property
    def command(self) -> list[str]:
        file = str(ZOO / "programs" / f"{self.program.name}.py")
        words = [*shlex.split(self.program.command.format(zoo=ZOO, base=self.places.base)), file]
        if not self.guarded or self.program.under == "alone":
            return words
        options = ["--spark"] if self.program.under == "--spark" else []
        again = ["--again"] if self.program.ends else []
        return [*HA, "run", *again, *options, "--contender", f"c{self.starts}", self.job, "--", *words]

    def start(self) -> None:
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, cwd=self.places.folder, stdout=log, stderr=log
            )

    def start_beside(self) -> None:
        """Start another job with the same program, another input and the same output."""
        other = Run(self.program, self.places, self.jars, guarded=self.guarded)
        other.job, other.log = f"{self.job}-other", self.places.folder / "other.log"
        other.environment |= {"IN": self.environment["IN_B"], "JOB": other.job}
        other.start()
        self.beside = other

    def tick(self) -> bool:
        """Start it again if it has ended, as systemd or a loop of a shell does; returns whether it has."""
        if self.process is not None and self.process.poll() is None:
            return False
        if self.process is not None:
            self.ended.append(self.process.returncode)
        if self.program.ends or self.process is None or self.ended[-1] != 0:
            self.start()
        return True

    @property
    def finished(self) -> bool:
        return self.process is not None and self.process.poll() == 0

    def kill(self, victim: str) -> bool:
        """Kill -9 `driver`, `jvm` or `sidecar` (without a sidecar: all of them); returns whether it was there."""
        assert self.process is not None
        sidecar = self.guarded and self.program.under != "alone"
        if victim == "sidecar" and sidecar:
            chosen = [self.process.pid]
        else:
            family = [self.process.pid, *descendants(self.process.pid)]
            chosen = family if victim == "sidecar" else [each for each in family if _is(victim, each)]
        for each in chosen:
            _signal(each)
        return bool(chosen)

    def close(self) -> None:
        if self.beside is not None:
            self.beside.close()
        if self.process is None or self.process.poll() is not None:
            return
        for each in [self.process.pid, *descendants(self.process.pid)]:  # an end in order would take seconds
            _signal(each)
        self.process.wait(20)

    def logged(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return text + (self.beside.logged() if self.beside is not None else "")

    def listed(self, *, all_of_it: bool) -> str:
        if not self.guarded:
            return ""
        of_job = [line for line in self.ask("job", "list").splitlines() if self.job in line]
        more = [self.ask("job", "exceptions", self.job), self.ask("output", "verify", self.job)] if all_of_it else []
        return "\n".join([*of_job, *more])

    def ask(self, *words: str) -> str:
        told = subprocess.run(
            [*HA, *words], env=self.environment, capture_output=True, check=False, timeout=60, text=True
        )
        return told.stdout + told.stderr


def _is(victim: str, pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    if victim == "jvm":
        return words[0].endswith("java")
    product = "ha.cli" in words or "ha.sidecar.command.guard" in words
    return "python" in words[0] and not product and any("/zoo/programs/" in word for word in words)


def _signal(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
