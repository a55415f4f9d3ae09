"""The configuration that ``ha run --spark`` writes. tests/system/spark checks that real Spark reads it."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ha.hook import driver_note
from ha.sidecar.command.jvm_watch import DRIVER
from ha.sidecar.command.spark_overlay import CLOSING, NOT_BEGUN, REDIRECTED, may_use_spark, spark_environment
from tests.lacks import fill, small_disk
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until


def written(tmp_path: Path, end: Path | None = None, /, **environment: str) -> tuple[dict[str, str], Path]:
    """Write a configuration; returns the added variables and the directory."""
    known = {"HA_JOB": "orders", "HA_LEADER_DIRECTORY": "hdfs://names/ha/orders/0000000001-x", "PATH": str(tmp_path)}
    overlay = tmp_path / "overlay"
    return spark_environment(overlay, {**known, **environment}, spark=True, end=end), overlay


def as_conf_dir(folder: Path) -> dict[str, str]:
    return {"SPARK_CONF_DIR": str(folder)}


def as_home(folder: Path) -> dict[str, str]:
    return {"SPARK_HOME": str(folder.parent)}


def as_neighbour(folder: Path) -> dict[str, str]:
    """Spark's home is found by the spark-submit on the path, which may be a link."""
    (folder.parent / "bin").mkdir()
    submit = folder.parent / "bin" / "spark-submit"
    submit.touch(0o755)
    (folder.parent / "links").mkdir()
    (folder.parent / "links" / "spark-submit").symlink_to(submit)
    return {"PATH": str(folder.parent / "links")}


