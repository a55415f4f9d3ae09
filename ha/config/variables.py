"""Variables of the environment that begin with HA_: settings, this package's own, and mistakes.

A misspelt HA_FILES would silently mean a store of this host alone, and two hosts would lead one job each. So a variable
that is none of ours is refused.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from leader.errors import InvalidSettings

PREFIX = "HA_"

OF_SIDECAR = frozenset(
    {
        "HA_BELIEF",
        "HA_ENGINE",
        "HA_EPOCH",
        "HA_EXCLUDED_HOSTS",
        "HA_EXECUTORS",
        "HA_GRANT",
        "HA_HEARTBEAT",
        "HA_JOB",
        "HA_LEADER_DIRECTORY",
        "HA_QUERIES",
        "HA_RESTART",
        "HA_SESSION_ID",
        "HA_SETTLE",
        "HA_SPARK_JVM",
    }
)
"""What a sidecar tells its command, besides settings. A program that is none of that job's must not find them."""

OWN = OF_SIDECAR | frozenset(
    {
        "HA_CONFIG",  # the file of settings
        # A dry run tells the program:
        "HA_PREFLIGHT",
        # The sandbox, the containers, the drills and the tests use:
        "HA_CLOCKS",
        "HA_COMPOSE",
        "HA_DRILLS",
        "HA_DRILLS_FOLDER",
        "HA_NET",
        "HA_SANDBOX_KAFKA",
        "HA_SANDBOX_KAFKA_JARS",
        "HA_SANDBOX_WEBHDFS",
        "HA_TEST_SANDBOX",
        "HA_TEST_SECURED_SANDBOX",
    }
)
"""Variables of this package that are no settings."""

_KUBERNETES = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")
"""Kubernetes gives each container such variables for each service: HA_UI_SERVICE_HOST for a service called ha-ui."""


def check_variables(environment: Mapping[str, str], settings: Collection[str]) -> None:
    """Refuse variables that begin with HA_ and mean nothing here.

    Args:
        environment: of the process; a variable that is empty is not set.
        settings: the variables of all settings.

    Raises:
        InvalidSettings: there is one; the message suggests the one that was meant.
    """
    for name in sorted(name for name, value in environment.items() if name.startswith(PREFIX) and value):
        if name not in settings and name not in OWN and not _KUBERNETES.fullmatch(name):
            raise InvalidSettings(
                f"{name} in the environment is not a setting: {meant(name, [*settings, 'HA_CONFIG'])} "
                "If it is another program's, unset it for this one."
            )


def meant(name: str, known: Iterable[str]) -> str:
    """Say which name was probably meant, or where all names are listed."""
    import difflib  # noqa: PLC0415  # only mistakes need it

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else "`ha config show` lists all settings."
