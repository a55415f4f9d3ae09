"""The runbook, walked: deploy, upgrade, roll back, save, drain, rewind, replicate, promote, as the docs say it.

Each command stands in a page as it is given here, but for names of places. After each the job is asked, as a person
would ask it, and at the end each line of the input is in the output once.
"""

import os
import re
import shlex
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ha.sandbox import Sandbox
from store.files import Files
from tests.limits import HANGS_S, killed
from tests.system.spark.helpers import eventually, files_of, rows_below

pytestmark = [
    pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200),
]  # fmt: skip

DOCS = Path(__file__).parents[3] / "docs"
UPGRADES, DRAINING = "operations/upgrades.md", "operations/draining-and-moving.md"
ENDING, CHECKPOINTS, REPLICATION = "operations/stopping-and-cleaning.md", "checkpoints.md", "replication.md"
WALK_S = 1000  # of all steps: each of them has a limit of its own
PROGRAM = """
import os

import ha.spark
import rules
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").getOrCreate()
lines = spark.readStream.option("maxFilesPerTrigger", 1).text(os.environ["IN"])
with ha.spark.lead("orders", spark) as leadership:
    output = ha.spark.Output(leadership, os.environ["OUT"], source="text")
    rules.applied(lines).coalesce(1).writeStream.queryName("daily").foreachBatch(output).start().awaitTermination()
"""
RULES = "def applied(lines):\n    return lines.selectExpr(\"concat('{version} ', value) AS value\")\n"