@pytest.mark.parametrize("told", [as_conf_dir, as_home, as_neighbour])
def test_all_that_the_user_has_is_kept(tmp_path: Path, told: Callable[[Path], dict[str, str]]) -> None:
    users = tmp_path / "spark" / "conf"
    users.mkdir(parents=True)
    (users / "spark-defaults.conf").write_text("spark.a 1\nspark.ha.job another")  # without an end of line
    (users / "spark-env.sh").write_text("echo the user is here")
    (users / "log4j2.properties").write_text("rootLogger.level = info")
    added, overlay = written(tmp_path, **told(users))
    assert added["SPARK_CONF_DIR"] == str(overlay)
    assert (overlay / "log4j2.properties").read_text() == "rootLogger.level = info"
    lines = (overlay / "spark-defaults.conf").read_text().splitlines()
    assert lines[:2] == ["spark.a 1", "spark.ha.job another"]
    assert "spark.ha.job orders" in lines[2:], "the later of two counts"
    assert "spark.sql.streaming.checkpointLocation hdfs://names/ha/orders/0000000001-x/spark" in lines
    variables = {**os.environ, "SPARK_CONF_DIR": str(overlay)}  # as Spark's own scripts set it
    command = ["/bin/bash", "-c", f". {overlay}/spark-env.sh; read -r"]
    shells, noted = [], Path(added["HA_SPARK_JVM"])
    for _ in range(2):  # a driver may start other JVMs, and the first one counts
        shell = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables)
        shells.append(shell)
        wait_until(noted.exists, what="the first shell is noted")
    for shell in reversed(shells):
        assert shell.communicate("\n", timeout=PATIENCE_S)[0] == "the user is here\n"
        assert int(noted.read_text()) == shells[0].pid
    subprocess.run(command, stdin=subprocess.DEVNULL, env=variables, check=False, timeout=PATIENCE_S)
    assert int(noted.read_text()) != shells[0].pid, "as long as it lives"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_site_that_names_its_directory_itself_does_not_send_the_settings_elsewhere(
    tmp_path: Path, elsewhere: bool
) -> None:
    """If it is the one that was read, ours is taken; from another one Spark would read nothing of ours, in silence."""
    users = tmp_path / "etc" / "conf"
    users.mkdir(parents=True)
    redirect = tmp_path / "other" if elsewhere else users
    (users / "spark-env.sh").write_text(f"export SPARK_CONF_DIR={redirect}/")
    _, overlay = written(tmp_path, SPARK_CONF_DIR=str(users))
    ended = subprocess.run(
        ["/bin/bash", "-c", f'. {overlay}/spark-env.sh; echo "$SPARK_CONF_DIR"'],
        env={**os.environ, "SPARK_CONF_DIR": str(overlay)}, capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip
    if elsewhere:
        assert (ended.returncode, ended.stdout) == (REDIRECTED, "")
        assert f"sets SPARK_CONF_DIR to {redirect}/, so the settings of --spark would not be read" in ended.stderr
        assert "before `ha run` instead" in ended.stderr
    else:
        assert (ended.returncode, ended.stdout) == (0, f"{overlay}\n")


@pytest.mark.parametrize(("users", "nodes"), [("", "h1,h2"), ("spark.yarn.exclude.nodes old1,old2", "old1,old2,h1,h2")])
def test_hosts_to_keep_off_come_beside_the_users_own(tmp_path: Path, users: str, nodes: str) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{users}\n")
    overlay = tmp_path / "overlay"
    spark_environment(overlay, {"SPARK_CONF_DIR": str(tmp_path)}, excluded=["h1", "h2"])
    lines = (overlay / "spark-defaults.conf").read_text().split("\n")
    assert [each for each in lines if each.startswith("spark.yarn")][-1] == f"spark.yarn.exclude.nodes {nodes}"


def test_it_needs_nothing_of_the_user(tmp_path: Path) -> None:
    _, overlay = written(tmp_path, SPARK_CONF_DIR=str(tmp_path / "none"))
    assert sorted(path.name for path in overlay.iterdir()) == ["spark-defaults.conf", "spark-env.sh"]


def test_workers_on_other_hosts_are_told_and_values_arrive_as_they_are(tmp_path: Path) -> None:
    _, overlay = written(tmp_path, HA_ZOOKEEPER="zk:2181", HA_FILES="file:///a\\b")
    text = (overlay / "spark-defaults.conf").read_text()
    assert "spark.executorEnv.HA_ZOOKEEPER zk:2181\n" in text
    assert "spark.executorEnv.HA_FILES file:///a\\\\b\n" in text, "as Java's properties write it"


@pytest.mark.parametrize(
    ("users", "class_path"),
    [("", "/spark/jars/*"), ("spark.driver.extraClassPath  /a.jar:/b", "/spark/jars/*:/a.jar:/b")],
)
def test_jars_come_first_on_the_class_path(tmp_path: Path, users: str, class_path: str) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{users}\n")
    overlay = tmp_path / "overlay"
    added = spark_environment(overlay, {"SPARK_CONF_DIR": str(tmp_path)}, Path("/spark/jars"))
    assert added == {"SPARK_CONF_DIR": str(overlay), "SPARK_ENV_LOADED": "", "PYTHONPATH": f"{overlay}.python"}
    lines = (overlay / "spark-defaults.conf").read_text().splitlines()
    assert lines[-1] == f"spark.driver.extraClassPath {class_path}", "the later of two counts"
    assert not any("checkpointLocation" in line for line in lines)
    assert (overlay / "spark-env.sh").read_text() == ""


@pytest.mark.parametrize(
    ("theirs", "listed", "told"),
    [("", "10", None), ("", "99", None), ("", "100", "101"), ("10", "10", "11"), ("11", "10", None), ("x", "10", None)],
)
def test_spark_retains_what_is_listed(tmp_path: Path, theirs: str, listed: str, told: str | None) -> None:
    users = tmp_path / "conf"
    users.mkdir()
    name = "spark.sql.streaming.minBatchesToRetain"
    (users / "spark-defaults.conf").write_text(f"{name} {theirs}\n" if theirs else "")
    _, overlay = written(tmp_path, SPARK_CONF_DIR=str(users), HA_CHECKPOINTS_RETAINED=listed)
    lines = (overlay / "spark-defaults.conf").read_text().splitlines()
    ours = [line.split()[1] for line in lines if line.startswith(name)][1 if theirs else 0 :]
    assert ours == ([told] if told else [])


DELAY, RETRIES = CLOSING


@pytest.mark.parametrize(
    ("users", "hadoop", "ours"),
    [
        ("", "", True),
        (f"{DELAY} 400", "", False),
        (f"{RETRIES} 5", "", False),
        ("", "<configuration><property><name>{}</name><value>400</value></property></configuration>", False),
        ("", "<configuration><property><name>dfs.replication</name><value>1</value></property></configuration>", True),
        ("", "<damaged", True),
    ],
)
def test_files_are_closed_sooner_unless_the_user_or_hadoop_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: str, hadoop: str, ours: bool
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{users}\n")
    if hadoop:
        (tmp_path / "hdfs-site.xml").write_text(hadoop.format(DELAY.removeprefix("spark.hadoop.")))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    overlay = tmp_path / "overlay"
    spark_environment(overlay, {"SPARK_CONF_DIR": str(tmp_path)})
    lines = (overlay / "spark-defaults.conf").read_text().splitlines()
    added = [each for each in lines if each.startswith((DELAY, RETRIES)) and each != users]
    assert added == ([f"{DELAY} 20", f"{RETRIES} 10"] if ours else [])


def test_asking_sooner_is_no_less_patient() -> None:
    delay, retries = map(int, CLOSING.values())
    assert sum(delay * 2**number for number in range(retries)) >= sum(400 * 2**number for number in range(5))


@pytest.mark.parametrize(
    ("command", "may"),
    [
        (["python", "orders.py"], True),
        (["/opt/venv/bin/python3.12", "orders.py"], True),
        (["nice", "/spark/bin/spark-submit", "orders.py"], True),
        (["sleep", "7"], False),
        (["./orders.sh"], False),
    ],
)
def test_commands_that_start_spark(command: list[str], may: bool) -> None:
    assert may_use_spark(command) is may


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--master local[2] orders.py one", True),
        ("--py-files more.zip orders.py", True),
        ("--conf a=b pyspark-shell", True),
        ("--class org.example.Orders orders.jar one", False),
    ],
)
def test_a_program_in_another_language_says_nothing_of_its_end(tmp_path: Path, words: str, told: bool) -> None:
    end = tmp_path / "queries.end"
    _, overlay = written(tmp_path, end)
    assert json.loads(end.read_text())["said"] == NOT_BEGUN.said
    script = tmp_path / "spark-class"  # as Spark's own reads it: with the words of spark-submit
    script.write_text(f". {overlay}/spark-env.sh\n")
    command = ["/bin/bash", str(script), "org.apache.spark.deploy.SparkSubmit", *words.split()]
    environment = {**os.environ, "SPARK_CONF_DIR": str(overlay)}
    subprocess.run(command, env=environment, check=True, timeout=PATIENCE_S)
    assert json.loads(end.read_text()).get("said") == (NOT_BEGUN.said if told else None)


