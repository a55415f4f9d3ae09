"""Runs the demo; exits with 1 if a check fails. It leaves files only in ``build/``."""

import json
import shutil
import signal
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from examples.demo.feed import Feeder, count_words, texts
from examples.demo.lookups import Reader
from examples.demo.participant import Participant
from examples.demo.story import DemoError, Story
from examples.demo.terminal import Terminal
from examples.demo.topic_act import TopicAct
from ha.drill.clients import batches_done, read_counts
from ha.drill.environment import DrillError
from ha.drill.runner import alone
from ha.history import edits
from ha.history.checker import check
from ha.history.events import Event, Violation, load
from ha.hosts.host_error import HostError
from ha.sandbox.sandbox import Sandbox
from store.bounded import BoundedFiles
from store.open import open_files

JOB = "word-count"
BUILD = Path("build")
SESSION_TIMEOUT = 6.0
FILES = 150
FEED_EVERY = 0.7
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DRIVER = Path(__file__).parent.parent / "word_count.py"


class Demo:
    """One run of the demo."""

    def __init__(self, sandbox: Sandbox, terminal: Terminal, logs: Path) -> None:
        self._terminal = terminal
        self._sandbox = sandbox
        self._logs = logs
        self._history = (logs / "history").absolute()
        self._environment = {**sandbox.environment(), "HA_HISTORY": str(self._history)}
        self._root = self._environment["HA_FILES"].rsplit("/", 1)[0]
        self._files: BoundedFiles = open_files(f"{self._root}/demo")
        self._feeder = Feeder(self._files, "input", texts(FILES), FEED_EVERY)
        settings = {name: self._environment[f"HA_{name.upper()}"] for name in ("files", "zookeeper", "history")}
        # It shows which store answers, so it does not use the agent of the sidecars.
        self._reader = Reader(JOB, {**settings, "snapshots": "off"})
        self._story = Story(
            terminal,
            sandbox,
            self._reader,
            self._start,
            lambda: batches_done(self._files, "output"),
            lambda: len(self._feeder.fed),
        )

    def run(self) -> dict[str, Any]:
        """Tell the story, and return the results of the checks."""
        for directory in ("input", "output"):
            self._files.call("prepare", lambda files, directory=directory: _prepare(files, directory), 10.0)  # type: ignore[misc]
        self._reader.start()
        self._feeder.start()
        try:
            self._story.begin()
            self._story.kill_the_leader()
            self._story.stop_zookeeper()
            self._story.freeze_the_leader()
            self._feeder.stop()
            self._reader.stop()
            self._terminal.chapter(f"No more files after {len(self._feeder.fed)}: the job may finish.")
            self._files.call("stop", lambda files: files.write("input/_STOP", b""), 30.0)
            codes = self._story.end()
        finally:
            self._feeder.stop()
            self._reader.stop()
            for participant in self._story.participants.values():
                participant.end()
        return self._report(codes)

    def _start(self, name: str) -> Participant:
        driver = [
            sys.executable,
            str(DRIVER),
            "--input",
            f"{self._root}/demo/input",
            "--output",
            f"{self._root}/demo/output",
        ]
        environment = {
            **self._environment,
            "HA_SESSION_TIMEOUT": str(SESSION_TIMEOUT),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONUNBUFFERED": "1",
        }
        return Participant(name, JOB, driver, environment, self._logs)

    def _report(self, codes: list[int | None]) -> dict[str, Any]:
        findings, lookups = self._story.findings, self._reader.lookups
        expected = count_words(self._feeder.fed)
        counted, job_masters = read_counts(self._files, "output")
        kill = findings.takeovers[0]
        total, differ = sum(expected.values()), _difference(counted, expected)
        asked, slowest = sum(lookups.by_source.values()), lookups.slowest
        events = self._read_history()
        violations = check(events, tolerance=edits.TOLERANCE)
        checks = {
            "words equal": (
                counted == expected,
                f"{sum(counted.values())} counted, {total} expected; {differ} of {len(expected)} distinct ones differ",
            ),
            "no lookup failed": (
                not lookups.failed,
                f"{asked} lookups, {len(lookups.failed)} failed, slowest {slowest:.2f} s",
            ),
            "no reader went back": (lookups.went_back == 0, f"{lookups.went_back} times"),
            "takeover after kill -9": (
                kill.seconds <= SESSION_TIMEOUT + 1,
                f"{kill.seconds:.1f} s, at most {SESSION_TIMEOUT + 1:.0f} s",
            ),
            "the killed sidecar's driver died with it": (findings.orphans == 0, f"{findings.orphans} processes left"),
            "ZooKeeper's outage moved no leader": (
                findings.changes_from_outage == 0,
                f"{findings.changes_from_outage} changes, lookups {findings.outage_sources}",
            ),
            "the zombie wrote nothing": (
                (bool(findings.zombie_refusals) or findings.zombie_died) and counted == expected,
                f"HDFS refused {len(findings.zombie_refusals)} of its writes, and the counts are right"
                if findings.zombie_refusals
                else "its driver ended of a call that it was frozen in, and the counts are right",
            ),
            "executors knew their job master": (len(job_masters) >= 2, ", ".join(sorted(job_masters))),  # noqa: PLR2004
            "history keeps every guarantee": (not violations, f"{len(events)} events, {len(violations)} violations"),
            "the job finished": (set(codes) == {0}, f"exit codes {codes}"),
        }
        checks |= TopicAct(self._sandbox, self._terminal, self._logs).run()
        self._terminal.chapter("What was to hold:")
        for name, (passed, detail) in checks.items():
            self._terminal.check(name, passed, detail)
        return {
            "passed": all(passed for passed, _ in checks.values()),
            "checks": {name: {"passed": passed, "detail": detail} for name, (passed, detail) in checks.items()},
            "seconds": round(self._terminal.seconds, 1),
            "session_timeout_seconds": SESSION_TIMEOUT,
            "takeovers": [vars(takeover) for takeover in findings.takeovers],
            "leader_changes": len(findings.takeovers),
            "leader_changes_from_zookeeper_outage": findings.changes_from_outage,
            "lookups_by_source": dict(lookups.by_source),
            "lookups_during_outage": findings.outage_sources,
            "failed_lookups": len(lookups.failed),
            "slowest_lookup_seconds": round(lookups.slowest, 3),
            "zombie": {
                "epoch": findings.zombie_epoch,
                "processes_frozen": findings.zombie_processes,
                "writes_refused": len(findings.zombie_refusals),
                "refusals": findings.zombie_refusals,
            },
            "history": _told(events, violations),
            "files_fed": len(self._feeder.fed),
            "batches": batches_done(self._files, "output"),
            "words_expected": total,
            "words_counted": sum(counted.values()),
            "distinct_words": len(expected),
            "job_masters_reported_by_executors": dict(job_masters),
        }

    def _read_history(self) -> list[Event]:
        """Check the history of the processes against what HDFS has executed."""
        edits.save(self._sandbox.edits(), self._environment["HA_FILES"], JOB, self._history)
        return load(self._history)


