"""Fixture of the image that users start; skips loudly where there is no engine, or the image was not built."""

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

IMAGE = "hybrid-ha/sidecar"
ASK_S = 60
DOCKER = shutil.which("docker") or "docker"

Docker = Callable[..., str]


def _ended(words: tuple[str, ...], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DOCKER, *words],
        env={**os.environ, "DOCKER_BUILDKIT": "0"},  # the builder that every engine has
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )


def docker(*words: str, seconds: float = ASK_S) -> str:
    """Run a command of Docker; returns both of its outputs."""
    ended = _ended(words, seconds)
    assert ended.returncode == 0, f"docker {' '.join(words)}: {ended.returncode}\n{ended.stdout[-4000:]}"
    return ended.stdout


@pytest.fixture(scope="session")
def engine() -> Docker:
    """Return what asks the engine: the image is there."""
    if shutil.which("docker") is None or _ended(("image", "inspect", IMAGE), ASK_S).returncode:
        pytest.skip("THE IMAGE IS NOT TRIED: there is no Docker engine, or no image (make images).")
    return docker
