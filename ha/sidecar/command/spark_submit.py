"""The command line of ``spark-submit``, read as ``spark-submit`` reads it: its options, and where the driver runs.

A guard watches over processes of its own host. With ``--deploy-mode cluster`` the driver runs on another one.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from leader.errors import InvalidSettings

SUBMIT = "spark-submit"
DEPLOY_MODE = "spark.submit.deployMode"

# Options without a value.
_FLAGS = {"--help", "-h", "--load-spark-defaults", "--supervise", "--usage-error", "--verbose", "-v", "--version"}

# A line of a properties file; Java allows `=`, `:` or blanks after the name.
_LINE = re.compile(r"\s*([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*?)\s*")


def check_place(command: Sequence[str], environment: Mapping[str, str], defaults: Path | None) -> None:
    """Check that the driver of a command runs on this host, and not on another one of the cluster: InvalidSettings."""
    # The program may be another one that starts spark-submit with the rest. `defaults`: Spark's spark-defaults.conf.
    if deploy_mode(command, environment, defaults) == "cluster":
        raise InvalidSettings(
            "With --deploy-mode cluster the driver runs on another host, where no guard can end it: use client mode, "
            "or submit without `ha run` a program that calls ha.spark.lead itself (docs/deploying.md)."
        )


def deploy_mode(command: Sequence[str], environment: Mapping[str, str], defaults: Path | None) -> str:
    """Return the deploy mode of a command, in the order in which Spark looks for it; empty if nothing names one."""
    names = [Path(word).name for word in command]
    if SUBMIT not in names:
        return ""
    options, _ = options_of(command[names.index(SUBMIT) + 1 :])
    properties = dict(each.split("=", 1) for name, each in options if name in {"--conf", "-c"} and "=" in each)
    given = dict(options)
    files = [Path(given["--properties-file"])] if "--properties-file" in given else []
    if defaults is not None and (not files or "--load-spark-defaults" in given):
        files.append(defaults)
    found = [
        given.get("--deploy-mode"),
        properties.get(DEPLOY_MODE),
        *(properties_of(file).get(DEPLOY_MODE) for file in files),
        environment.get("DEPLOY_MODE"),
    ]
    return next(filter(None, found), "").strip()


def options_of(words: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    """Return the options before the application, which has options of its own, and the number of their words."""
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(words) and words[place].startswith("-"):
        name, equals, value = words[place].partition("=")
        apart = not equals and name not in _FLAGS
        place += 1
        found.append((name, words[place] if apart and place < len(words) else value))
        place += apart
    return found, min(place, len(words))


def properties_of(file: Path) -> dict[str, str]:
    """Return the settings in a properties file of Spark; none if it cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}  # Spark says so better
    found = (_LINE.fullmatch(line) for line in lines if not line.lstrip().startswith(("#", "!")))
    return {match[1]: match[2] for match in found if match}
