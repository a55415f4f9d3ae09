"""Fixture of the compose file's servers, started and stopped by testcontainers."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # its reaper needs an image that may be unavailable

from testcontainers.compose import DockerCompose

from ha.drill import compose
from ha.drill.container_environment import KINDS, ContainerEnvironment
from ha.drill.environment import DrillError

SERVERS = [f"{kind}-{number}" for kind, count in KINDS.items() for number in range(1, count + 1)]


class Compose(DockerCompose):
    def __init__(self, stack: compose.Stack) -> None:
        super().__init__(context=str(compose.folder()), wait=False, services=SERVERS)
        self._stack = stack

    @cached_property
    def compose_command_property(self) -> list[str]:
        return [*compose.command(), *self._stack.arguments()]

    def stop(self, down: bool = True) -> None:
        """Remove everything: given a list of services, Compose removes nothing."""
        del down
        self._run_command(cmd=[*self.compose_command_property, "down", "--volumes", "--remove-orphans"])


@pytest.fixture(scope="session")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerEnvironment]:
    """All servers, each in its container; skips loudly where there is no engine."""
    folder = Path(os.environ.get("HA_DRILLS_FOLDER") or tmp_path_factory.mktemp("drills"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        environment = ContainerEnvironment(folder)
    except DrillError as error:
        pytest.skip(f"THE DRILLS IN CONTAINERS ARE NOT RUN: {error}")
    with pytest.MonkeyPatch.context() as patch:
        environment.stack.net = next(environment.stack.nets())
        for name, value in environment.stack.variables().items():
            patch.setenv(name, value)
        with Compose(environment.stack):
            yield environment
