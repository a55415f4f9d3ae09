"""The Spark configuration of a sidecar's command: the user's, with lines added.

Spark reads the directory ``SPARK_CONF_DIR``. The command gets such a directory of its own, with links to the files in
the user's directory. Two files are copies with lines added. With ``--spark`` the defaults put the checkpoints of an
unchanged PySpark program below the leader directory, and a line of shell records the process id of the JVM, so that the
guard can watch it. With ``class_data`` the defaults name Spark's jars once more: see :mod:`ha.sidecar.class_data`.
Hosts that executors have to keep off are in the defaults, too, and so is how Hadoop's client closes files: decision 78.
"""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ha.config.sources import load
from ha.sidecar.spark_submit import properties_of
from ha.spark.locations import told_to_executors
from ha.spark.retention import MIN_BATCHES, SPARKS, enough
from leader.errors import InvalidSettings
from leader.layout.names import SPARK
from store.errors import Invalid
from store.hadoop_errors import configuration

DEFAULTS = "spark-defaults.conf"
SHELL = "spark-env.sh"
CLASS_PATH = "spark.driver.extraClassPath"
EXCLUDE_NODES = "spark.yarn.exclude.nodes"

CLOSING = {
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "10",
}
"""Hadoop's client asks again if a file that it closes is not complete yet: after so many ms, then after twice as many.
By Hadoop's own 400 ms, and 5 times, a small batch waits for most of its time. It gives up after 12 s, and so after 20.
"""

_SPARKS = ("python", "pyspark", "spark-submit")

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
"""Java's properties escape the characters that end a value or begin an escape."""


def check_command(command: Sequence[str], *, warm: bool) -> None:
    """Check that a command reads this configuration.

    Raises:
        InvalidSettings: it reads another one, or is a warm standby, which starts before there is a leader directory.
    """
    if warm:
        raise InvalidSettings(
            "--spark tells a command its leader directory when it starts, but a warm standby has none yet: "
            "leave --standby warm out, or use ha.spark.lead in the program."
        )
    given = any(word.partition("=")[0] == "--properties-file" for word in command)
    if given and "--load-spark-defaults" not in command:
        raise InvalidSettings(
            "With --properties-file spark-submit ignores the settings of --spark: add --load-spark-defaults."
        )


def may_use_spark(command: Sequence[str]) -> bool:
    """Whether a command names a program that starts Spark; one behind a script is not known."""
    return any(Path(word).name.startswith(_SPARKS) for word in command)


def spark_environment(
    overlay: Path,
    environment: Mapping[str, str],
    jars: Path | None = None,
    *,
    spark: bool = False,
    excluded: Sequence[str] = (),
) -> dict[str, str]:
    """Write a configuration directory for the command; returns the variables to add to its environment.

    Args:
        overlay: the directory to create.
        environment: the command's, with the sidecar's variables.
        jars: Spark's, to name them before everything else on the driver's class path; None not to.
        spark: tell the command where its checkpoints are, and record its JVM.
        excluded: hosts that executors are to keep off; of Spark's clusters only YARN takes such a list.

    Raises:
        OSError: it cannot be written.
    """
    overlay.mkdir()
    users = users_configuration(environment)
    for entry in sorted(users.iterdir()) if users is not None else ():
        if entry.name not in {DEFAULTS, SHELL}:
            (overlay / entry.name).symlink_to(entry.absolute())
    theirs = properties_of(users / DEFAULTS) if users is not None else {}
    ours = {**_closing(theirs), **(_leaders(environment, theirs) if spark else {})}
    if jars is not None:
        further = theirs.get(CLASS_PATH)
        ours[CLASS_PATH] = ":".join(filter(None, (f"{jars}/*", further)))
    if excluded:
        ours[EXCLUDE_NODES] = ",".join(filter(None, (theirs.get(EXCLUDE_NODES, ""), *excluded)))
    lines = [f"{name} {value.translate(_ESCAPES)}" for name, value in ours.items()]
    (overlay / DEFAULTS).write_text("\n".join([_content(users, DEFAULTS), *lines, ""]))  # the later of two lines counts
    shell, jvm = _content(users, SHELL), overlay.with_name(f"{overlay.name}.jvm")
    if spark:
        file, staged = shlex.quote(str(jvm)), shlex.quote(f"{jvm}.staged")
        # The shell becomes the JVM (exec): their process ids are equal. A driver may start others: the first counts.
        shell += f"\n[ -e {file} ] || {{ echo $$ > {staged} && mv {staged} {file}; }}\n"
    (overlay / SHELL).write_text(shell)
    # An environment that comes from another Spark claims that spark-env.sh was read already: hide that.
    known = {"SPARK_CONF_DIR": str(overlay), "SPARK_ENV_LOADED": ""}
    return known | ({"HA_SPARK_JVM": str(jvm)} if spark else {})


def _closing(theirs: Mapping[str, str]) -> dict[str, str]:
    """Return how files are closed; nothing if the user's settings, or Hadoop's on this host, say so."""
    said = {*theirs}
    with suppress(Invalid):  # whoever needs Hadoop's configuration says what is wrong with it
        said |= {f"spark.hadoop.{name}" for name in configuration()}
    return {} if said & CLOSING.keys() else dict(CLOSING)


def _leaders(environment: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Spark under a leader directory, given the user's."""
    settings = load({}, environment)
    retained, wanted = theirs.get(MIN_BATCHES, ""), enough(settings.checkpoints_retained)
    few = (int(retained) if retained.isdecimal() else SPARKS) < wanted
    return {
        **({MIN_BATCHES: f"{wanted}"} if few else {}),
        "spark.sql.streaming.checkpointLocation": f"{environment['HA_LEADER_DIRECTORY']}/{SPARK}",
        "spark.ha.job": environment["HA_JOB"],
        **told_to_executors(settings, environment["HA_JOB"]),
    }


def users_configuration(environment: Mapping[str, str]) -> Path | None:
    """Return the configuration directory that Spark would use without this one; None if there is none."""
    submit = shutil.which("spark-submit", path=environment.get("PATH"))
    homes = [environment.get("SPARK_HOME", ""), str(Path(submit).resolve().parents[1]) if submit else ""]
    places = [environment.get("SPARK_CONF_DIR", ""), *(os.path.join(home, "conf") for home in homes if home)]  # noqa: PTH118
    first = next((Path(place) for place in places if place), None)
    return first if first is not None and first.is_dir() else None


def _content(folder: Path | None, name: str) -> str:
    file = folder / name if folder is not None else None
    return file.read_text() if file is not None and file.is_file() else ""
