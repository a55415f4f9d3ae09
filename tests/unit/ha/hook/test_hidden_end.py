"""What a program says of its end when a shell may hide its exit code: Pythons with the hook, as a run has it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ha.hook import entry, hidden_end
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.programs

BEGUN = "from pyspark.java_gateway import launch_gateway; launch_gateway()\n"
CONNECTED = "from pyspark.sql.connect.session import SparkSession; SparkSession()\n"
FAILURE = {"said": "The query 'lines' has failed: no", "remedy": ""}


def said_by(tmp_path: Path, program: str, before: object = None) -> Any:
    """Run a program; return what its end file says."""
    session = tmp_path / "path" / "pyspark" / "sql" / "connect"
    session.mkdir(parents=True)
    for package in (session, *session.parents[:2]):
        (package / "__init__.py").touch()
    (session.parents[1] / "java_gateway.py").write_text("def launch_gateway(conf=None): pass")
    (session / "session.py").write_text("class SparkSession: pass")
    file = tmp_path / "queries.end"
    file.write_text(json.dumps(before or {"said": "nothing has begun", "remedy": "", "inside": True}))
    path = entry.write(tmp_path / "hook", {hidden_end.__file__: str(file)}, str(tmp_path / "path"))
    source = tmp_path / "orders.py"
    source.write_text(program.replace("FILE", repr(str(file))).replace("FAILURE", repr(json.dumps(FAILURE))))
    ended = subprocess.run(
        [sys.executable, source],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert "hook" not in ended.stderr
    assert list(tmp_path.glob("*.staged")) == []
    return json.loads(file.read_text())


def at_the_end(said: str) -> dict[str, object]:
    return {"said": said, "remedy": "", "inside": True} if said else {}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("", ""),
        ("import sys; sys.exit()", ""),
        ("import sys; sys.exit(0)", ""),
        ("import sys; sys.exit(3)", "its program has ended with 3."),
        ("import sys; sys.exit('no topic')", "its program has ended with 1."),
        ("try: 1 / 0\nexcept ArithmeticError: import sys; sys.exit(4)", "its program has ended with 4."),
        ("raise ValueError('no topic\\nof that name')", "its program has failed: ValueError: no topic"),
        ("raise KeyError", "its program has failed: KeyError"),
        ("class Odd(Exception): __str__ = None\nraise Odd", "its program has failed: Odd"),
        ("import os; os._exit(0)", hidden_end.AT_WORK),
        ("import os; os.kill(os.getpid(), 9)", hidden_end.AT_WORK),
        ("import os, sys; os.fork() or sys.exit(3); os.wait()", ""),
        ("import os\nif not os.fork(): raise ValueError\nos.wait()", ""),
        ("import sys, threading as t; one = t.Thread(target=sys.exit, args=[3]); one.start(); one.join()", ""),
        ("open(FILE, 'w').write(FAILURE); raise ValueError", None),
        ("open(FILE, 'w').write(FAILURE)", None),
        ("open(FILE, 'w').write('{}')", ""),
        ("open(FILE, 'w').write('{}'); raise ValueError", "its program has failed: ValueError"),
        ("import atexit; atexit.register(lambda: open(FILE, 'w').write('{}')); import sys; sys.exit(3)",
         "its program has ended with 3."),
    ],
)  # fmt: skip
def test_it_is_said_how_a_program_has_ended(tmp_path: Path, program: str, said: str | None) -> None:
    assert said_by(tmp_path, BEGUN + program) == (FAILURE if said is None else at_the_end(said))


@pytest.mark.parametrize(("program", "said"), [("", ""), ("import os; os._exit(0)", hidden_end.AT_WORK)])
def test_a_program_of_spark_connect_starts_no_jvm(tmp_path: Path, program: str, said: str) -> None:
    assert said_by(tmp_path, CONNECTED + program) == at_the_end(said)


@pytest.mark.parametrize("program", ["", "raise ValueError", "import pyspark.java_gateway", "import sys; sys.exit(3)"])
def test_a_process_that_starts_no_spark_says_nothing(tmp_path: Path, program: str) -> None:
    assert said_by(tmp_path, program) == at_the_end("nothing has begun")


def test_a_program_after_one_that_has_failed_says_what_is_so_now(tmp_path: Path) -> None:
    assert said_by(tmp_path, BEGUN, before=FAILURE) == {}
