"""The units for systemd, started as systemd starts them: what they run is what the words of JOB_COMMAND say.

systemd splits a variable without braces into words at blanks, and takes quotes as a shell does (systemd.service(5)).
"""

import json
import shlex
from pathlib import Path

import pytest

from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import wait_until
from tests.unit.test_deploy_examples import SERVICES, unit

pytestmark = pytest.mark.programs

TELLS = "import json, sys; json.dump(sys.argv[1:], open('words', 'w'))"


def started(workplace: Workplace, path: Path, job_command: str) -> Program:
    program, *words = shlex.split(unit(path)["Service"]["ExecStart"])
    assert program == "/opt/hybrid-ha/bin/ha"
    known = {"%i": ["orders"], "%H": ["a"], "$JOB_COMMAND": shlex.split(job_command)}
    return workplace.ha(*(each for word in words for each in known.get(word, [word])))


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_quoted_argument_arrives_whole(workplace: Workplace, path: Path) -> None:
    """R69 of the reports: a shell between split it."""
    program = started(workplace, path, f"python3 -c {shlex.quote(TELLS)} --day '28 November' \"it's\"")
    words = workplace.work / "words"
    wait_until(lambda: words.exists() and words.read_text().endswith("]"), what="the command has told its words")
    assert json.loads(words.read_text()) == ["--day", "28 November", "it's"]
    assert program.wait() == 0


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_driver_on_another_host_is_refused(workplace: Workplace, path: Path, tmp_path: Path) -> None:
    """R69 of the reports: behind a shell nobody saw that it would run in cluster mode."""
    submit = tmp_path / "spark-submit"
    submit.write_text("#!/bin/sh\ntouch started\n")
    submit.chmod(0o755)
    program = started(workplace, path, f"{submit} --deploy-mode cluster orders.py")
    assert program.wait() == 2
    assert "use client mode" in program.said
    assert not (workplace.work / "started").exists()
