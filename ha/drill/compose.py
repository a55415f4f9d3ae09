"""Compose file of the servers: finds it, brings it up, takes it down."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import requests

import ha
from ha.drill.environment import DrillError

FILES = ("compose.yaml", "compose.clocks.yaml")
UP_LIMIT_S = 240.0
ANSWER_LIMIT_S = 2.0


def folder() -> Path:
    """Return the folder of the compose files: ``HA_COMPOSE``, or the one of the source tree.

    Raises:
        DrillError: they are not there.
    """
    given = os.environ.get("HA_COMPOSE")
    found = Path(given) if given else Path(ha.__file__).parent.parent / "docker"
    if not (found / "compose.yaml").exists():
        raise DrillError(f"There is no compose.yaml in {found}: set HA_COMPOSE to the folder `docker` of the sources.")
    return found


def up(services: Sequence[str], clocks: Path) -> None:
    """Create and start services.

    Raises:
        DrillError: Compose failed; its last words are in the message.
    """
    _compose(["up", "-d", "--no-build", *services], clocks)


def down(clocks: Path) -> None:
    """Remove all services and their data."""
    _compose(["down", "--volumes", "--remove-orphans", "--timeout", "5"], clocks)


def command() -> list[str]:
    """Return the command of Compose: the engine's plugin, or the program of its first version.

    Raises:
        DrillError: it is not there.
    """
    plugin = ["docker", "compose"]
    if (
        shutil.which("docker")
        and subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode == 0
    ):
        return plugin
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    raise DrillError("Docker Compose is not there: install the plugin, or Debian's docker-compose.")


def bean(port: int, name: str) -> dict[str, Any]:
    """Return one of a NameNode's JMX beans; empty if it does not answer."""
    try:
        answer = requests.get(f"http://127.0.0.1:{port}/jmx", params={"qry": name}, timeout=ANSWER_LIMIT_S)
        beans: list[dict[str, Any]] = answer.json()["beans"]
    except (requests.RequestException, ValueError, KeyError):
        return {}
    return beans[0] if beans else {}


def _compose(arguments: Sequence[str], clocks: Path) -> None:
    files = [part for name in FILES for part in ("-f", str(folder() / name))]
    try:
        done = subprocess.run(
            [*command(), *files, *arguments],
            cwd=folder(),
            env={**os.environ, "HA_CLOCKS": str(clocks)},
            capture_output=True,
            text=True,
            timeout=UP_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DrillError(f"Compose took longer than {UP_LIMIT_S:.0f} s to {arguments[0]}.") from None
    if done.returncode:
        raise DrillError(f"Compose failed to {arguments[0]}: {done.stderr.strip()[-500:]}")