def _told(events: list[Event], violations: list[Violation]) -> dict[str, Any]:
    """Return what the history says: how many events of each kind, and what breaks a guarantee."""
    return {
        "events": dict(sorted(Counter(type(event).__name__ for event in events).items())),
        "violations": [asdict(violation) for violation in violations],
    }


def _prepare(files: Any, directory: str) -> None:
    files.make_root()
    files.make_directory(directory)


def _difference(counted: Counter[str], expected: Counter[str]) -> int:
    return sum(counted[word] != expected[word] for word in counted.keys() | expected.keys())


def main() -> int:
    """Run it in a fresh sandbox under ``build/``."""
    terminal = Terminal()
    for number in ENDING:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        with alone(BUILD):
            report = _run(terminal, BUILD / "demo")
    except (DemoError, DrillError, HostError) as error:
        terminal.check("the demo", passed=False, detail=str(error))
        return 1
    (BUILD / "demo.json").write_text(json.dumps(report, indent=2) + "\n")
    terminal.event(f"The figures are in {BUILD / 'demo.json'}, the logs in {BUILD / 'demo'}.")
    return 0 if report["passed"] else 1


def _run(terminal: Terminal, logs: Path) -> dict[str, Any]:
    sandbox = Sandbox(logs / "sandbox")
    sandbox.down()  # a demo that was killed has left it
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    terminal.chapter("A sandbox of real ZooKeeper and real HDFS starts.")
    try:
        sandbox.up(progress=terminal.event)
        return Demo(sandbox, terminal, logs).run()
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C would leave servers behind
        sandbox.down()


if __name__ == "__main__":
    sys.exit(main())
