"""Class data of Spark: an archive of its classes as a JVM wants them in memory, so that drivers start sooner.

It is made once for each host, Java and Spark: in the background, by a driver that rehearses a small query on the real
stores (:mod:`ha.sidecar.command.class_training`). After a fault, which is logged, the command starts without it. A JVM
ignores an archive of other jars; the cache's checksum keeps damaged ones away.

A JVM compares class paths as far as it needs them and allows no directory among the archived ones. Spark puts its
configuration directory first. So its jars are named once more, before that: ``spark.driver.extraClassPath``.
"""

import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ha.hosts.background import in_background
from ha.hosts.cache import archive_path, cached, forget_old, intact
from ha.hosts.host_error import HostError
from ha.hosts.java import find_java
from ha.program.variables import PROGRAM
from ha.sidecar.command.spark_overlay import spark_environment
from ha.sidecar.command.spark_submit import SUBMIT

NAME = "spark-classes"
TRAINING = Path(__file__).with_name("class_training.py")
TRAINING_S = 600.0  # longest time for making an archive; 15 s on an idle machine, but it has the lowest priority
LOOK_S = 2.0  # longest wait for a look into the cache: 0.3 s on an idle machine, for Java's version and a checksum
# An option of the training: a fifth less of a processor's time. It chooses no collector: a site may have chosen another
# in spark-defaults.conf, and a JVM that is told of two does not start.
BRIEF = "-XX:TieredStopAtLevel=1"
QUIET = "-Xlog:cds*=off -Xlog:class+path*=off"  # options of Java: say nothing of an archive that does not fit
_log = logging.getLogger("ha")


class ClassData:
    """The archive for the Spark of one command."""

    def __init__(self, command: Sequence[str], files: str, environment: Mapping[str, str] = os.environ) -> None:
        """Do nothing yet. The training of that command's Spark is beside the directory of jobs."""
        self._command = list(command)
        self._files = files
        self._environment = environment
        self._lock = threading.Lock()
        self._training: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._looked = threading.Event()
        self.jars: Path | None = None
        self.archive: Path | None = None  # the archive, once it is known to be whole; until then None

    def begin(self) -> None:
        """Look for the archive, and make it if there is none; on a thread of its own."""
        threading.Thread(target=self.find, name="ha-class-data", daemon=True).start()

    def find(self) -> None:
        """Look for the archive, and make it if there is none; what goes wrong is logged."""
        try:
            self.archive = self._found()
        except (HostError, OSError, RuntimeError) as error:  # the last: there is no home directory
            if not self._closed:  # else no command starts any more, and what was being made was ended
                _log.warning("The command starts without an archive of Spark's classes: %s", error)
        finally:
            self._looked.set()

    def close(self) -> None:
        """End what is being made."""
        with self._lock:
            self._closed = True
            if self._training is not None:
                with suppress(ProcessLookupError):
                    os.killpg(self._training.pid, signal.SIGKILL)

    def options(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that make a driver use the archive; none if there is no archive yet."""
        # A look that has begun is waited for, because an archive saves more time than that; the making never is.
        self._looked.wait(LOOK_S)
        if self.archive is None:
            return {}
        return _java_options(f"-XX:SharedArchiveFile={shlex.quote(str(self.archive))} -Xshare:auto", environment)

    def _found(self) -> Path:
        jars = jars_of(self._command, self._environment)
        if jars is None:
            raise HostError("no Spark is found beside the command, in SPARK_HOME or on the search path.")
        self.jars = jars
        java = find_java()
        archive = archive_path(java.banner, sorted(jars.glob("*.jar")), NAME)
        if intact(archive):
            return archive
        self._looked.set()
        made = cached(archive, lambda folder: self._make(folder / archive.name))
        forget_old(archive.parent, NAME)
        return made

    def _make(self, target: Path) -> None:
        _log.info("An archive of Spark's classes is being made (once for this host and this Spark, some 180 MB).")
        scratch = target.parent  # which the next one empties if this process is killed
        command, environment = self._training_command(scratch, target)
        with (scratch / "log").open("wb") as log:
            code = self._train(command, environment, log.fileno())
        said = (scratch / "log").read_text(errors="replace").strip().splitlines()
        if code or not target.exists():
            raise HostError(f"the training ended with {code}: {said[-1] if said else 'it said nothing'}")

    def _training_command(self, scratch: Path, target: Path) -> tuple[list[str], dict[str, str]]:
        assert self.jars is not None, "Spark was found"
        known = {name: value for name, value in self._environment.items() if name not in PROGRAM}
        root = str(Path(__file__).parents[2])
        python = self._command[0] if Path(self._command[0]).name.startswith("python") else sys.executable
        environment = {
            "PYSPARK_PYTHON": python,
            **known,
            "HA_FILES": self._files,
            "HA_ZOOKEEPER": "",
            "PYTHONPATH": os.pathsep.join(filter(None, (known.get("PYTHONPATH"), root))),
        }
        environment |= spark_environment(scratch / "conf", environment, self.jars)
        environment |= _java_options(f"{BRIEF} -XX:ArchiveClassesAtExit={shlex.quote(str(target))}", environment)
        submit = self.jars.parent / "bin" / SUBMIT
        return [str(submit), "--master", "local[1]", "--deploy-mode", "client", str(TRAINING)], environment

    def _train(self, command: list[str], environment: Mapping[str, str], log: int) -> int:
        with self._lock:
            if self._closed:
                raise HostError("the sidecar has ended.")
            self._training = training = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                process_group=0, preexec_fn=in_background,  # noqa: PLW1509
            )  # fmt: skip
        try:
            return training.wait(TRAINING_S)
        except subprocess.TimeoutExpired as error:
            raise HostError(f"the training took more than {TRAINING_S:g} s.") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(training.pid, signal.SIGKILL)
            training.wait()


def jars_of(command: Sequence[str], environment: Mapping[str, str]) -> Path | None:
    """Return the jars of the Spark that a command uses: SPARK_HOME, or beside one of its programs, or on the path."""
    homes = [Path(environment["SPARK_HOME"])] if environment.get("SPARK_HOME") else []
    programs = [Path(word) for word in command if "/" in word and Path(word).name.startswith((SUBMIT, "python"))]
    for folder in [*programs, *(Path(each, SUBMIT) for each in os.get_exec_path(dict(environment)))]:
        if folder.exists():
            homes += [folder.resolve().parents[1], *_installed(folder.absolute().parents[1])]
    homes += _installed(Path(sys.prefix))
    return next((home / "jars" for home in homes if any((home / "jars").glob("spark-core_*.jar"))), None)


def _installed(prefix: Path) -> list[Path]:
    return sorted(prefix.glob("lib/python3*/site-packages/pyspark"))


def _java_options(options: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable whose options Spark gives to the JVM of a driver on this host, and to no other."""
    given = environment.get("SPARK_SUBMIT_OPTS", "")
    return {"SPARK_SUBMIT_OPTS": " ".join(filter(None, (options, QUIET, given)))}
