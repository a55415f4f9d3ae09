"""The engine: Spark's JVM, and the Python program that uses it. The program may die, and its queries continue.

    sidecar --starts--> guard --starts--> engine --starts--> JVM
                                                 --starts--> program, again and again, until it ends with 0

The engine holds the JVM's standard input, by whose end the JVM ends. The program finds the JVM by two variables of
PySpark's own. When the program has failed, the restart strategy says whether only the program is started again: the
leadership, the JVM and the queries stay. The next program attaches to the JVM: ha/spark/session/reattaching.py.

The engine ends

- with 0 when the program has ended with 0, in order: the job has finished;
- with the program's code when the restart strategy gives up, a restart would not help, the program was asked to end,
  also by the file of :mod:`ha.spark.supervision.settling`, or it had not been granted the job;
- with 70 when the JVM has ended: the program is killed then.

All three are in one process group, which the guard asks to end and kills. If the engine is killed, the kernel kills the
others. Run it as ``python -m ha.sidecar.command.engine STATE STRATEGY -- COMMAND...``: see :func:`engine_command`.
"""

import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import msgspec

from ha.config.command_settings import EXPONENTIAL_DELAY, CommandSettings
from ha.hosts.held_process import ending_of
from ha.program import end_file, exit_codes
from ha.program.engine_state import EngineState
from ha.program.files import write
from ha.sidecar.command.guard import GROUP_GRACE_S, JVM_ENDED, die_with
from ha.sidecar.command.spark_overlay import DEFAULTS, users_configuration
from ha.sidecar.command.spark_submit import SUBMIT, options_of, python_variables
from leader.errors import InvalidSettings
from store.clock import now

STRATEGY = "restart_"  # begins the names of the settings that an engine is given

# As of declared queries: an engine that never restarts its program would keep nothing alive.
UNSET_STRATEGY = EXPONENTIAL_DELAY

INFO = "_PYSPARK_DRIVER_CONN_INFO_PATH"  # variable of PySpark: the JVM writes into this file how it is reached
LOOK_S = 0.02  # between two looks for that file
FOREVER = float("inf")

Process = subprocess.Popen[bytes]


def engine_command(command: Sequence[str], state: Path, settings: CommandSettings) -> list[str]:
    """Return the command of an engine for a program; ``state`` is for :class:`ha.program.engine_state.EngineState`."""
    chosen = {name: each for name, each in msgspec.structs.asdict(settings).items() if name.startswith(STRATEGY)}
    # -P: a directory called `ha` in the user's working directory must not be imported instead of this package.
    interpreter = [sys.executable, "-P", "-m", "ha.sidecar.command.engine"]
    return [*interpreter, str(state), msgspec.json.encode(chosen).decode(), "--", *command]


