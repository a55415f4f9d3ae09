"""Real drivers, alone and under ``ha run``: the processes that die with them, and the next leader."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import ha
from ha.drill.kill import descendants
from ha.leadership.leadership import Leadership
from ha.sidecar.command.jvm_watch import UNHOOKED
from tests.patience import DRIVER_S, PATIENCE_S
from tests.system.spark.conftest import SETTINGS
from tests.system.spark.helpers import eventually, files_of, leading, names
from tests.system.spark.test_checkpoints import feed
from tests.unit.ha.programs import alive

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(1500)]

DRIVERS = Path(__file__).parent / "drivers"
ROOT = Path(__file__).parents[3]
RUN = (sys.executable, "-P", "-m", "ha.cli", "run")


class Driver:
    def __init__(self, job: str, root: str, zookeeper: str, folder: Path) -> None:
        self.job, self.root, self.zookeeper, self.folder = job, root, zookeeper, folder
        self.source, self.target = folder / "in", f"{root}-out/{uuid.uuid4().hex}"
        self.source.mkdir()
        self.conf = folder / "conf"
        self.conf.mkdir()
        settings = {**SETTINGS, "spark.user.setting": "kept", "spark.sql.streaming.checkpointLocation": "/elsewhere"}
        (self.conf / "spark-defaults.conf").write_text("".join(f"{each} {settings[each]}\n" for each in settings))
        (self.conf / "spark-env.sh").write_text("USERS_OWN=kept\n")
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.listen = f"127.0.0.1:{taken.getsockname()[1]}"

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of a metric of the query ``lines`` or its output, as the sidecar serves it; None without one."""
        try:
            with urllib.request.urlopen(f"http://{self.listen}/metrics", timeout=PATIENCE_S) as answer:
                families = list(text_string_to_metric_families(answer.read().decode()))
        except OSError:
            return None
        of = {"output": "output"} if name.startswith("ha_output") else {"query": "lines"}
        expected = {"job_name": self.job, **of, **labels}
        samples = [each for family in families for each in family.samples if each.name == name]
        return next((each.value for each in samples if each.labels == expected), None)

    @property
    def led(self) -> list[str]:
        return [sys.executable, str(DRIVERS / "led.py"), self.job, self.source.as_uri(), self.target]

    @property
    def declared(self) -> list[str]:
        return [sys.executable, str(DRIVERS / "declared.py"), self.job, self.source.as_uri(), self.target]

    @property
    def plain(self) -> list[str]:
        return [str(DRIVERS / "plain.py"), self.source.as_uri(), self.target]

    @property
    def said(self) -> str:
        return self.log.read_text()

    @contextmanager
    def running(self, command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
        known = {"HA_FILES": self.root, "HA_ZOOKEEPER": self.zookeeper, "HA_CONTENDER": "first"}
        spark = {"SPARK_CONF_DIR": str(self.conf), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
        environment = {**os.environ, **known, **spark}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield self.process
        finally:
            for pid in [*descendants(self.process.pid), self.process.pid]:
                with_nothing(lambda pid=pid: os.kill(pid, signal.SIGKILL))  # type: ignore[misc]
            self.process.wait(PATIENCE_S)

    def pid_of(self, what: str) -> int | None:
        assert self.process is not None
        for pid in descendants(self.process.pid):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if words[0].endswith(what) and "ha.sidecar.command.guard" not in words and "ha.cli" not in words:
                return pid
        return None

    def output(self) -> list[str]:
        """Return the published batches; Spark's own directory there is older than the first batch."""
        try:
            return [name for name in names(self.target) if not name.startswith("_")]
        except Exception:  # noqa: BLE001  # it is made by the driver
            return []


def with_nothing(action: Callable[[], object]) -> None:
    try:
        action()
    except ProcessLookupError:
        return


@pytest.fixture
def driver(job: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(job, hdfs_uri, zookeeper_hosts, tmp_path)
    yield made
    sys.stdout.write(made.said[-5000:])


def kill(driver: Driver, what: str, number: int = signal.SIGKILL) -> tuple[int, int]:
    """Kill or freeze the JVM (java) or the program (python) alone, once something is published; who they were."""
    eventually(driver.output, DRIVER_S)
    python, java = driver.pid_of("python"), driver.pid_of("java")
    assert python, "there is a driver"
    assert java, "and its JVM"
    os.kill(java if what == "java" else python, number)
    return python, java


def test_leadership_is_resigned_with_the_jvm(driver: Driver) -> None:
    feed(driver.source, 0)
    with driver.running(["env", *driver.led]) as process:
        eventually(driver.output, DRIVER_S)
        kill(driver, "java")
        # This test is the only standby. It gets the job because the leader gave it back, without any time-out.
        with leading(driver.job, driver.root, driver.zookeeper, contender="second") as successor:
            assert reasons(successor)[2] == "released"
            assert process.wait(PATIENCE_S) > 0, "the program ends by itself, and not well"
            assert leader(driver) == successor.session_id
    assert re.search("The JVM of job .* has ended, and with it the leadership", driver.said)


def test_a_declared_job_that_is_terminated_ends_in_order(driver: Driver) -> None:
    feed(driver.source, 0)
    with driver.running(driver.declared) as process:
        eventually(driver.output, DRIVER_S)
        process.terminate()
        assert process.wait(PATIENCE_S) == -signal.SIGTERM
    assert "Traceback" not in driver.said
    with leading(driver.job, driver.root, driver.zookeeper, contender="second") as successor:
        assert reasons(successor)[2] == "released", "nobody waited for a time-out"
        assert successor.exceptions.list() == [], "an end that was asked for is no failure"


def test_leadership_is_given_back_with_the_jvm_and_with_python(driver: Driver) -> None:
    feed(driver.source, 0)
    again = ["--restart-strategy", "fixed-delay"]  # once
    with driver.running([*RUN, driver.job, *again, "--", *driver.led]):
        first = kill(driver, "java")
        eventually(lambda: "ended with 70" in driver.said)
        eventually(lambda: not any(alive(pid) for pid in first))
        eventually(lambda: driver.pid_of("java"))
        second = kill(driver, "python")
        with leading(driver.job, driver.root, driver.zookeeper, contender="second") as successor:
            assert successor.epoch == 2, "the first restart was within the leadership"
            assert reasons(successor)[2] == "released"
            eventually(lambda: not any(alive(pid) for pid in second))
            assert leader(driver) == successor.session_id


@pytest.mark.timed
@pytest.mark.parametrize("what", ["java", "python"])
def test_a_frozen_driver_is_killed_and_its_leadership_given_back(
    driver: Driver, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HA_HEARTBEAT_TIMEOUT", "8")
    feed(driver.source, 0)
    with driver.running([*RUN, driver.job, f"--listen={driver.listen}", "--", *driver.led]):
        eventually(lambda: driver.metric("ha_checkpoints_total"), DRIVER_S)
        assert driver.metric("ha_query_state", state="RUNNING") == 1
        assert driver.metric("ha_query_input_rows_total") == driver.metric("ha_checkpoint_rows")
        assert driver.metric("ha_checkpoint_duration_seconds")
        created, renamed = (driver.metric("ha_output_files_total", outcome=each) for each in ("created", "renamed"))
        assert created == renamed
        assert created
        assert driver.metric("ha_output_lost_files") == 0
        assert driver.metric("ha_output_step_seconds_count", step="move")
        frozen = kill(driver, what, signal.SIGSTOP)
        with leading(driver.job, driver.root, driver.zookeeper, contender="second") as successor:
            assert (successor.epoch, reasons(successor)[2]) == (2, "released")
            eventually(lambda: not any(alive(pid) for pid in frozen))
            (hang,) = [each for each in successor.exceptions.list() if each.kind == "hang"]
            assert hang.epoch == 1
            assert "is stopped, as by SIGSTOP" in hang.dump
            assert ("ha-heartbeat" in hang.dump or "Python, process" in hang.dump) == (what == "java")
            assert ("stream execution thread" in hang.dump) == (what == "python")


def reasons(leadership: Leadership) -> dict[int, str]:
    eventually(lambda: any(name.startswith(f"{leadership.epoch:010d}") for name in leadership.names("history")))
    return {int(name[:10]): name.split("~")[1] for name in leadership.names("history")}


def leader(driver: Driver) -> str:
    with ha.connect(files=driver.root, zookeeper="") as client:
        return client.leader(driver.job).session_id


SUBMIT = str(Path(sys.executable).with_name("spark-submit"))
IN_A_SHELL = ["sh", "-c", f'{SUBMIT} "$@" | cat', "sh"]  # which hides the program's code, and outlives its JVM


@pytest.mark.parametrize(
    ("with_what", "says"),
    [
        pytest.param([sys.executable], "the command's JVM has ended: the command is killed", id="python"),
        pytest.param([SUBMIT], "the command has ended with 137", id="spark-submit"),  # it is the JVM
        # With 0, if the driver has noticed it before the guard.
        pytest.param(IN_A_SHELL, ": the command has ended with ", id="shell"),
    ],
)
def test_a_plain_program_is_led_and_ends_with_its_jvm(driver: Driver, with_what: list[str], says: str) -> None:
    feed(driver.source, 0)
    again = ["--restart-strategy", "fixed-delay"]
    with driver.running([*RUN, driver.job, "--spark", *again, "--", *with_what, *driver.plain]) as process:
        kill(driver, "java")
        eventually(lambda: says in driver.said)
        feed(driver.source, 1)
        assert process.wait(DRIVER_S) == 0, "and an end of its own is not taken for its JVM's"
    assert driver.said.count("The setting is kept, the shell's kept.") == 2, "the user's configuration counts, too"
    with leading(driver.job, driver.root, driver.zookeeper) as successor:
        assert {"0", "1"} <= set(successor.names("spark/lines/commits")), "its checkpoints are fenced, and it went on"
        newest = max(int(name) for name in successor.names("spark/lines/commits") if name.isdecimal())
        assert successor.checkpoints.state().queries == {"lines": newest}, "the sidecar has published it, to the last"
        assert successor.status.read() is ha.Status.FINISHED
        assert successor.epoch == 2


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("caught", "The query 'lines' has failed"),
        ("exits", "The query 'lines' was still active"),
        ("begins", "its program has ended with 3."),
    ],
)
def test_a_plain_program_that_ends_with_0_has_failed_if_its_query_has(
    driver: Driver, how: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HA_FAILOVER_MAX_ATTEMPTS", "1")
    feed(driver.source, 0)
    program = [*IN_A_SHELL, str(DRIVERS / "ends.py"), driver.source.as_uri(), how]
    with driver.running([*RUN, driver.job, "--spark", "--", *program]) as process:
        assert process.wait(DRIVER_S) == 1, driver.said
    with leading(driver.job, driver.root, driver.zookeeper) as successor:
        assert successor.status.read() is ha.Status.FAILED
        assert any(f"has ended with 0: {says}" in each.message for each in successor.exceptions.list())


def test_a_driver_whose_python_reads_no_hook_is_ended_before_its_first_query(driver: Driver) -> None:
    isolated = driver.folder / "isolated"
    isolated.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    isolated.chmod(0o755)
    submit = [SUBMIT, "--conf", f"spark.pyspark.driver.python={isolated}"]
    feed(driver.source, 0)
    with driver.running([*RUN, driver.job, "--spark", "--", *submit, *driver.plain]) as process:
        eventually(lambda: UNHOOKED[0] in driver.said)
        eventually(lambda: "No restart mends this" in driver.said)
        assert process.poll() is None, "it waits for somebody"
    with leading(driver.job, driver.root, driver.zookeeper) as successor:
        assert successor.names("spark") == []


def test_the_format_needs_no_import_and_drops_what_repeated_tasks_have_written(driver: Driver) -> None:
    for number in range(3):
        feed(driver.source, number)
    program = [sys.executable, str(DRIVERS / "sink.py"), driver.source.as_uri(), driver.target]
    with driver.running([*RUN, driver.job, "--spark", "--", *program]) as process:
        assert process.wait(DRIVER_S) == 0
    assert driver.said.count("the first try of a task fails") >= 3
    with files_of(driver.target) as do:
        placed = do(lambda files: {each.name: len(files.list(f"part=s/{each.name}")) for each in files.list("part=s")})
    assert placed == {"batch=0": 1, "batch=1": 1, "batch=2": 1}


@pytest.mark.parametrize(
    ("options", "command", "says"),
    [
        (["--standby", "warm"], ["true"], "a warm standby has none yet"),
        ([], ["true", "--properties-file", "x"], "add --load-spark-defaults"),
        ([], ["true", "--properties-file=x"], "add --load-spark-defaults"),
    ],
)
def test_what_spark_is_not_told_is_refused(driver: Driver, options: list[str], command: list[str], says: str) -> None:
    with driver.running([*RUN, driver.job, "--spark", *options, "--", *command]) as process:
        assert process.wait(PATIENCE_S) == 2
    stores, error = driver.said.splitlines()
    assert "The jobs are in" in stores
    assert says in error
