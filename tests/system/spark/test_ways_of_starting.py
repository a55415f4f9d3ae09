"""Each way to start a program that the docs name goes through a submit, pre-flight, a restart, and a bad version.

A way is a command of a person: `python`, `spark-submit` whose PySpark comes from a zip, a script, a module by
`--py-files`, a virtual environment. Without the engine the program imports nothing of ours.
"""

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.limits import HANGS_S, killed
from tests.system.spark.helpers import eventually

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
HA = str(Path(sys.executable).with_name("ha"))
PLACES = [str(ROOT), *(each for each in sys.path if each.endswith("site-packages"))]
PROGRAM = """
import os

from pyspark.sql import SparkSession
{imports}
settings = {{"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.sql.shuffle.partitions": 1}}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
lines = spark.readStream.schema("a string, b string").option("maxFilesPerTrigger", 1).json(os.environ["IN"])
rows = lines.dropDuplicates([os.environ["KEY"]]).selectExpr({rows!r})
writer = rows.writeStream.queryName("orders").format("ha").option("format", "text").option("path", os.environ["OUT"])
{start}
"""
PLAIN = "writer.start().awaitTermination()"
ADOPTED = """with ha.spark.lead("orders", spark):
    ha.spark.reattach_or_start(spark, "orders", writer.start).awaitTermination()"""
WAYS = ("python", "spark-submit", "script", "py-files", "venv")
ENGINES = ("python", "spark-submit", "py-files", "venv")  # a script is refused


class Person:
    """Who works with one job of this host, in a directory of his own."""

    def __init__(self, place: Path, way: str, *, engine: bool) -> None:
        self.place, self.engine, self.fed = place, engine, 0
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.variables = {
            **os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT),
            "HA_FILES": (place / "jobs").as_uri(), "HA_ZOOKEEPER": "",
            "IN": str(place / "in"), "OUT": str(place / "out"),
        }  # fmt: skip
        (place / "in").mkdir()
        imports = ["import ha.spark"] * engine + ["import rules"] * (way == "py-files")
        rows = "concat(a, '')" if way != "py-files" else "concat(a, '', '')"
        program = PROGRAM.format(imports="\n".join(imports), rows=f"{rows} value", start=ADOPTED if engine else PLAIN)
        (place / "orders.py").write_text(program)
        self.files, self.command = ["orders.py"], {
            "python": ["python", "orders.py"],
            "spark-submit": ["spark-submit", "orders.py"],
            "script": ["sh", "start.sh"],
            "py-files": ["spark-submit", "--py-files", "rules.zip", "orders.py"],
            "venv": [str(place / "own/bin/python"), "orders.py"],
        }[way]  # fmt: skip
        if way == "script":
            (place / "start.sh").write_text("echo of the script\nspark-submit orders.py\n")
            self.files.append("start.sh")
        if way == "py-files":
            with zipfile.ZipFile(place / "rules.zip", "w") as packed:
                packed.writestr("rules.py", "ARE = 'there'\n")
            self.files.append("rules.zip")
        if way == "venv":
            del self.variables["PYTHONPATH"], self.variables["PYSPARK_PYTHON"]
            venv.create(place / "own")
            (site,) = (place / "own/lib").glob("*/site-packages")
            (site / "others.pth").write_text("\n".join(PLACES))

    def asks(self, *words: str, code: int = 0) -> str:
        ended = subprocess.run(
            [HA, *words], cwd=self.place, env=self.variables, capture_output=True, text=True, timeout=HANGS_S,
            check=False,
        )  # fmt: skip
        assert ended.returncode == code, f"{words}: {ended.returncode}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        return ended.stdout + ended.stderr

    def submits(self, key: str, code: int = 0) -> str:
        files = [word for each in self.files for word in ("--file", each)]
        known = [word for each in (f"KEY={key}", "IN", "OUT") for word in ("--env", each)]
        return self.asks("job", "submit", "orders", *files, *known, "--", *self.command, code=code)

    def feeds(self) -> None:
        """Give the job a new row, and wait until it is published."""
        self.fed += 1
        (self.place / "in" / f"{self.fed}.json").write_text(f'{{"a": "{self.fed}", "b": "{self.fed}"}}\n')
        eventually(lambda: self.rows == [str(each + 1) for each in range(self.fed)], HANGS_S)

    @property
    def rows(self) -> list[str]:
        found = [path.read_text().split() for path in (self.place / "out").glob("batch=*/*.txt")]
        return sorted(word for words in found for word in words)

    @contextmanager
    def host(self) -> Iterator["subprocess.Popen[bytes]"]:
        words = [HA, "run", "orders", "--engine" if self.engine else "--spark"]
        with (self.place / "log").open("wb") as log:
            process = subprocess.Popen(words, cwd=self.place, env=self.variables, stdout=log, stderr=log)
        with killed(process, HANGS_S * 3):
            yield process


@pytest.mark.parametrize(
    ("way", "engine"), [*((way, False) for way in WAYS), *((way, True) for way in ENGINES)],
    ids=[*WAYS, *(f"{way} with an engine" for way in ENGINES)],
)  # fmt: skip
def test_a_program_is_submitted_tried_restarted_and_changed(way: str, tmp_path: Path, *, engine: bool) -> None:
    person = Person(tmp_path, way, engine=engine)
    try:
        with person.host() as sidecar:
            person.submits("a")
            person.feeds()
            assert "orders" in person.asks("job", "preflight", "orders")
            assert "Version 1 runs" in person.asks("job", "restart", "orders")
            person.feeds()
            refused = person.submits("b", code=1)
            assert "State 'default' of operator 0 is a string" in refused, refused
            assert len(person.asks("job", "submit", "orders", "--list").splitlines()) == 1, "it was not stored"
            person.feeds()
            person.asks("job", "stop", "orders")
            assert sidecar.wait(HANGS_S) == 0
        assert "FINISHED" in person.asks("job", "show", "orders")
    finally:
        print((tmp_path / "log").read_text()[-5000:])  # noqa: T201  # shown if the test fails
