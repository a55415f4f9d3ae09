"""Fixture of the compose file's servers, started and stopped by testcontainers."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import pytest

os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # its reaper needs an image that may be unavailable

from testcontainers.compose import DockerCompose

from ha.drill.container import Stack, compose_command, compose_folder
from ha.drill.container_environment import KINDS, ContainerEnvironment
from ha.drill.environment import DrillError
from tests.limits import HANGS_S

SERVERS = [f"{kind}-{number}" for kind, count in KINDS.items() for number in range(1, count + 1)]


class Compose(DockerCompose):
    def __init__(self, stack: Stack) -> None:
        super().__init__(context=str(compose_folder()), wait=False, services=SERVERS)
        self._stack = stack

    @cached_property
    def compose_command_property(self) -> list[str]:
        return [*compose_command(), *self._stack.arguments()]

    def stop(self, down: bool = True) -> None:
        """Remove everything: given a list of services, Compose removes nothing."""
        del down
        self._run_command(cmd=[*self.compose_command_property, "down", "--volumes", "--remove-orphans"])

    def _run_command(self, cmd: str | list[str], context: str | None = None) -> "subprocess.CompletedProcess[bytes]":
        """Run Compose with a limit: an engine that is half dead takes its requests, and answers none."""
        done = subprocess.run(cmd, capture_output=True, cwd=context or str(self.context), timeout=HANGS_S, check=False)
        assert done.returncode == 0, f"{cmd} failed with {done.returncode}: {done.stderr.decode(errors='replace')}"
        return done


class Cluster:
    """The servers. Once they have not got well, ``unwell`` says why: each drill would wait for them for minutes."""

    def __init__(self, environment: ContainerEnvironment) -> None:
        self.environment = environment
        self.unwell = ""
        self._started: ExitStack | None = None

    def start(self) -> None:
        """Start the servers' containers, if they have not been."""
        if self._started is not None:
            return
        self._started = ExitStack()
        try:
            patch = self._started.enter_context(pytest.MonkeyPatch.context())
            self.environment.stack.net = next(self.environment.stack.nets())
            for name, value in self.environment.stack.variables().items():
                patch.setenv(name, value)
            self._started.enter_context(Compose(self.environment.stack))
        except Exception as error:
            self.unwell = f"the containers did not start: {error}"
            raise

    def end(self) -> None:
        if self._started is not None:
            self._started.close()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """All servers, each in its container; skips loudly where there is no engine."""
    folder = Path(os.environ.get("HA_DRILLS_FOLDER") or tmp_path_factory.mktemp("drills"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        made = Cluster(ContainerEnvironment(folder))
    except DrillError as error:
        pytest.skip(f"THE DRILLS IN CONTAINERS ARE NOT RUN: {error}")
    yield made
    made.end()


@pytest.fixture
def containers(cluster: Cluster) -> ContainerEnvironment:
    if cluster.unwell:
        pytest.skip(f"THE REST OF THE DRILLS IN CONTAINERS IS NOT RUN: {cluster.unwell}")
    cluster.start()
    return cluster.environment
