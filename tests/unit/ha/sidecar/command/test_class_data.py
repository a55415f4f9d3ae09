"""An archive of Spark's classes: made once, offered when it is whole, and never a reason not to start.

Here ``spark-submit`` is a script of the shell. ``benchmarks.spark.failover`` has the real one.
"""

import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ha.hosts.cache import forget_old, intact
from ha.hosts.java import find_java
from ha.sidecar.command import class_data
from ha.sidecar.command.class_data import ClassData, jars_of
from tests.limits import joined
from tests.patience import PATIENCE_S
from tests.unit.ha.noting import NOTES, Notes, run
from tests.unit.ha.programs import Workplace, alive
from tests.unit.ha.waiting import wait_until

MAKES = """#!/bin/sh
echo run >> {folder}/runs
env | grep -E '^(HA_|SPARK_)' > {folder}/environment
echo "$@" > {folder}/arguments
cat "$SPARK_CONF_DIR/spark-defaults.conf" > {folder}/defaults
[ {code} = hang ] && {{ echo $$ > {folder}/pid; sleep 1000; }}
file=$(echo "$SPARK_SUBMIT_OPTS" | sed -n 's/.*-XX:ArchiveClassesAtExit=\\([^ ]*\\).*/\\1/p')
[ {code} = nothing ] || echo classes > "$file"
echo "the last words"
exit {code}
"""


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a Spark whose ``spark-submit`` makes an archive."""
    home = tmp_path / "spark"
    for folder in ("jars", "bin"):
        (home / folder).mkdir(parents=True)
    (home / "jars" / "spark-core_2.13-4.3.0.jar").write_text("a jar")
    submit = home / "bin" / "spark-submit"
    submit.touch(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_HOME", str(home))
    for name in ("SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    training(home, "0")
    return home


def training(home: Path, code: str) -> None:
    (home / "bin" / "spark-submit").write_text(MAKES.format(folder=home, code=code))


def found(home: Path) -> ClassData:
    made = ClassData(["python", "orders.py"], "file:///jobs")
    made.find()
    assert made.archive is None or made.jars == home / "jars"
    return made


def test_it_is_made_once_and_used_by_all(spark: Path) -> None:
    first, second = found(spark), found(spark)
    assert first.archive is not None
    assert first.archive == second.archive
    assert intact(first.archive)
    assert (spark / "runs").read_text() == "run\n"
    options = second.options({"SPARK_SUBMIT_OPTS": "-Dusers=own"})
    assert list(options) == ["SPARK_SUBMIT_OPTS"]
    assert options["SPARK_SUBMIT_OPTS"].startswith(f"-XX:SharedArchiveFile={first.archive} -Xshare:auto -Xlog:cds")
    assert options["SPARK_SUBMIT_OPTS"].endswith(" -Dusers=own"), "what the user says comes later, and so counts"


@pytest.mark.parametrize("site", ["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=4"])
def test_the_options_of_the_training_bear_those_of_a_site(site: str) -> None:
    command = [str(find_java().path), *class_data.BRIEF.split(), site, "-version"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert said.returncode == 0, said.stderr


def test_two_sidecars_that_begin_together_make_one(spark: Path) -> None:
    looking = [threading.Thread(target=found, args=(spark,)) for _ in range(2)]
    for each in looking:
        each.start()
    joined(*looking)
    assert (spark / "runs").read_text() == "run\n"


def test_the_training_is_no_part_of_the_job(spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_EPOCH", "7")
    monkeypatch.setenv("HA_GRANT", "/somewhere")
    assert found(spark).archive is not None
    environment = (spark / "environment").read_text().splitlines()
    assert "HA_FILES=file:///jobs" in environment
    assert not [line for line in environment if line.startswith(("HA_EPOCH", "HA_GRANT"))]
    assert f"spark.driver.extraClassPath {spark}/jars/*" in (spark / "defaults").read_text()
    assert (spark / "arguments").read_text() == (
        f"--master local[1] --deploy-mode client {Path(class_data.__file__).with_name('class_training.py')}\n"
    )


@pytest.mark.parametrize(
    ("code", "says"), [("3", "the training ended with 3: the last words"), ("nothing", "the training ended with")]
)
def test_what_goes_wrong_is_said_and_kept_out(
    spark: Path, code: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    training(spark, code)
    with caplog.at_level(logging.WARNING, "ha"):
        made = found(spark)
    assert made.archive is None
    assert made.options({}) == {}
    assert re.search(f"starts without an archive of Spark's classes: {says}", caplog.text)
    training(spark, "0")
    assert found(spark).archive is not None, "the next sidecar tries again"


def test_a_damaged_archive_is_made_again(spark: Path) -> None:
    archive = found(spark).archive
    assert archive is not None
    archive.chmod(0o600)
    archive.write_text("cut off")
    assert found(spark).archive == archive
    assert archive.read_text() == "classes\n"
    assert (spark / "runs").read_text() == "run\n" * 2


def test_other_jars_have_another_archive(spark: Path) -> None:
    before = found(spark).archive
    (spark / "jars" / "added.jar").write_text("another jar")
    assert found(spark).archive != before


def test_a_training_that_hangs_ends_with_the_sidecar(spark: Path, caplog: pytest.LogCaptureFixture) -> None:
    training(spark, "hang")
    made = ClassData(["python", "orders.py"], "file:///jobs")
    made.begin()
    wait_until(lambda: (spark / "pid").exists() and (spark / "pid").read_text().strip())
    pid = int((spark / "pid").read_text())
    made.close()
    wait_until(lambda: not alive(pid))
    wait_until(lambda: "ha-class-data" not in {each.name for each in threading.enumerate()})
    assert made.archive is None
    assert not caplog.text, "an end that is meant is no fault of the host"


def test_a_training_that_takes_too_long_is_ended(
    spark: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(class_data, "TRAINING_S", 0.3)
    training(spark, "hang")
    with caplog.at_level(logging.WARNING, "ha"):
        assert found(spark).archive is None
    assert "the training took more than 0.3 s" in caplog.text


def test_a_cache_that_cannot_be_written_is_said(
    spark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "ha"):
        assert found(spark).archive is None
    assert "cannot be used" in caplog.text


def test_where_there_is_no_spark_it_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(class_data, "jars_of", lambda *_: None)
    with caplog.at_level(logging.WARNING, "ha"):
        ClassData(["python", "orders.py"], "file:///jobs").find()
    assert "no Spark is found beside the command" in caplog.text


def test_only_a_few_archives_are_kept(tmp_path: Path) -> None:
    for number in range(6):
        for kind in ("spark-classes", "classes"):
            (tmp_path / f"{kind}-{number}.jsa").touch()
            os.utime(tmp_path / f"{kind}-{number}.jsa", (number, number))
    forget_old(tmp_path, "spark-classes")
    assert sorted(each.name for each in tmp_path.glob("spark-*")) == [f"spark-classes-{n}.jsa" for n in (2, 3, 4, 5)]
    assert len(list(tmp_path.glob("classes-*"))) == 6, "those of the sandbox's servers are another kind"


class TestJars:
    def home(self, folder: Path) -> Path:
        (folder / "jars").mkdir(parents=True)
        (folder / "jars" / "spark-core_2.13-4.3.0.jar").touch()
        return folder / "jars"

    def program(self, path: Path) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)
        return str(path)

    def test_spark_home_comes_first(self, tmp_path: Path) -> None:
        jars = self.home(tmp_path / "spark")
        assert jars_of([sys.executable, "x.py"], {"SPARK_HOME": str(tmp_path / "spark"), "PATH": ""}) == jars

    def test_a_program_has_it_beside_it(self, tmp_path: Path) -> None:
        jars = self.home(tmp_path / "spark")
        submit = self.program(tmp_path / "spark" / "bin" / "spark-submit")
        assert jars_of([submit, "x.py"], {"PATH": ""}) == jars
        (tmp_path / "link").mkdir()
        (tmp_path / "link" / "spark-submit").symlink_to(submit)
        assert jars_of(["spark-submit", "x.py"], {"PATH": str(tmp_path / "link")}) == jars

    def test_a_python_has_it_among_its_packages(self, tmp_path: Path) -> None:
        jars = self.home(tmp_path / "venv" / "lib" / "python3.12" / "site-packages" / "pyspark")
        (tmp_path / "venv" / "bin").mkdir()
        (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
        assert jars_of([str(tmp_path / "venv" / "bin" / "python"), "x.py"], {"PATH": ""}) == jars

    def test_without_any_sign_it_is_this_pythons(self) -> None:
        jars = jars_of(["sh", "run"], {"PATH": ""})
        assert jars is not None
        assert jars.is_relative_to(sys.prefix)


OPTIONS = NOTES + "note(os.environ.get('SPARK_SUBMIT_OPTS', '')); sys.exit(0)"


@pytest.mark.usefixtures("spark")
def test_under_ha_run_a_command_gets_it_once_it_is_there(workplace: Workplace) -> None:
    cache = os.environ["XDG_CACHE_HOME"]
    ready = found(Path(os.environ["SPARK_HOME"])).archive
    given = {
        "HA_CLASS_DATA": "true",
        "XDG_CACHE_HOME": cache,
        "SPARK_HOME": os.environ["SPARK_HOME"],
        "HA_RERUN": "true",
    }

    def options() -> str:
        program = run(workplace, "a", OPTIONS, **given)
        assert program.wait() == 0, program.said
        return str(Notes(workplace).all()[-1][1])

    wait_until(lambda: f"-XX:SharedArchiveFile={ready}" in options(), what="a command with the archive")
    assert run(workplace, "a", OPTIONS, **{**given, "HA_CLASS_DATA": "false"}).wait() == 0
    assert "SharedArchiveFile" not in Notes(workplace).all()[-1][1]
