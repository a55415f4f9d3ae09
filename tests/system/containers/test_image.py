"""The image as platforms start it, and as the documents use it."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docker import from_env

from ha.drill.container import Contained
from store.clock import now
from tests.system.containers.conftest import IMAGE, Docker
from tests.system.spark.helpers import eventually

pytestmark = [pytest.mark.containers, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("program.py")
RUN_S = 200.0
STORES = ("-e", "HA_FILES=file:///tmp/ha", "-e", "HA_ZOOKEEPER=")
ANYBODY = "1000670000"
READ_ONLY = ("--read-only", "--tmpfs", "/tmp")  # noqa: S108  # of the container, noexec

WAYS = {
    "as it is": (),
    "read-only": READ_ONLY,
    "any user id": ("--user", f"{ANYBODY}:0"),
    "no home": ("--user", f"{ANYBODY}:{ANYBODY}", "-e", "HOME=/nonexistent"),
    "restricted": (*READ_ONLY, "--user", f"{ANYBODY}:0", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_program_runs_however_the_image_is_started(way: tuple[str, ...], engine: Docker) -> None:
    mounted = ("-v", f"{PROGRAM}:/opt/orders/program.py:ro")
    words = ("run", "orders", "--spark", "--", "spark-submit", "/opt/orders/program.py", "file:///tmp/job")
    said = engine("run", "--rm", *STORES, *way, *mounted, IMAGE, *words, seconds=RUN_S)
    assert "published: be snappy to zstd" in said


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_the_doctor_finds_the_host_well_however_the_image_is_started(way: tuple[str, ...], engine: Docker) -> None:
    said = engine("run", "--rm", *STORES, *way, IMAGE, "host", "doctor")
    assert "noexec" not in said
    assert re.search(r"ok +temporary dir", said)
    assert engine("run", "--rm", *way, "--entrypoint", "id", IMAGE, "-un") == "ha\n", "to HDFS, too"


@pytest.mark.parametrize("name", ["sidecar", "hdfs", "zookeeper"])
def test_a_platform_can_see_that_the_user_is_not_root(name: str, engine: Docker) -> None:
    (found,) = json.loads(engine("image", "inspect", f"hybrid-ha/{name}"))
    assert found["Config"]["User"] == "1000"
    labels = {each.removeprefix("org.opencontainers.image."): text for each, text in found["Config"]["Labels"].items()}
    assert (labels["title"], labels["version"], labels["licenses"]) == (f"hybrid-ha/{name}", "0.1.0", "Apache-2.0")


def test_the_image_has_what_the_wheel_has(engine: Docker) -> None:
    assert engine("run", "--rm", IMAGE, "--version") == "ha, version 0.1.0\n"
    shell = ("run", "--rm", "--entrypoint", "sh", IMAGE, "-c")
    assert engine(*shell, "python --version").startswith("Python 3.11")
    assert "version 4.3.0" in engine(*shell, "spark-submit --version")
    assert engine(*shell, "python -c 'import pyspark_ha, ha.drill'") == ""


@pytest.fixture
def started(engine: Docker) -> Iterator[Callable[..., str]]:
    """Starts a container in the background, and removes it in the end."""
    made: list[str] = []

    def start(*words: str) -> str:
        made.append(engine("run", "--detach", *words).strip())
        return made[-1]

    yield start
    for each in made:
        engine("rm", "--force", "--volumes", each)


@pytest.fixture
def recipe(engine: Docker, tmp_path: Path) -> Iterator[str]:
    """The image of a program of one's own, made as the documents say."""
    page = (ROOT / "docs" / "deploying.md").read_text()
    (text,) = re.findall(r"^```dockerfile\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "Dockerfile").write_text(text)
    (tmp_path / "orders.py").write_text(PROGRAM.read_text().replace("sys.argv[1]", "'file:///tmp/job'"))
    image = f"hybrid-ha-test-{uuid.uuid4().hex[:8]}"
    engine("build", "--quiet", "--tag", image, str(tmp_path), seconds=RUN_S)
    yield image
    engine("image", "rm", image)


def test_a_program_of_ones_own_runs_by_the_recipe(engine: Docker, recipe: str, started: Callable[..., str]) -> None:
    container = started("--restart", "unless-stopped", *STORES, recipe)
    eventually(lambda: "stays until the job runs again" in engine("logs", container), RUN_S)
    assert "published: be snappy to zstd" in engine("logs", container)


@pytest.mark.parametrize(("command", "end"), [("true", "FINISHED"), ("false", "FAILED")])
def test_the_sidecar_of_an_ended_job_is_not_restarted_for_ever(
    command: str, end: str, engine: Docker, started: Callable[..., str]
) -> None:
    variables = ("-e", "HA_FAILOVER_MAX_ATTEMPTS=1", *STORES)
    sidecar = started("--restart", "unless-stopped", *variables, IMAGE, "run", "orders", "--stay", "--", command)
    eventually(lambda: "stays until the job runs again" in engine("logs", sidecar), RUN_S)
    (found,) = json.loads(engine("inspect", sidecar))
    assert (found["RestartCount"], found["State"]["Running"]) == (0, True)
    (job,) = json.loads(engine("exec", sidecar, "ha", "job", "list", "--json"))
    assert (job["state"], job["epoch"]) == (end, 1)
    engine("exec", "--detach", sidecar, "ha", "run", "orders", "--again", "--contender", "other", "--", "sleep", "1000")
    eventually(lambda: "the job runs again." in engine("logs", sidecar), RUN_S)
    engine("stop", "--time", "20", sidecar)
    (found,) = json.loads(engine("inspect", sidecar))
    assert found["State"]["ExitCode"] == 143


BEATS = """
import subprocess, sys
child = "import os, time\\nwhile True: os.write(1, b'%f\\\\n' % time.clock_gettime(time.CLOCK_BOOTTIME))"
subprocess.run([sys.executable, "-c", child])
"""


def test_a_drill_knows_when_the_last_process_of_a_killed_container_lived(started: Callable[..., str]) -> None:
    name = started("--entrypoint", "tini", IMAGE, "--", "python", "-c", BEATS)
    client = from_env()
    member = Contained("a", client.containers.get(name), client)
    eventually(lambda: "." in member.log(), RUN_S)
    asked = now()
    member.kill()
    answered, ended = now(), member.ended_at()
    last = float(member.log().splitlines()[-2])
    client.close()
    assert asked < last <= ended <= answered
