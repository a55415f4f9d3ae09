"""Machine that the figures were measured on; they mean nothing without it."""

import os
import platform
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("hybrid-ha", "kazoo", "hdfs-native", "hdfs", "pyspark")


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts about the machine that may influence figures."""

    processor: str  # its model
    cores: int  # number that this process may use
    memory_gb: float  # of the machine
    load: float  # average number of runnable processes in the minute before; other work disturbs the figures
    kernel: str  # its version
    python: str  # its version
    java: str  # its version
    packages: dict[str, str]  # version by name


def this_machine() -> Machine:
    """Describe this machine."""
    return Machine(
        processor=_field("/proc/cpuinfo", "model name") or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / 2**20, 1),
        load=round(os.getloadavg()[0], 2),
        kernel=platform.release(),
        python=platform.python_version(),
        java=_java(),
        packages={name: _version(name) for name in PACKAGES},
    )


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    command = [str(Path(home, "bin", "java")) if home else "java", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return said.partition("\n")[0]