def parts(command: Sequence[str], environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the command of the JVM and that of the program."""
    # The options of spark-submit are the JVM's, and so is the variable PYSPARK_SUBMIT_ARGS of any other command.
    # InvalidSettings: it is no Python program, or Spark is missing.
    names = [Path(word).name for word in command]
    if SUBMIT in names:
        first = names.index(SUBMIT) + 1
        options, count = options_of(command[first:])
        application = list(command[first + count :])
        properties = dict(each.split("=", 1) for name, each in options if name in {"--conf", "-c"} and "=" in each)
        chosen = (properties.get(f"spark.pyspark.{each}") for each in ("driver.python", "python"))
        named = (environment.get(each) for each in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"))
        python = next(filter(None, (*chosen, *named)), "python3")
        if application and application[0].endswith(".py"):
            jvm = [*command[: first + count], "pyspark-shell"]
            return jvm, [*command[: first - 1], python, *application]
    elif any(name.startswith("python") or name.endswith(".py") for name in names):
        arguments = environment.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell").split()
        return [_spark_submit(environment), *arguments], list(command)
    raise InvalidSettings(
        f"--engine runs a Python program that uses Spark, and {' '.join(command)!r} names none: give "
        "`python program.py`, or `spark-submit [OPTION...] program.py`."
    )


def _spark_submit(environment: Mapping[str, str]) -> str:
    """Return the path of the ``spark-submit`` that PySpark would use: SPARK_HOME's, or that beside PySpark itself."""
    home = environment.get("SPARK_HOME")
    found = find_spec("pyspark") if not home else None
    places = [Path(home)] if home else [Path(found.origin).parent] if found is not None and found.origin else []
    submits = [str(place / "bin" / SUBMIT) for place in places]
    known = next(filter(os.path.exists, submits), None) or shutil.which(SUBMIT, path=environment.get("PATH"))
    if known is None:
        raise InvalidSettings(
            f"--engine starts Spark itself, and there is no {SUBMIT} in {', '.join(submits) or 'the path'}: install "
            "PySpark beside this package, or set SPARK_HOME."
        )
    return known


class Engine:
    """One JVM, and the runs of one program."""

    def __init__(self, command: Sequence[str], state: Path, settings: CommandSettings) -> None:
        """Start nothing yet; raises as :func:`parts` does."""
        self._jvm_command, self._command = parts(command, os.environ)
        self._path, self._state = state, EngineState()
        users = users_configuration(os.environ)
        defaults, copies = users / DEFAULTS if users is not None else None, state.with_name(f"{state.name}.modules")
        self._variables = python_variables(command, os.environ, defaults, copies)
        self._strategy = settings.restarts(random.random, UNSET_STRATEGY)
        self._asked, self._woken = False, os.eventfd(0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._told_to_end)
        self._environment: dict[str, str] = {}
        self._program: Process | None = None
        self._start_at = FOREVER

    def run(self) -> int:
        """Run until the end; returns the exit code. OSError if the JVM or the program cannot be started."""
        jvm = self._start_jvm()
        code = self._watch(jvm)
        if code != 128 + signal.SIGKILL:  # as the guard of a program without an engine waits, or does not
            assert jvm.stdin is not None, "it was started with a pipe"
            jvm.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                jvm.wait(GROUP_GRACE_S)
        return code

    def _watch(self, jvm: Process) -> int:
        pid = ending_of(jvm.pid)
        if not self._await(pid):
            self._tell_of_the_jvm()
            return 128 + signal.SIGTERM if self._asked else exit_codes.JVM_ENDED
        self._start_program()
        code = None
        while code is None:
            jvm_ended = self._wait(pid)
            program = self._program
            if program is not None and (status := program.poll()) is not None:
                self._program = None
                code = self._program_ended(status)
            elif jvm_ended and not self._asked:
                self._tell_of_the_jvm()
                if program is not None:
                    program.kill()
                code = exit_codes.JVM_ENDED
            elif program is None and self._asked:
                code = 128 + signal.SIGTERM
            elif now() >= self._start_at:
                self._start_program()
        return code

    def _wait(self, jvm: int) -> bool:
        """Wait until something has happened; returns whether the JVM has ended."""
        program = [ending_of(self._program.pid)] if self._program is not None else []
        watched = [] if self._asked else [jvm]  # else the program has the time that the guard gives it
        nap = None if self._start_at == FOREVER else max(0.0, self._start_at - now())
        ready = select.select([*program, *watched, self._woken], [], [], nap)[0]
        for each in program:
            os.close(each)
        if self._woken in ready:
            os.eventfd_read(self._woken)
        return jvm in ready

    def _told_to_end(self, *_: object) -> None:
        """The program has got the signal as well: the whole group has."""
        self._asked = True
        os.eventfd_write(self._woken, 1)

    # --- the JVM

    def _start_jvm(self) -> Process:
        self._info = self._path.with_name(f"{self._path.name}.gateway")
        environment = {**os.environ, INFO: str(self._info), "SPARK_CONNECT_MODE": "0", "HA_ENGINE": "0"}
        prepare = partial(die_with, os.getpid())
        return subprocess.Popen(self._jvm_command, stdin=subprocess.PIPE, env=environment, preexec_fn=prepare)  # noqa: PLW1509

    def _await(self, pid: int) -> bool:
        """Wait until the JVM serves; returns False if it has ended, or this engine was told to end."""
        while not self._info.exists():
            if self._asked or select.select([pid], [], [], LOOK_S)[0]:
                return False
        port, length = struct.unpack_from(">ii", found := self._info.read_bytes())
        self._info.unlink()
        self._environment = {
            "PYSPARK_GATEWAY_PORT": str(port),
            "PYSPARK_GATEWAY_SECRET": found[8 : 8 + length].decode(),
        }
        return True

    def _tell_of_the_jvm(self) -> None:
        if not self._asked:
            _say("ha: the program's JVM has ended: the program is killed.")
            Path(f"{os.environ['HA_BELIEF']}{JVM_ENDED}").touch()

    # --- the program

    def _start_program(self) -> None:
        self._start_at = FOREVER
        self._note(starts=self._state.starts + 1)
        environment = {**os.environ, **self._variables, **self._environment, "HA_ENGINE": str(self._state.starts)}
        prepare = partial(die_with, os.getpid())
        self._program = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, env=environment, preexec_fn=prepare  # noqa: PLW1509
        )  # fmt: skip

    def _program_ended(self, status: int) -> int | None:
        """Take note of the program's end; returns the code with which the engine ends, or None if it goes on."""
        code = status if status >= 0 else 128 - status
        end = end_file.told(Path(os.environ["HA_QUERIES"]))
        if (code == 0 and not end.said) or self._asked or not self._granted or Path(os.environ["HA_SETTLE"]).exists():
            return code
        helps = code not in (exit_codes.JVM_ENDED, exit_codes.QUERY_STUCK) and not end.remedy
        delay = self._strategy.failed(now()) if helps else None
        if delay is None:
            self._note(failures=self._state.failures + 1, code=code, gave_up=True)
            return code
        if path := os.environ.get("HA_HEARTBEAT"):
            Path(path).unlink(missing_ok=True)  # nobody beats until the next one does
        self._note(failures=self._state.failures + 1, code=code, delay=delay)
        self._start_at = now() + delay
        _say(f"ha: the program has ended with {code}; only it is started again, in {delay:.1f} s. Its queries go on.")
        return None

    @property
    def _granted(self) -> bool:
        grant = os.environ.get("HA_GRANT")
        return not grant or Path(grant).exists()

    def _note(self, **changes: float) -> None:
        self._state = msgspec.structs.replace(self._state, **changes)
        with suppress(OSError):  # a full disk ends no query
            write(self._path, self._state)


def _say(text: str) -> None:
    with suppress(OSError):  # whoever read it is gone, too
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def main(arguments: list[str]) -> int:
    """Run an engine; returns the exit code."""
    state, strategy, _, *command = arguments
    try:
        return Engine(command, Path(state), CommandSettings(**msgspec.json.decode(strategy))).run()
    except OSError as error:
        _say(f"ha: {error.filename or command[0]} cannot be started: {error.strerror}.")
        return 127
    except InvalidSettings as error:
        _say(f"ha: {error}")
        return 2


if __name__ == "__main__":
    code = main(sys.argv[1:])
    os._exit(code)  # the JVM's standard input closes here, at the latest