def in_a_jvm(overlay: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Read the configuration's shell as the process does that becomes a JVM, and say its PYTHONPATH."""
    command = ["/bin/bash", "-c", f". {overlay}/spark-env.sh; echo $PYTHONPATH"]
    environment = {**os.environ, "SPARK_CONF_DIR": str(overlay), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_a_script_that_replaces_the_python_path_takes_no_hook_from_the_driver_that_the_jvm_starts(
    tmp_path: Path,
) -> None:
    added, overlay = written(tmp_path)
    hook = added["PYTHONPATH"].partition(":")[0]
    assert in_a_jvm(overlay, PYTHONPATH="/opt/app").stdout == f"{hook}:/opt/app\n"
    assert in_a_jvm(overlay, PYTHONPATH="").stdout == f"{hook}\n", "an empty part would be the working directory"
    assert in_a_jvm(overlay, PYTHONPATH=f"/opt/app:{hook}").stdout == f"/opt/app:{hook}\n"


@pytest.mark.parametrize(("engine", "noted", "code"), [("", False, 78), ("", True, 0), ("0", False, 0)])
def test_a_driver_without_the_hook_gets_no_jvm(tmp_path: Path, engine: str, code: int, *, noted: bool) -> None:
    added, overlay = written(tmp_path)
    if noted:
        Path(f"{added['HA_SPARK_JVM']}{DRIVER}").touch()
    ended = in_a_jvm(overlay, PYTHONPATH="", HA_ENGINE=engine, _PYSPARK_DRIVER_CONN_INFO_PATH="/x")
    assert ended.returncode == code
    assert ("because PYTHONPATH was replaced" in ended.stderr) is (code != 0)


def test_a_jvm_and_a_driver_are_noted_on_a_disk_that_is_full_by_then(tmp_path: Path) -> None:
    """The guard would take them for astray, and kill a good driver."""
    with small_disk(tmp_path):
        added, overlay = written(tmp_path)
        noted = Path(added["HA_SPARK_JVM"])
        fill(tmp_path / "rest")
        shell = ["/bin/bash", "-c", f". {overlay}/spark-env.sh; echo $$"]
        variables = {**os.environ, "SPARK_CONF_DIR": str(overlay)}
        done = subprocess.run(shell, capture_output=True, text=True, check=True, timeout=PATIENCE_S, env=variables)
        driver_note.changes(f"{noted}{DRIVER}")[driver_note.MODULE](module := SimpleNamespace(launch_gateway=bool))
        module.launch_gateway()
        assert [int(noted.read_text()), int(Path(f"{noted}{DRIVER}").read_text())] == [int(done.stdout), os.getpid()]
