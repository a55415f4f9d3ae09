"""The command line of ``spark-submit``, read as ``spark-submit`` reads it: its options, and where the driver runs.

A guard watches over processes of its own host. With ``--deploy-mode cluster`` the driver runs on another one.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from leader.errors import InvalidSettings
from store.traits import traits

SUBMIT = "spark-submit"
DEPLOY_MODE = "spark.submit.deployMode"
DEFAULT_FILES = "fs.defaultFS"

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
    if (options := _options(command)) is None:
        return ""
    found = [
        dict(options).get("--deploy-mode"),
        *_settings(options, defaults, DEPLOY_MODE),
        environment.get("DEPLOY_MODE"),
    ]
    return next(filter(None, found), "").strip()


def default_files(command: Sequence[str], defaults: Path | None, hadoop: Callable[[], Mapping[str, str]]) -> str:
    """Return the file system of paths that name none, as the command's driver takes it; empty if nothing says so."""
    # `defaults`: Spark's spark-defaults.conf. `hadoop` returns Hadoop's settings of this host.
    found = _settings(_options(command) or [], defaults, f"spark.hadoop.{DEFAULT_FILES}")
    return (next(filter(None, found), "") or hadoop().get(DEFAULT_FILES, "")).strip().rstrip("/")


def _options(command: Sequence[str]) -> list[tuple[str, str]] | None:
    """Return the options of ``spark-submit`` in a command; None if that is not in it."""
    names = [Path(word).name for word in command]
    return options_of(command[names.index(SUBMIT) + 1 :])[0] if SUBMIT in names else None


def _settings(options: Sequence[tuple[str, str]], defaults: Path | None, name: str) -> list[str | None]:
    """Return what the options say of a setting of Spark, then what its files say."""
    properties = dict(each.split("=", 1) for option, each in options if option in {"--conf", "-c"} and "=" in each)
    given = dict(options)
    files = [Path(given["--properties-file"])] if "--properties-file" in given else []
    if defaults is not None and (not files or "--load-spark-defaults" in given):
        files.append(defaults)
    return [properties.get(name), *(properties_of(file).get(name) for file in files)]


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


def python_variables(
    command: Sequence[str], environment: Mapping[str, str], defaults: Path | None, copies: Path
) -> dict[str, str]:
    """Return what ``spark-submit`` gives to its Python program: the Python of its workers, and its modules' places.

    Those are the local files of ``--py-files``; modules that are no archives are copied into a directory, ``copies``.
    """
    # As Spark's PythonRunner and SparkSubmit do it. `defaults`: Spark's spark-defaults.conf.
    if (options := _options(command)) is None:
        return {}
    python, modules = (
        next(filter(None, _settings(options, defaults, name)), "")
        for name in ("spark.pyspark.python", "spark.submit.pyFiles")
    )
    named = dict(options).get("--py-files") or modules
    places = []
    for each in filter(None, (each.strip() for each in named.split(","))):
        file = Path(urlsplit(each).path)
        for found in sorted(file.parent.glob(file.name)) if traits(each).local else ():
            if found.suffix == ".py":
                copies.mkdir(exist_ok=True)
                shutil.copy(found, copies)
            places.append(str(copies if found.suffix == ".py" else found.absolute()))
    others = filter(None, [environment.get("PYTHONPATH")])
    path = os.pathsep.join(dict.fromkeys([*places, *others])) if places else ""
    return {name: value for name, value in (("PYSPARK_PYTHON", python), ("PYTHONPATH", path)) if value}


def properties_of(file: Path) -> dict[str, str]:
    """Return the settings in a properties file of Spark; none if it cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}  # Spark says so better
    found = (_LINE.fullmatch(line) for line in lines if not line.lstrip().startswith(("#", "!")))
    return {match[1]: match[2] for match in found if match}
