"""The lines of docs/api.md that begin with curl do what they are there for."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ha.spark.replication.report import REPORT, ReplicaReport, encoded
from tests.patience import PATIENCE_S
from tests.unit.ha.api.serving import OPERATE, Served, status
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.led import Led

ROOT = Path(__file__).parents[4]
LINES = re.findall(r"^curl (?:.*\\\n)*.*$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
GIVEN = "http://127.0.0.1:8300"
TIME_IS_OVER = 28
"""Exit code of curl at the end of the time, as of a stream that has no end."""

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


def run(line: str, served: Served) -> str:
    """Run a line as a person would, with a token where reading needs one as well; return what it printed."""
    line = line.replace(GIVEN, served.url)
    if "Authorization" not in line:
        line = line.replace("curl ", 'curl -H "Authorization: Bearer $TOKEN" ', 1)
    if "/events" in line:
        line += " --max-time 1"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={"TOKEN": OPERATE, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == (TIME_IS_OVER if "/events" in line else 0), line
    return done.stdout.decode()


@pytest.mark.slow
def test_each_line_is_answered(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    (leader,) = (quick / "orders").iterdir()
    until_batch(HDFS, 2).write_to(leader / "spark/daily")
    served.contends["orders"] = status("orders", leads=True, epoch=1)
    Led(quick).claim("orders.replica", "a:1", contender="host-a")
    (replica,) = (quick / "orders.replica").iterdir()
    (replica / REPORT).write_bytes(encoded(ReplicaReport("hdfs://first/jobs/orders", 0.0, [])))
    assert len(LINES) == 22
    for line in LINES:
        said = run(line, served)
        if "/events" in line:
            assert "event: job\n" in said
        elif "-sI" in line:
            assert said.startswith("HTTP/1.1 200")
        else:
            found = json.loads(said)
            assert "detail" not in found, f"{line}: {said}"
