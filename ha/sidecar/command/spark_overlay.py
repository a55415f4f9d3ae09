"""The Spark configuration of a sidecar's command: the user's, with lines added.

Spark reads the directory ``SPARK_CONF_DIR``. The command gets one with links to the files in the user's directory, and
two copies with lines added. With ``--spark`` the defaults put the checkpoints of an unchanged PySpark program below the
leader directory, and a line of shell records the process id of the JVM, so that the guard can watch it
(:mod:`ha.sidecar.command.jvm_watch`). With
``class_data`` the defaults name Spark's jars once more: see :mod:`ha.sidecar.command.class_data`. They also hold the
hosts that executors keep off, and how Hadoop's client closes files: decision 78. Python finds a guard of the program's
port beside the directory: see :mod:`ha.spark.session.callback_guard`.
"""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ha.config.sources import load
from ha.hook import driver_note, hidden_end
from ha.hook.entry import write
from ha.program.end_file import End
from ha.program.files import write as write_file
from ha.sidecar.command.jvm_watch import DRIVER
from ha.sidecar.command.spark_submit import properties_of
from ha.spark.session import callback_guard
from ha.spark.session.spark_settings import MIN_BATCHES, SPARKS, enough
from ha.spark.stored.locations import told_to_executors
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

With Hadoop's own 400 ms, and 5 times, a small batch mostly waits. It gives up after 12 s, and so after 20.
"""

ROOM = "\n" * 16
"""Room for the note of a process, which is written over it, on a disk that may be full by then."""

_SPARKS = ("python", "pyspark", "spark-submit")
NOT_BEGUN = End("no program of it has started Spark: its last lines may say why.", inside=True)
"""What is said of the end of a command that may hide it, until a program says more."""

# For the characters that end a value of Java's properties, or begin an escape.
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def check_command(command: Sequence[str], *, warm: bool) -> None:
    """Check that a command reads this configuration: no other one, and not before there is a leader directory."""
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


REDIRECTED = 78  # EX_CONFIG of sysexits.h


def may_use_spark(command: Sequence[str]) -> bool:
    """Whether a command names a program that starts Spark; one behind a script is not known."""
    return any(Path(word).name.startswith(_SPARKS) for word in command)


def may_hide_its_end(command: Sequence[str]) -> bool:
    """Whether the exit code of a command may be another one than that of its program, as a shell's with a pipe."""
    return not Path(command[0]).name.startswith(_SPARKS)


