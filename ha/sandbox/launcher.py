"""Launcher: runs Java programs, servers that stay and tools that end."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ha.hosts.cache import archive_path, intact
from ha.hosts.java import FLAGS, find_java
from ha.sandbox import faster_starts, jars
from ha.sandbox.polling import SandboxError, ran
from ha.sandbox.server_process import Identity, spawn
from ha.sandbox.state import Directory, replace_file

TOOL_TIMEOUT_S = 60.0

_CLASS_LIST = "classes.txt"

_LOG_CONFIGURATION = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class LaunchedProgram:
    """One call of Java."""

    main: str  # a class
    arguments: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    jars: tuple[Path, ...] = ()  # class path; empty for that of Hadoop and ZooKeeper


class Launcher:
    """The Java, the class path and the environment that all programs of one sandbox share."""

    def __init__(
        self, directory: Directory, user: str, progress: Callable[[str], None], properties: Mapping[str, str]
    ) -> None:
        self._directory, self._user, self.progress, self._properties = directory, user, progress, properties
        java = find_java()
        self.java = java.path
        self._jars = jars.classpath(java.path, progress)
        self._archive = archive_path(java.banner, self._jars)
        self._has_archive = intact(self._archive)
        self._log_configuration = directory.data / "log4j2.properties"

    def start(self, name: str, program: LaunchedProgram) -> Identity:
        """Start a server in a session of its own; its output goes to its log."""
        try:
            replace_file(self._log_configuration, _LOG_CONFIGURATION)
            return spawn(self._command(name, program), self._environment(), self._directory.log(name))
        except OSError as error:
            raise SandboxError(f"{name} cannot be started: {error}.") from error

    def run(self, name: str, program: LaunchedProgram, environment: Mapping[str, str] | None = None) -> str:
        """Run a tool to its end, for a minute at most, and return its output, which is kept as the log of that name."""
        log = self._directory.log(name)
        try:
            replace_file(self._log_configuration, _LOG_CONFIGURATION)
            variables = {**self._environment(), **(environment or {})}
            ended = ran(name, self._command(name, program), TOOL_TIMEOUT_S, variables, subprocess.STDOUT)
            log.write_text(ended.stdout, encoding="utf-8")
        except OSError as error:
            raise SandboxError(f"{name} cannot be run: {error}.") from error
        if ended.returncode != 0:
            raise SandboxError(f"{name} failed; {last_lines(log)}")
        return ended.stdout

    def prepare_faster_starts(self, progress: Callable[[str], None]) -> None:
        """Make the class data archive from what the running servers loaded, unless it is there."""
        lists = [path for path in self._directory.temporary.glob(f"*/{_CLASS_LIST}") if path.stat().st_size > 0]
        if self._has_archive or not lists:
            return
        # Without it everything works, only slower.
        with contextlib.suppress(SandboxError):
            faster_starts.make_archive(self._archive, [str(self.java), *FLAGS], self._jars, lists, progress)
            self._has_archive = True

    def _command(self, name: str, program: LaunchedProgram) -> list[str]:
        scratch = self._directory.temporary / name
        scratch.mkdir(parents=True, exist_ok=True)
        properties = {
            "log4j2.configurationFile": str(self._log_configuration),
            "java.io.tmpdir": str(scratch),
            **self._properties,
            **program.properties,
        }
        classpath = os.pathsep.join(map(str, [*(program.jars or self._jars), self._directory.conf]))
        return [
            *(str(self.java), *FLAGS, *(() if program.jars else (self._shared_classes(scratch),))),
            f"-XX:ErrorFile={self._directory.logs / f'{name}-crash.log'}",
            *(f"-D{key}={value}" for key, value in properties.items()),
            *("-cp", classpath, program.main, *program.arguments),
        ]

    def _shared_classes(self, scratch: Path) -> str:
        if self._has_archive:
            return f"-XX:SharedArchiveFile={self._archive}"
        return f"-XX:DumpLoadedClassList={scratch / _CLASS_LIST}"

    def _environment(self) -> Mapping[str, str]:
        # The caller's Hadoop settings are about another cluster.
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("HADOOP_", "HDFS_"))}
        return inherited | {"HADOOP_CONF_DIR": str(self._directory.conf), "HADOOP_USER_NAME": self._user}


def last_lines(log: Path) -> str:
    """Return the end of a log, introduced by its name, for an error message."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"its log {log} cannot be read."
    shown = "\n".join(f"  {line[:300]}" for line in lines[-8:])
    return f"the last lines of {log}:\n{shown}" if shown else f"its log {log} is empty."