def documented(page: str, command: str) -> list[str]:
    """Return the words of a command, which has to stand in a block of a page."""
    blocks = re.findall(r"^```\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.partition("  #")[0].rstrip() for block in blocks for line in block.splitlines()]
    assert command in [" ".join(line.split()) for line in lines], f"{page} has no {command!r}"
    return shlex.split(command)


class Walk:
    """One operator, two hosts, and two clusters: two roots of one HDFS, and two names of contenders."""

    def __init__(self, sandbox: Sandbox, place: Path) -> None:
        environment = sandbox.environment()
        base = f"{environment['HA_FILES'].rpartition('/')[0]}/runbook-{uuid.uuid4().hex[:8]}"
        self.place, self.base, self.fed = place, base, 0
        self.first, self.other = f"{base}/first", f"{base}/other"
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.variables = {
            **os.environ, **environment, "PATH": path, "PYSPARK_PYTHON": sys.executable, "HA_FILES": self.first,
            "IN": f"{base}/in", "OUT": f"{base}/out",
        }  # fmt: skip
        (place / "orders.py").write_text(PROGRAM)

    def rules(self, version: str) -> None:
        (self.place / "rules.py").write_text(RULES.format(version=version))

    def feed(self, version: str) -> None:
        """Give the job a line; the rules in force put their version before it."""
        self.fed += 1

        def put(files: Files) -> None:
            files.make_root()
            files.make_directory("in")
            files.write(f"in/{self.fed}.txt", f"{self.fed}\n".encode())

        with files_of(self.base) as do:
            do(put)
        eventually(lambda: f"{version} {self.fed}" in self.rows, HANGS_S)

    @property
    def rows(self) -> Counter[str]:
        return rows_below(self.base, "out", ".txt", lambda data: data.decode().splitlines())

    def does(self, page: str, command: str, *more: str, code: int = 0) -> str:
        """Give a command of a page, with answers for a person's; returns what it says."""
        places = {"hdfs://other/jobs": self.other, "hdfs://first/jobs": self.first}
        words = [places.get(word, word) for word in documented(page, command)]
        return self.asks(*words, *more, code=code)

    def asks(self, *words: str, code: int = 0) -> str:
        ended = subprocess.run(
            words, cwd=self.place, env=self.variables, capture_output=True, text=True, timeout=HANGS_S, check=False
        )
        assert ended.returncode == code, f"{words}: {ended.returncode}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        return ended.stdout + ended.stderr

    @contextmanager
    def host(self, name: str, *more: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the job on a host, by the command of the page."""
        words = [*documented(UPGRADES, "ha run orders"), "--contender", name, *more]
        with (self.place / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(words, cwd=self.place, env=self.variables, stdout=log, stderr=log)
        with killed(process, WALK_S):
            yield process

    def shown(self, wanted: str) -> str:
        """Look at the job until the story is told so; returns it."""
        return eventually(lambda: said if re.search(wanted, said := self.asks("ha", "job", "show", "orders")) else "")


@pytest.fixture
def walk(sandbox: Sandbox, tmp_path: Path) -> Walk:
    return Walk(sandbox, tmp_path)


def deployed_upgraded_and_rolled_back(walk: Walk) -> None:
    submit = "ha job submit orders --file orders.py --file rules.py --env TOPIC=orders -- spark-submit orders.py"
    walk.rules("two")
    walk.does(UPGRADES, submit)
    walk.does(UPGRADES, "ha job restart orders")
    walk.shown(r"(?m)^program +version 2\b")
    walk.feed("two")
    walk.does(UPGRADES, "ha job submit orders --version 1")
    walk.does(UPGRADES, "ha job restart orders")
    walk.shown(r"(?m)^program +version 3\b")
    walk.feed("one")
    listed = walk.does(UPGRADES, "ha job submit orders --list")
    assert len(re.findall(r"(?m)^ *[123] ", listed)) == 3, listed


def saved_and_drained(walk: Walk) -> None:
    walk.does(CHECKPOINTS, "ha savepoint take orders")
    assert "daily" in walk.asks("ha", "savepoint", "list", "orders")
    leads = re.search(r"(?m)^leader +(host-[ab])", walk.shown(r"(?m)^leader +host-[ab]"))
    assert leads is not None
    host = leads[1]
    drain = documented(DRAINING, 'ha host drain host-a --reason "new disks"')
    words = [host if word == "host-a" else word for word in drain]
    with killed(subprocess.Popen(words, cwd=walk.place, env=walk.variables)) as draining:
        other = "host-b" if host == "host-a" else "host-a"
        assert f"{host} is barred" in walk.shown(rf"(?m)^leader +{other}")
        walk.feed("one")
        assert draining.wait(HANGS_S) == 0, "the next leader has completed a batch"
    undrain = documented(DRAINING, "ha host undrain host-a")
    walk.asks(*(host if word == "host-a" else word for word in undrain))
    assert "is barred" not in walk.shown(r"(?m)^leader")


def test_the_runbook_is_walked(walk: Walk) -> None:
    submit = "ha job submit orders --file orders.py --file rules.py --env TOPIC=orders -- spark-submit orders.py"
    walk.rules("one")
    walk.does(UPGRADES, submit)
    with ExitStack() as stack:
        hosts = [stack.enter_context(walk.host(name)) for name in ("host-a", "host-b")]
        walk.feed("one")
        walk.shown(r"(?m)^program +version 1\b")
        deployed_upgraded_and_rolled_back(walk)
        saved_and_drained(walk)
        walk.does(ENDING, "ha job stop orders")
        assert [host.wait(HANGS_S) for host in hosts] == [0, 0]
    assert "FINISHED" in walk.shown("FINISHED")
    before = walk.rows
    assert before == Counter(["one 1", "two 2", "one 3", "one 4"])

    rewind = documented(CHECKPOINTS, "ha checkpoint rewind orders daily --to 7 --outputs aside")
    walk.asks(*("1" if word == "7" else word for word in rewind), "--yes")
    assert walk.rows == Counter(["one 1", "two 2"]), "what came after is in the trash"
    with walk.host("host-a", "--again"):
        eventually(lambda: walk.rows == before, HANGS_S)
        walk.does(REPLICATION, "ha replica run orders --to hdfs://other/jobs --once")
        said = walk.does(REPLICATION, "ha replica status orders --to hdfs://other/jobs")
        assert re.search(r"\bdaily\b", said), said

        walk.variables["HA_FILES"] = walk.other
        walk.does(REPLICATION, "ha replica promote orders --old-files hdfs://first/jobs", "--yes")
    walk.rules("one")
    walk.does(UPGRADES, submit, "--no-preflight")
    with walk.host("host-c"):
        walk.feed("one")
        walk.shown(r"(?m)^leader +host-c")
    assert walk.rows == before + Counter(["one 5"])
    walk.variables["HA_FILES"] = walk.first
    walk.shown("CANCELED")
