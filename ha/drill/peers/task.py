"""What a peer's guard is told: ``JOB --contender NAME -- COMMAND...``, and the settings of this project's sidecar."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass

from ha.settings import Settings, load
from leader.errors import InvalidName, InvalidSettings
from leader.names import check_job

STOP_GRACE = "3"
"""Seconds between TERM and KILL, unless ``HA_STOP_GRACE`` says otherwise."""


@dataclass(frozen=True)
class Task:
    """One contender's.

    Attributes:
        job: the job's name.
        command: program and arguments.
        settings: of which ``zookeeper``, ``session_timeout``, ``stop_grace``, ``contender`` and ``history`` are used.
    """

    job: str
    command: list[str]
    settings: Settings

    @property
    def grace(self) -> float:
        """Seconds between TERM and KILL once the leadership is in doubt.

        Both clients tell of a silent connection after two thirds of the session timeout: a third is left until
        ZooKeeper may let somebody else lead, and a careful user stops within that.
        """
        return min(self.settings.stop_grace, self.settings.session_timeout / 3)


def parse(guard: str, words: Sequence[str]) -> Task:
    """Read a command line, and the environment.

    Args:
        guard: what it is called in the help text.
        words: the arguments, without the program.

    Raises:
        SystemExit: they cannot be used; it was said why.
    """
    parser = argparse.ArgumentParser(description=f"Run a command while {guard} says that this contender leads.")
    parser.add_argument("job")
    parser.add_argument("--contender", metavar="NAME", help="of this process among those that contend")
    parser.usage = "%(prog)s JOB --contender NAME -- COMMAND..."
    end = words.index("--") if "--" in words else len(words)
    options, command = parser.parse_args(words[:end]), list(words[end + 1 :])
    try:
        check_job(options.job)
        settings = load({"contender": options.contender}, {"HA_STOP_GRACE": STOP_GRACE, **os.environ})
    except (InvalidName, InvalidSettings) as error:
        parser.error(str(error))
    if not command or not settings.zookeeper:
        parser.error("a command after -- is needed, and HA_ZOOKEEPER.")
    return Task(options.job, command, settings)
