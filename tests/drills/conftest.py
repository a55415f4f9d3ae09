"""The servers of the compose file, as testcontainers brings them up and takes them down."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # its reaper is an image that may not be to be had

from testcontainers.compose import DockerCompose

from ha.drill import compose
from ha.drill.container_ground import KINDS, ContainerGround
from ha.drill.ground import DrillError

SERVERS = [f"{kind}-{number}" for kind, count in KINDS.items() for number in range(1, count + 1)]


class Compose(DockerCompose):
    """Takes whichever of Compose's programs is there."""

    @cached_property
    def compose_command_property(self) -> list[str]:
        files = [part for name in compose.FILES for part in ("-f", name)]
        return [*compose.command(), *files]

    def stop(self, down: bool = True) -> None:
        """Remove everything: Compose takes nothing down if it is told which services."""
        del down
        self._run_command(cmd=[*self.compose_command_property, "down", "--volumes", "--remove-orphans"])


@pytest.fixture(scope="session")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerGround]:
    """All servers, each in its container; skips loudly where there is no engine."""
    folder = Path(os.environ.get("HA_DRILLS_FOLDER") or tmp_path_factory.mktemp("drills"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        ground = ContainerGround(folder)
    except DrillError as error:
        pytest.skip(f"THE DRILLS IN CONTAINERS ARE NOT RUN: {error}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HA_CLOCKS", str(ground.clocks))
        servers = Compose(context=str(compose.folder()), wait=False, services=SERVERS)
        with servers:
            yield ground
