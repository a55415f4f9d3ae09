"""No test waits without end for a JVM that hangs."""

import os
import sys
from pathlib import Path

import pytest
from pyspark import java_gateway
from pyspark.errors import PySparkRuntimeError

from tests.system.spark.jvm import jvm_within
from tests.unit.ha.programs import alive

pytestmark = pytest.mark.programs

HANGS = """#!{python}
import os, signal
with open({file!r}, "w") as file: file.write(str(os.getpid()))
signal.pause()
"""


def test_a_jvm_that_tells_no_port_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(HANGS.format(python=sys.executable, file=str(tmp_path / "pid")))
    submit.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(PySparkRuntimeError, match="JAVA_GATEWAY_EXITED"), jvm_within(3.0):
        java_gateway.launch_gateway()  # type: ignore[no-untyped-call]
    pid = int((tmp_path / "pid").read_text())
    assert pid != os.getpid()
    assert not alive(pid)
