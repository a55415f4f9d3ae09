#!/usr/bin/env python3
"""Build of the images: prepares a folder for each under ``build/docker``, and lets Docker build the changed ones.

A build needs no package index and no network but Debian's: wheels and jars are fetched before, on the host.
"""

# ruff: noqa: S607  # docker, debootstrap and tar are where the PATH says

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import base
import packages

from ha.hosts.host_error import HostError
from ha.hosts.java import find_java
from ha.sandbox import jars

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docker"
CONTEXTS = ROOT / "build" / "docker"

PARENTS = {
    "runtime": base.IMAGE,
    "zookeeper": "hybrid-ha/runtime",
    "hdfs": "hybrid-ha/runtime",
    "python": "hybrid-ha/runtime",
    "sidecar": "hybrid-ha/python",
    "network": base.IMAGE,
}
"""Base image of each image, in build order."""

MONITORING = {"prometheus": base.IMAGE}
"""Likewise, for the optional images: ``docker/build --monitoring``."""

LABEL = "hybrid-ha.inputs"
"""Label with the digest of the sources. Docker's own cache comes to the same, but only after it gets all files."""

ZOOKEEPER_JARS = (
    "commons-cli",
    "commons-io",
    "jackson-annotations",
    "jackson-core",
    "jackson-databind",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "metrics-core",
    "netty-buffer",
    "netty-common",
    "netty-handler",
    "netty-transport",
    "slf4j-api",
    "snappy-java",
    "zookeeper",
    "zookeeper-jute",
)
"""Jars that ZooKeeper loads."""


def main() -> None:
    """Build all images."""
    parents = {**PARENTS, **MONITORING} if "--monitoring" in sys.argv[1:] else PARENTS
    try:
        with step("Base image"):
            base.ensure(say)
        with step("Files for the images"):
            prepare(parents)
        replaced = [build(name, parent) for name, parent in parents.items()]
        # Each is the parent of later ones. One that a container still has stays.
        for old in reversed([each for each in replaced if each]):
            subprocess.run(["docker", "image", "rm", old], capture_output=True, check=False)
    except (HostError, base.BuildError) as error:
        sys.exit(str(error))


def prepare(names: Iterable[str]) -> None:
    """Fill each image's folder with the files of ``docker`` and with the fetched ones."""
    for name in names:
        (CONTEXTS / name).mkdir(parents=True, exist_ok=True)
        for path in (SOURCE / name).iterdir():
            copy(path, CONTEXTS / name / path.name)
    found = {path.name.removesuffix(".jar").rsplit("-", 1)[0].removesuffix(".Final"): path for path in spark_jars()}
    fill(CONTEXTS / "zookeeper" / "lib", [found[name] for name in ZOOKEEPER_JARS])
    fill(CONTEXTS / "hdfs" / "lib", [compressed(path) for path in jars.classpath(find_java().path, say)])
    packages.ensure(ROOT / "requirements.lock", CONTEXTS / "python" / "dist-packages", say)
    copy(SOURCE / "hdfs" / "conf", CONTEXTS / "sidecar" / "conf")
    unpack_wheel(CONTEXTS / "sidecar" / "code")
    examples = ("running.py", "word_count.py", "word_regions.py")
    fill(CONTEXTS / "sidecar" / "examples", [ROOT / "examples" / name for name in examples])


def unpack_wheel(target: Path) -> None:
    """Have the files of the wheel: an installed package is nothing else."""
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="ha-wheel-") as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise base.BuildError(f"{ended.stderr[-3000:]}\nThe wheel could not be built: see above.")
        (wheel,) = Path(folder).glob("*.whl")
        zipfile.ZipFile(wheel).extractall(target)


