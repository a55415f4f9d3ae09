"""``ha run --spark``: a PySpark program learns where it leads from Spark's own configuration alone.

Spark reads the directory ``SPARK_CONF_DIR``. The command gets one of its own, with links to all that the user's has but
for two files. They are the user's with something added: defaults that put checkpoints below the leader directory, and a
line of shell that writes down which process is the JVM, so that the guard can follow it.
"""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ha.settings import load
from ha.spark.location import told_to_executors
from leader.errors import InvalidSettings
from leader.names import SPARK

DEFAULTS = "spark-defaults.conf"
SHELL = "spark-env.sh"

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
"""How Java's properties write what ends a value, or begins an escape."""


def check_command(command: Sequence[str], *, warm: bool) -> None:
    """Return if a command can be told by Spark's configuration.

    Raises:
        InvalidSettings: it reads another one, or would be started before there is anything to tell.
    """
    if warm:
        raise InvalidSettings(
            "--spark tells a command its leader directory when it starts, and a warm standby has none yet: "
            "leave --standby warm out, or use ha.spark.lead in the program."
        )
    given = any(word.partition("=")[0] == "--properties-file" for word in command)
    if given and "--load-spark-defaults" not in command:
        raise InvalidSettings(
            "With --properties-file spark-submit does not read what --spark tells it: add --load-spark-defaults."
        )


def spark_environment(overlay: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Write a configuration directory for the command, and return what to add to its environment.

    Args:
        overlay: the directory; it does not exist yet.
        environment: the command's, with what a sidecar tells it.

    Raises:
        OSError: it cannot be written.
    """
    overlay.mkdir()
    users = _users(environment)
    for entry in sorted(users.iterdir()) if users is not None else ():
        if entry.name not in {DEFAULTS, SHELL}:
            (overlay / entry.name).symlink_to(entry.absolute())
    ours = {
        "spark.sql.streaming.checkpointLocation": f"{environment['HA_LEADER_DIRECTORY']}/{SPARK}",
        "spark.ha.job": environment["HA_JOB"],
        **told_to_executors(load({}, environment), environment["HA_JOB"]),
    }
    lines = [f"{name} {value.translate(_ESCAPES)}" for name, value in ours.items()]
    (overlay / DEFAULTS).write_text("\n".join([_content(users, DEFAULTS), *lines, ""]))  # of two, the later counts
    jvm = overlay.with_name(f"{overlay.name}.jvm")
    file, staged = shlex.quote(str(jvm)), shlex.quote(f"{jvm}.staged")
    # The shell becomes the JVM (exec), so its process id is the JVM's. The first one counts: a driver may start others.
    (overlay / SHELL).write_text(
        f"{_content(users, SHELL)}\n[ -e {file} ] || {{ echo $$ > {staged} && mv {staged} {file}; }}\n"
    )
    # That the shell's part was read says an environment that comes from another Spark.
    return {"SPARK_CONF_DIR": str(overlay), "HA_SPARK_JVM": str(jvm), "SPARK_ENV_LOADED": ""}


def _users(environment: Mapping[str, str]) -> Path | None:
    """The configuration directory that the command would have without us, as Spark finds it; None if there is none."""
    submit = shutil.which("spark-submit", path=environment.get("PATH"))
    homes = [environment.get("SPARK_HOME", ""), str(Path(submit).resolve().parents[1]) if submit else ""]
    places = [environment.get("SPARK_CONF_DIR", ""), *(os.path.join(home, "conf") for home in homes if home)]  # noqa: PTH118
    first = next((Path(place) for place in places if place), None)
    return first if first is not None and first.is_dir() else None


def _content(folder: Path | None, name: str) -> str:
    file = folder / name if folder is not None else None
    return file.read_text() if file is not None and file.is_file() else ""
