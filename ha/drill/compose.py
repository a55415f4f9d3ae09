"""Stack of the compose file's servers, for the drills of one folder: brings it up, takes it down.

Its names, volumes, ports and network are its own, so the stacks of ``make up`` and of other folders are not touched.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import ha
from ha.drill.environment import DrillError

FILES = ("compose.yaml", "compose.clocks.yaml")
NETS = tuple(f"172.29.{number}" for number in range(84, 256))
"""Beginnings of addresses: the network of a stack has one of these, and that of ``make up`` none."""

UP_LIMIT_S = 240.0


def folder() -> Path:
    """Return the folder of the compose files: ``HA_COMPOSE``, or the one of the source tree."""
    given = os.environ.get("HA_COMPOSE")
    found = Path(given) if given else Path(ha.__file__).parent.parent / "docker"
    if not (found / "compose.yaml").exists():
        raise DrillError(f"There is no compose.yaml in {found}: set HA_COMPOSE to the folder `docker` of the sources.")
    return found


class Stack:
    """Servers for the drills of one folder; the same folder finds them again."""

    def __init__(self, folder: Path, networks: Callable[[], Iterable[Any]]) -> None:
        """Ask for nothing yet; ``networks`` returns the networks of the engine."""
        self.name = f"hybrid-ha-drill-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:6]}"
        self.clocks = folder / "clocks"
        self.net = NETS[0]
        self._networks = networks

    def nets(self) -> Iterator[str]:
        """Yield the network of the stack if it is there, else each one with free addresses."""
        there = {each.name: each.attrs["IPAM"]["Config"] or () for each in self._networks()}
        for net in NETS:
            ours = IPv4Network(f"{net}.0/24")
            names = {name for name, parts in there.items() if any(_overlap(ours, each["Subnet"]) for each in parts)}
            if names == {self.name} or not (names or self.name in there):
                yield net

    def up(self, services: Sequence[str]) -> None:
        """Create and start services, in a network of their own."""
        for net in self.nets():
            self.net = net
            try:
                return self._compose(["up", "-d", "--no-build", *services])
            except DrillError:
                if net in self.nets():
                    raise  # it was not taken meanwhile
        raise DrillError(
            f"The networks {NETS[0]}.* to {NETS[-1]}.* are taken: `docker network prune` removes old ones."
        )

    def down(self) -> None:
        """Remove the servers, and their data."""
        self._compose(["down", "--volumes", "--remove-orphans", "--timeout", "5"])

    def arguments(self) -> list[str]:
        """Return the options of Compose that make it speak of these servers, and of nothing else."""
        return ["--project-name", self.name, *(part for name in FILES for part in ("-f", str(folder() / name)))]

    def variables(self) -> dict[str, str]:
        return {"HA_CLOCKS": str(self.clocks), "HA_STACK": self.name, "HA_PUBLISHED": "", "HA_NET": self.net}

    def _compose(self, what: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                [*command(), *self.arguments(), *what],
                cwd=folder(),
                env={**os.environ, **self.variables()},
                capture_output=True,
                text=True,
                timeout=UP_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DrillError(f"Compose took longer than {UP_LIMIT_S:.0f} s to {what[0]}.") from None
        if done.returncode:
            raise DrillError(f"Compose failed to {what[0]}: {done.stderr.strip()[-500:]}")


def _overlap(ours: IPv4Network, other: str) -> bool:
    return ":" not in other and ours.overlaps(IPv4Network(other))


def command() -> list[str]:
    """Return the command of Compose: the engine's plugin, or the program of its first version."""
    plugin = ["docker", "compose"]
    if (
        shutil.which("docker")
        and subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode == 0
    ):
        return plugin
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    raise DrillError("Docker Compose is not there: install the plugin, or Debian's docker-compose.")
