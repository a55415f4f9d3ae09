"""Hostile arguments: the command line ends with one of its exit codes and without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ha.cli import exit_code
from tests.patience import PATIENCE_S
from tests.system.hostile.strategies import ANY_TEXT, damaged, examples

CODES = {0, 1, 2, 3, 4}
ARGUMENTS = (ANY_TEXT | damaged(st.sampled_from(["orders", "jobmaster=host:1", "0.1", "--json"]))).filter(
    lambda text: "\0" not in text and "help" not in text
)


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HA_FILES", f"file://{tmp_path}/jobs")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("nobody")
def test_no_argument_is_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    @examples(60)
    @given(ARGUMENTS)
    @example("a\nb")
    @example("nan")
    @example("9" * 5000)
    @example("")
    def check(text: str) -> None:
        shown = text.encode("utf-8", "replace").decode()  # as captured streams can print it; see the next test
        for arguments in (
            ["job", "leader", "--timeout", "0.1", "--", shown],
            ["job", "leader", f"--timeout={shown}", "--", "gone"],
            ["job", "history", "--", shown],
            ["checkpoint", "newest", "--timeout", "0.1", "--", shown],
            ["job", "handover", "--timeout", "0.1", "--", shown],
            ["job", "handover", f"--to={shown}", "--", "gone"],
            ["host", "daemon", f"--endpoint={shown}", f"--contender=.{shown}", "--", "gone"],
        ):
            assert exit_code(arguments) in CODES, arguments
        assert "Traceback" not in capsys.readouterr().err

    check()


@pytest.mark.usefixtures("nobody")
def test_bytes_that_are_no_text_are_a_mistake_like_any_other() -> None:
    command: list[str | bytes] = [sys.executable, "-m", "ha.cli", "job", "leader", b"\xff\x1b[2J"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    ended = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"ha: '\\udcff\\x1b[2J' is not a job name")