def compressed(jar: Path) -> Path:
    """Return the same jar, or a compressed copy of one that the sandbox keeps uncompressed to start faster.

    The images start faster by an archive of loaded classes.
    """
    if not jar.name.startswith("hadoop-") or jar.name.startswith("hadoop-client-"):
        return jar
    smaller = CONTEXTS / "jars" / jar.name
    if not smaller.exists():
        say(f"Compressing {jar.name} ...")
        smaller.parent.mkdir(parents=True, exist_ok=True)
        unfinished = smaller.with_suffix(".unfinished")
        with zipfile.ZipFile(jar) as source, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as target:
            for entry in source.infolist():
                target.writestr(
                    zipfile.ZipInfo(entry.filename, entry.date_time), source.read(entry), zipfile.ZIP_DEFLATED
                )
        unfinished.rename(smaller)
    return smaller


def build(name: str, parent: str) -> str:
    """Build one image, unless the existing one was built from the same files; returns the id of the one it replaces."""
    image = f"hybrid-ha/{name}"
    found = inspected(image)
    wanted = labels(image, digest(CONTEXTS / name, image_id(parent)), parent)
    if found and wanted.items() <= (found[0]["Config"]["Labels"] or {}).items():
        say(f"{image}: nothing has changed")
        return ""
    with step(image):
        command = [
            "docker",
            "build",
            "--quiet",
            "--force-rm",
            *(word for key, text in wanted.items() for word in ("--label", f"{key}={text}")),
            "--tag",
            image,
            str(CONTEXTS / name),
        ]
        # The builder that every engine has, also one without the buildx plugin.
        ended = subprocess.run(
            command, env={**os.environ, "DOCKER_BUILDKIT": "0"}, capture_output=True, text=True, check=False
        )
        if ended.returncode != 0:
            said = f"{ended.stdout}{ended.stderr}"[-3000:]
            raise base.BuildError(f"{said}\nThe image {image} could not be built: see above.")
    return str(found[0]["Id"]) if found else ""


def labels(image: str, inputs: str, parent: str) -> dict[str, str]:
    """Return an image's labels: the digest of its sources, and the ones that all registries show."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = {
        "title": image,
        "description": project["description"],
        "version": project["version"],
        "licenses": project["license"],
        "base.name": parent,
    }
    return {LABEL: inputs, **{f"org.opencontainers.image.{key}": text for key, text in told.items()}}


def digest(context: Path, parent_id: str) -> str:
    """Return a short digest of an image's sources. A stamp beside a big folder stands for its content."""
    parts = [parent_id]
    stamped = {path.name.removesuffix(packages.STAMP) for path in context.glob(f"*{packages.STAMP}")}
    for path in sorted(files(context)):
        name = path.relative_to(context)
        if name.parts[0] not in stamped:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            parts.append(f"{name} {path.stat().st_mode & 0o111:o} {content}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def files(folder: Path) -> Iterator[Path]:
    """All files below a folder."""
    return (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def image_id(image: str) -> str:
    """Docker's name for the content of an image."""
    return str(inspected(image)[0]["Id"])


def inspected(image: str) -> list[dict[str, Any]]:
    """Return Docker's data about an image; nothing if the image does not exist."""
    answer = subprocess.run(["docker", "image", "inspect", image], capture_output=True, text=True, check=False)
    return json.loads(answer.stdout or "[]")


def spark_jars() -> Iterable[Path]:
    """PySpark's jars."""
    return sorted(jars.spark_jars().glob("*.jar"))


def fill(folder: Path, wanted: Iterable[Path]) -> None:
    """Make a folder hold exactly these files."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in wanted}
    for old in folder.iterdir():
        if old.name not in names:
            old.unlink()
    for path in wanted:
        there = folder / path.name
        if not (there.exists() and there.stat().st_size == path.stat().st_size and same_time(there, path)):
            shutil.copy2(path, there)


def same_time(one: Path, other: Path) -> bool:
    """Whether two files were written at the same time."""
    return int(one.stat().st_mtime) == int(other.stat().st_mtime)


def copy(source: Path, target: Path) -> None:
    """Copy a file or folder; delete everything else at the target."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Report the start of a step, and its duration."""
    say(f"{name} ...")
    started = time.monotonic()
    yield
    say(f"{name}: {time.monotonic() - started:.1f} s")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
