"""A lane while it runs: one pytest process in a session of its own, what it has said, and why it is ended."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.gate import processes
from tests.gate.plan import files_of

ROOT = Path(__file__).parents[2]
COLLECTING_S = 120.0
BESIDE_S = 60.0
"""What setup, teardown and the way out of a test may take beyond its own limit, before it is said to hang."""
LEAVING_S = 120.0


@dataclass(slots=True)
class Result:
    """What became of one test."""

    id: str
    outcome: Literal["passed", "failed", "skipped"]
    at: float
    seconds: float
    lane: str = ""
    error: str = ""
    text: str = ""
    skipped: str = ""
    cores: float = 0.0  # seconds of processors since its setup, also of the processes that it has waited for


@dataclass(slots=True)
class Running:
    """A lane's process.

    Attributes:
        name: of the lane.
        ids: of the tests that it is to run.
        folder: of its output and record.
        slowness: by how much its limits are longer than usual.
        beside_s: what setup and teardown of a test may take beyond the test's limit.
        limit_s: in place of the tests' own limits.
    """

    name: str
    ids: Sequence[str]
    folder: Path
    slowness: float = 1.0
    beside_s: float = BESIDE_S
    limit_s: float | None = None
    results: dict[str, Result] = field(default_factory=dict)
    code: int | None = None  # of its process; read before the last lines of its record are
    core_seconds: float = 0.0  # of its process, and of those that it has waited for; known at its end
    test: str = ""  # that has begun and not ended
    doing: str = "collecting"
    since: float = field(default_factory=time.monotonic)
    _limit: float = COLLECTING_S
    _ended: int | None = None
    _read: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def record(self) -> Path:
        return self.folder / f"{self.name}.jsonl"

    @property
    def stacks(self) -> Path:
        return self.record.with_suffix(".stacks")

    def begin(self, environment: Mapping[str, str], temporary: Path) -> None:
        """Start it."""
        self.since = time.monotonic()
        only = self.folder / f"{self.name}.json"
        only.write_text(json.dumps(list(self.ids)))
        command = [
            sys.executable, "-m", "pytest", f"--only={only}", f"--record={self.record}",
            f"--basetemp={temporary / self.name}", "--color=no", "-p", "no:cacheprovider", *files_of(self.ids),
        ]  # fmt: skip
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, **environment, processes.LANE: self.name},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def look(self) -> str:
        """Read what it has written; returns why it must be ended, or nothing."""
        before = _of_children()
        self.code = code = self._process.poll() if self._process is not None else None
        self.core_seconds += _of_children() - before
        with self.record.open("a+") as lines:
            lines.seek(self._read)
            text = lines.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole.encode())
        for line in whole.splitlines():
            self._heard(json.loads(line))
        if code is not None and code != self._ended:
            return f"DIED: {ended_by(code)}, {self._place()}"
        if code is None and time.monotonic() - self.since > self._limit * self.slowness:
            return f"HANGS: for {time.monotonic() - self.since:.0f} s {self._place()}"
        return ""

    @property
    def processes(self) -> list[int]:
        return processes.of_lane(os.environ[processes.RUN], self.name)

    def end(self) -> None:
        """End it with all that it has started."""
        processes.end(lambda: self.processes)
        if self._process is not None:
            self._process.wait(COLLECTING_S)

    def last_lines(self, count: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def _place(self) -> str:
        return f"while it was {self.doing} {self.test}".rstrip()

    def _heard(self, line: Mapping[str, Any]) -> None:
        self.since = line["at"]
        if "collected" in line:
            self.doing, self._limit = "beginning", COLLECTING_S
        elif "begins" in line:
            self.test, self.doing, self._limit = (
                line["begins"],
                "in setup of",
                (self.limit_s or line["limit"]) + self.beside_s,
            )
        elif "ended" in line:
            self._ended, self.test, self.doing, self._limit = line["ended"], "", "on its way out", LEAVING_S
        else:
            self._note(line)
            if line["when"] == "teardown":
                self.test, self.doing = "", f"after {line['id']}"
            elif line["outcome"] != "passed" or line["when"] == "call":
                self.doing = "in teardown of"
            else:
                self.doing = "in the call of"

    def _note(self, line: Mapping[str, Any]) -> None:
        if line["when"] == "setup" and line["outcome"] == "passed":
            return  # what dies after that has not passed
        before = self.results.get(line["id"])
        now = Result(
            line["id"], line["outcome"], line["at"], line["seconds"], self.name,
            line["error"] or "", line["text"] or "", line["skipped"] or "", line["cores"],
        )  # fmt: skip
        if before is not None:
            now.seconds += before.seconds
            if before.outcome == "failed":  # teardown makes nothing good, and may have more to say
                now.outcome, now.at = before.outcome, before.at
                now.error, now.text = f"{before.error}\n{now.error}".strip(), f"{before.text}\n{now.text}".strip()
            elif now.outcome == "passed":
                now.outcome, now.skipped = before.outcome, before.skipped
        self.results[line["id"]] = now


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ended_by(code: int) -> str:
    return f"its process was ended by signal {-code}" if code < 0 else f"its process has ended with {code}"