def spark_environment(
    overlay: Path,  # the directory to create
    environment: Mapping[str, str],  # the command's, with the sidecar's variables
    jars: Path | None = None,  # Spark's, to name them before everything else on the driver's class path; None not to
    *,
    spark: bool = False,  # tell the command where its checkpoints are, and record its JVM
    end: Path | None = None,  # with it: the end file of a command that may hide its end
    # Hosts that executors are to keep off; of Spark's clusters only YARN takes such a list.
    excluded: Sequence[str] = (),
    # Further modules that change PySpark in the command's Python: see `ha.hook.entry.write`.
    hooks: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Write a configuration directory for the command; returns the variables to add to its environment."""
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
    defaults = "\n".join([_content(users, DEFAULTS), *lines, ""])  # the later of two lines counts
    (overlay / DEFAULTS).write_text(defaults, "utf-8", "surrogateescape")
    shell, jvm = _content(users, SHELL), overlay.with_name(f"{overlay.name}.jvm")
    folder, modules = overlay.with_name(f"{overlay.name}.python"), {callback_guard.__file__: None, **(hooks or {})}
    if spark:
        shell += _noting(jvm, end)
        shell += _arrived(overlay, users) + _hooked(folder, f"{jvm}{DRIVER}")
        modules |= {driver_note.__file__: f"{jvm}{DRIVER}"}
        for each in (f"{jvm}", f"{jvm}{DRIVER}"):  # a driver that cannot note itself would be taken for one astray
            Path(f"{each}.staged").write_text(ROOM)
        if end is not None:
            modules |= {hidden_end.__file__: str(end)}
            write_file(end, NOT_BEGUN)
    (overlay / SHELL).write_text(shell, "utf-8", "surrogateescape")
    path = write(folder, modules, environment.get("PYTHONPATH"))
    # An environment that comes from another Spark claims that spark-env.sh was read already: hide that.
    known = {"SPARK_CONF_DIR": str(overlay), "SPARK_ENV_LOADED": "", "PYTHONPATH": path}
    return known | ({"HA_SPARK_JVM": str(jvm)} if spark else {})


def _noting(jvm: Path, end: Path | None) -> str:
    """Return the lines for a shell that note the JVM that it becomes (exec), and that it is no Python program's."""
    # A driver may start others: the first that lives counts. The words are those of spark-submit.
    note = f"echo $$ 1<> {shlex.quote(f'{jvm}.staged')} && mv {shlex.quote(f'{jvm}.staged')} {shlex.quote(str(jvm))}"
    if end is not None:  # of a program in another language nothing is known but its code
        note += f'; case "$* " in *.py\\ *|*pyspark-shell\\ *) ;; *) echo {{}} > {shlex.quote(str(end))} ;; esac'
    return f'\nkill -0 "$(cat {shlex.quote(str(jvm))} 2>/dev/null)" 2>/dev/null || {{ {note}; }}\n'


def _arrived(overlay: Path, users: Path | None) -> str:
    """Return the lines for a shell that end a start whose settings ``spark-env.sh`` has sent to another directory."""
    # Spark would read neither where its checkpoints are nor anything else of this overlay, and say nothing.
    ours, theirs = shlex.quote(str(overlay)), shlex.quote(str(users or ""))
    said = (
        "ha: spark-env.sh sets SPARK_CONF_DIR to $SPARK_CONF_DIR, so the settings of --spark would not be read: "
        "set SPARK_CONF_DIR to that before `ha run` instead."
    )
    return (
        f'if [ "$SPARK_CONF_DIR" -ef {theirs} ]; then export SPARK_CONF_DIR={ours}; fi\n'
        f'[ "$SPARK_CONF_DIR" -ef {ours} ] || {{ echo "{said.replace("`", chr(92) + "`")}" >&2; exit {REDIRECTED}; }}\n'
    )


def _closing(theirs: Mapping[str, str]) -> dict[str, str]:
    """Return how files are closed; nothing if the user's settings, or Hadoop's on this host, say so."""
    said = {*theirs}
    with suppress(Invalid):  # whoever needs Hadoop's configuration says what is wrong with it
        said |= {f"spark.hadoop.{name}" for name in configuration()}
    return {} if said & CLOSING.keys() else dict(CLOSING)


def _leaders(environment: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Spark under a leader directory, given the user's."""
    settings = load({}, environment)
    retained, wanted = theirs.get(MIN_BATCHES, ""), enough(settings.command.checkpoints_retained)
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


def _hooked(folder: Path, driver: str) -> str:
    """Return the lines for a shell that see to it that the driver's Python has the hook of :mod:`ha.hook.entry`."""
    # One that the JVM starts gets it anew. One that has started the JVM has noted itself; an engine is no driver.
    ours = shlex.quote(str(folder))
    said = (
        "ha: the Python that starts Spark has not read the hook of ha run --spark, because PYTHONPATH was replaced "
        "(or by -E, -I): add to it, or set it before ha run."
    )
    return (
        f'case ":$PYTHONPATH:" in *:{ours}:*) ;; *) export PYTHONPATH={ours}${{PYTHONPATH:+:$PYTHONPATH}} ;; esac\n'
        f'[ -z "$_PYSPARK_DRIVER_CONN_INFO_PATH" ] || [ -n "$HA_ENGINE" ] || [ -e {shlex.quote(driver)} ] || '
        f'{{ echo "{said}" >&2; exit {REDIRECTED}; }}\n'
    )


def _content(folder: Path | None, name: str) -> str:
    file = folder / name if folder is not None else None
    # The user's bytes are passed on as they are, whatever their encoding.
    return file.read_text("utf-8", "surrogateescape") if file is not None and file.is_file() else ""
