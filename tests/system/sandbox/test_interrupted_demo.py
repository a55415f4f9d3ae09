"""``make demo`` that is interrupted, as by Ctrl-C or by a supervisor, leaves no process behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]


def processes_in(folder: Path) -> list[str]:
    """Return the command lines of processes that name a folder, or work in it."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            line, place = (each / "cmdline").read_bytes().decode(errors="replace"), os.readlink(each / "cwd")  # noqa: PTH115
        except OSError:
            continue
        if str(folder) in line or place.startswith(str(folder)):
            found.append(line.replace("\0", " "))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "kill"])
def test_an_interrupted_demo_leaves_no_server_behind(tmp_path: Path, number: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    command, said = [sys.executable, "-m", "examples.demo"], tmp_path / "said"
    with said.open("wb") as output:
        demo = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output, process_group=0)
        try:
            wait_until(lambda: any("NameNode" in each for each in processes_in(tmp_path)), what="a NameNode")
            os.killpg(demo.pid, number)
            assert demo.wait(PATIENCE_S) == 128 + number, said.read_text()
        finally:
            demo.kill()
    assert processes_in(tmp_path) == []
