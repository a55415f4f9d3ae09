"""The engine: the program is started again beside a JVM that stays, and each of both ends as it should."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ha.config.command_settings import CommandSettings
from ha.program import engine_state
from ha.program.deadline_file import DeadlineWriter
from ha.program.engine_state import EngineState
from ha.sidecar.command.engine import engine_command, parts
from ha.sidecar.command.guard import JVM_ENDED
from ha.sidecar.command.guarded_command import GuardedCommand
from leader.errors import InvalidSettings
from store.clock import now
from tests.unit.ha.programs import Workplace, alive
from tests.unit.ha.waiting import wait_until

LONG = 3600.0
AGAIN = {"restart_attempts": 2, "restart_delay": 0.0}

# Stands in for a JVM, which ends with its standard input.
SUBMIT = """#!{python}
import os, struct, sys
place = os.environ["PLACE"]
open(place + "/jvm-arguments", "w").write(" ".join(sys.argv[1:]))
open(place + "/jvm.tmp", "w").write(str(os.getpid()))
os.rename(place + "/jvm.tmp", place + "/jvm")
if os.path.exists(place + "/silent"):
    sys.exit(1)
path = os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"]
open(path + ".tmp", "wb").write(struct.pack(">ii", 4711, 6) + b"secret")
os.rename(path + ".tmp", path)
sys.stdin.read()
open(place + "/jvm-ended", "w").close()
"""

PROGRAM = """
import os, signal, sys
place, number = os.environ["PLACE"], os.environ["HA_ENGINE"]
assert os.environ["PYSPARK_GATEWAY_PORT"] == "4711" and os.environ["PYSPARK_GATEWAY_SECRET"] == "secret"
open(place + "/tmp", "w").write(str(os.getpid()))
os.rename(place + "/tmp", place + "/program-" + number)
"""
STAYS = PROGRAM + "while True: signal.pause()\n"


class Place:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.belief = DeadlineWriter(directory / "belief")
        self.belief.write(now() + LONG, now() + LONG)
        self.state = directory / "engine"
        self.heartbeat, self.grant = directory / "heartbeat", directory / "grant"
        self.variables = {"PLACE": str(directory), "SPARK_HOME": str(directory), "HA_BELIEF": str(self.belief.path)}
        self.variables |= {"HA_QUERIES": str(directory / "queries"), "HA_HEARTBEAT": str(self.heartbeat)}
        self.variables |= {"HA_SETTLE": str(directory / "settle")}
        submit = directory / "bin" / "spark-submit"
        submit.parent.mkdir()
        submit.write_text(SUBMIT.format(python=sys.executable))
        submit.chmod(0o755)
        self.child: GuardedCommand | None = None

    def start(self, source: str, **settings: Any) -> GuardedCommand:
        chosen = CommandSettings(**{"restart_strategy": "fixed-delay", **AGAIN, **settings})
        command = engine_command([sys.executable, "-c", source], self.state, chosen)
        self.child = GuardedCommand(command, self.variables, self.belief.path)
        return self.child

    def pid(self, name: str) -> int:
        return int(wait_until(lambda: (self.directory / name).exists() and (self.directory / name).read_text()))

    def is_there(self, name: str) -> bool:
        return (self.directory / name).exists()

    @property
    def shown(self) -> EngineState:
        return engine_state.newest(self.state)

    def end(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
        self.belief.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


@pytest.mark.programs
def test_only_the_program_is_started_again_and_its_end_is_that_of_the_job(place: Place) -> None:
    place.heartbeat.write_text("beats")
    child = place.start(PROGRAM + "while number == '1': signal.pause()\nsys.exit(3 if number == '2' else 0)")
    jvm = place.pid("jvm")
    os.kill(place.pid("program-1"), signal.SIGKILL)
    place.pid("program-3")
    assert child.wait() == 0
    assert (place.directory / "jvm-arguments").read_text() == "pyspark-shell"
    assert place.shown == EngineState(starts=3, failures=2, code=3)
    assert not place.heartbeat.exists(), "nobody is watched while there is no program"
    assert place.is_there("jvm-ended"), "it had the time to end by itself"
    assert not alive(jvm)


@pytest.mark.programs
def test_it_gives_up_with_its_program_s_code_when_the_strategy_does(place: Place) -> None:
    child = place.start(PROGRAM + "sys.exit(3)")
    assert child.wait() == 3
    assert place.shown == EngineState(starts=3, failures=3, code=3, gave_up=True)


@pytest.mark.programs
@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(70)", 70),
        ("sys.exit(75)", 75),
        ("open(os.environ['HA_QUERIES'] + '.end', 'w').write('{\"remedy\": \"mend it\"}')\nsys.exit(1)", 1),
    ],
)
def test_after_some_ends_a_restart_of_the_program_would_not_help(place: Place, end: str, code: int) -> None:
    assert place.start(PROGRAM + end).wait() == code
    assert (place.shown.starts, place.shown.gave_up) == (1, True)


@pytest.mark.programs
def test_a_program_that_was_granted_nothing_is_left_to_the_sidecar(place: Place) -> None:
    place.variables["HA_GRANT"] = str(place.grant)
    assert place.start(PROGRAM + "sys.exit(3)").wait() == 3
    assert place.shown == EngineState(starts=1)
    place.grant.touch()
    assert place.start(PROGRAM + "sys.exit(3)").wait() == 3
    assert place.shown.starts == 3


@pytest.mark.programs
def test_a_program_whose_queries_have_settled_is_not_started_again(place: Place) -> None:
    (place.directory / "settle").touch()
    assert place.start(PROGRAM + "os.kill(os.getpid(), signal.SIGTERM)").wait() == 128 + signal.SIGTERM
    assert place.shown == EngineState(starts=1)


@pytest.mark.programs
def test_the_program_is_killed_when_its_jvm_has_ended(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    child = place.start(STAYS)
    program = place.pid("program-1")
    os.kill(place.pid("jvm"), signal.SIGKILL)
    assert child.wait() == 70
    assert not alive(program)
    assert place.is_there(f"belief{JVM_ENDED}"), "the history will say so"
    assert "its JVM has ended" in capfd.readouterr().err.replace("the program's", "its")


@pytest.mark.programs
def test_a_jvm_that_does_not_start_is_its_end(place: Place) -> None:
    (place.directory / "silent").touch()
    assert place.start(STAYS).wait() == 70
    assert place.shown == EngineState()


@pytest.mark.programs
@pytest.mark.parametrize("waits", [False, True])
def test_what_is_asked_to_end_is_not_started_again(place: Place, *, waits: bool) -> None:
    child = place.start(STAYS, restart_delay=LONG)
    program = place.pid("program-1")
    if waits:
        os.kill(program, signal.SIGKILL)
        wait_until(lambda: place.shown.failures)
    child.terminate()
    assert child.wait() == 128 + signal.SIGTERM
    assert place.shown == (EngineState(1, failures=1, code=137, delay=LONG) if waits else EngineState(1))


@pytest.mark.programs
@pytest.mark.parametrize("who", ["guard", "engine"])
def test_nothing_outlives_the_guard_or_the_engine(place: Place, who: str) -> None:
    child = place.start(STAYS)
    program, jvm = place.pid("program-1"), place.pid("jvm")
    engine = int(Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(child.pid if who == "guard" else engine, signal.SIGKILL)
    wait_until(lambda: not any(map(alive, (program, jvm, engine))))
    assert child.wait() == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("command", "jvm", "program"),
    [
        ("python a.py x", "S --conf a=b pyspark-shell", "python a.py x"),
        ("./a.py", "S --conf a=b pyspark-shell", "./a.py"),
        ("env X=1 python3.12 a.py", "S --conf a=b pyspark-shell", "env X=1 python3.12 a.py"),
        ("spark-submit a.py -x", "spark-submit pyspark-shell", "python3 a.py -x"),
        ("nice spark-submit -v --master local a.py", "nice spark-submit -v --master local pyspark-shell",
         "nice python3 a.py"),
        ("spark-submit --conf spark.pyspark.python=p a.py",
         "spark-submit --conf spark.pyspark.python=p pyspark-shell", "p a.py"),
    ],
)  # fmt: skip
def test_a_command_is_divided_into_jvm_and_program(place: Place, command: str, jvm: str, program: str) -> None:
    environment = {"SPARK_HOME": str(place.directory), "PYSPARK_SUBMIT_ARGS": "--conf a=b pyspark-shell"}
    submit = str(place.directory / "bin" / "spark-submit")
    found = parts(command.split(), environment)
    assert found == (jvm.replace("S", submit, jvm.startswith("S")).split(), program.split())


@pytest.mark.parametrize(
    ("environment", "python"),
    [
        ({"PYSPARK_PYTHON": "workers"}, "workers"),
        ({"PYSPARK_PYTHON": "workers", "PYSPARK_DRIVER_PYTHON": "drivers"}, "drivers"),
    ],
)
def test_the_program_s_python_is_the_driver_s(environment: dict[str, str], python: str) -> None:
    assert parts(["spark-submit", "a.py"], environment)[1] == [python, "a.py"]


@pytest.mark.parametrize("command", ["true", "spark-submit --class Main a.jar", "spark-submit", "sh run"])
def test_what_is_no_python_program_is_refused(command: str) -> None:
    with pytest.raises(InvalidSettings, match=rf"^--engine runs a Python program .*{command}.* names none: give "):
        parts(command.split(), {})


def test_without_spark_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=rf"there is no spark-submit in {tmp_path}/bin/spark-submit: install"):
        parts(["python", "a.py"], {"SPARK_HOME": str(tmp_path), "PATH": ""})


def test_a_damaged_state_is_an_empty_one(tmp_path: Path) -> None:
    read: Callable[[Path], EngineState] = engine_state.newest
    (tmp_path / "engine").write_bytes(b"{")
    assert read(tmp_path / "engine") == read(tmp_path / "nothing") == EngineState()


def test_ha_run_refuses_what_no_engine_can_run(workplace: Workplace) -> None:
    both = workplace.ha("run", "orders", "--engine", "--spark", "--", "python3", "orders.py")
    other = workplace.ha("run", "orders", "--engine", "--", "true")
    assert (both.wait(), other.wait()) == (2, 2)
    assert "leave one of them out" in both.said
    assert "--engine runs a Python program that uses Spark, and 'true' names none" in other.said
    assert "Traceback" not in other.said
