#!/usr/bin/env python3
"""Base image of all others: pulled, or built with Debian's own tools if pulling is impossible."""

# ruff: noqa: S607  # docker, debootstrap and tar are where the PATH says

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

IMAGE = "debian:bookworm-slim"

_PULL_TIMEOUT_S = 300
_NOT_NEEDED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "var/cache/apt",
    "var/lib/apt/lists",
)


class BuildError(Exception):
    """Something could not be built; the message says what to do."""


def ensure(say: Callable[[str], None]) -> None:
    """Have the base image.

    Args:
        say: reports slow steps.

    Raises:
        BuildError: it can neither be pulled nor built.
    """
    if _docker("image", "inspect", IMAGE).returncode == 0:
        return
    say(f"Pulling {IMAGE} ...")
    if _docker("pull", "--quiet", IMAGE).returncode == 0:
        return
    if os.geteuid() != 0 or not _have_debootstrap():
        raise BuildError(
            f"{IMAGE} cannot be pulled: give the engine a registry to pull from, or run this as root on Debian, "
            "where it can be made (apt-get install debootstrap)."
        )
    say(f"{IMAGE} cannot be pulled: making it with debootstrap, from Debian's packages ...")
    with tempfile.TemporaryDirectory(prefix="ha-base-") as folder:
        _make(Path(folder, "root"))


def _have_debootstrap() -> bool:
    if shutil.which("debootstrap") is None and shutil.which("apt-get") is not None:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "debootstrap"]):
            subprocess.run(command, env=environment, capture_output=True, check=False)
    return shutil.which("debootstrap") is not None


def _make(root: Path) -> None:
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", "bookworm", str(root)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise BuildError(f"{made.stdout[-2000:]}\ndebootstrap could not make the base image: see above.")
    for name in _NOT_NEEDED:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
    # As in Debian's own slim image: packages that are installed later bring no documentation either.
    (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(
        "".join(f"path-exclude /{name}/*\n" for name in _NOT_NEEDED if name.startswith("usr/share")), encoding="ascii"
    )
    (root / "etc/apt/apt.conf.d/slim").write_text(
        'APT::Install-Recommends "false";\nDir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n', encoding="ascii"
    )
    with subprocess.Popen(["tar", "--numeric-owner", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
        imported = subprocess.run(
            ["docker", "import", "--change", 'CMD ["bash"]', "-", IMAGE],
            stdin=tar.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
    if imported.returncode != 0 or tar.returncode != 0:
        raise BuildError(f"The base image for {platform.machine()} could not be imported: {imported.stderr.strip()}")


def _docker(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["docker", *arguments], capture_output=True, timeout=_PULL_TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise BuildError("There is no docker command: run docker/engine.") from None
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 1, b"", b"")
