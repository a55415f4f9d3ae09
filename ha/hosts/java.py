"""Java for the servers, and its flags."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ha.hosts.host_error import HostError

OLDEST_JAVA = 17  # ZooKeeper and Hadoop would run on older ones, Spark 4 does not

FLAGS = (
    # Servers that live for minutes and serve one user: start fast, stay small.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Xmx192m",
    # No /tmp/hsperfdata_<user>: the sandbox leaves nothing outside its directory.
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
)

_VERSION_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True)
class Java:
    """One installed Java."""

    path: Path  # its ``java`` program
    banner: str  # its output about its version
    version: int  # the first number of that: 17, 21,


def find_java() -> Java:
    """Return the Java to use: the one of ``JAVA_HOME``, else the one on the search path."""
    # HostError: there is none, it does not run, or it is older than 17.
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on the search path"
        raise HostError(
            f"There is no Java {where}: install a Java {OLDEST_JAVA} or newer "
            f"(Debian: apt-get install openjdk-{OLDEST_JAVA}-jre-headless), or set JAVA_HOME."
        )
    java = _ask(Path(found))
    if java.version < OLDEST_JAVA:
        raise HostError(
            f"{java.path} is Java {java.version}, too old: install a Java {OLDEST_JAVA} or newer "
            f"(Debian: apt-get install openjdk-{OLDEST_JAVA}-jre-headless), or set JAVA_HOME."
        )
    return java


def _ask(path: Path) -> Java:
    try:
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{path} does not run: {error}.") from error
    banner = answer.stderr + answer.stdout
    # Java 8 calls itself 1.8.0, later ones 11.0.2, 17, 21-ea.
    match = re.search(r'version "(?:1\.)?(\d+)', banner)
    if answer.returncode != 0 or match is None:
        raise HostError(f"{path} does not tell its version (exit code {answer.returncode}).")
    return Java(path=path, banner=banner, version=int(match[1]))
