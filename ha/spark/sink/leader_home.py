"""LeaderHome: where the present leader keeps its files, as a process that only publishes has to know it.

Spark runs a sink's commits in a Python process of its own. It finds the leader in the environment, which ``ha run``
sets and the JVM passes on, or in the class that :func:`ha.spark.sink.data_source.register_format` has registered.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ha.config.sources import load
from ha.leadership import settle_file
from ha.leadership.leadership import Leadership
from leader.errors import InvalidSettings
from store.bounded import BoundedFiles
from store.errors import Invalid
from store.open import open_files


@dataclass(unsafe_hash=True)
class LeaderHome:
    """The part of a leadership that a journal needs; it can be pickled.

    Attributes:
        job: name of the job.
        epoch: of the leader.
        session_id: likewise.
        directory: URI of the leader directory.
    """

    job: str
    epoch: int
    session_id: str
    directory: str

    def open_files(self, uri: str) -> BoundedFiles:
        """Open a root as the settings of the environment and of ``ha.toml`` say.

        Raises:
            InvalidSettings: a setting is wrong.
        """
        settings = load({})
        if settings.kerberos_keytab:
            from store.kerberos import keep_logged_in  # noqa: PLC0415  # most processes have no keytab

            try:
                keep_logged_in(settings.kerberos_keytab, settings.kerberos_principal)
            except Invalid as error:
                raise InvalidSettings(str(error)) from error
        return open_files(uri, directory_mode=int(settings.directory_mode, 8), ca=settings.webhdfs_ca)


def home_of(leadership: Leadership) -> LeaderHome:
    """Return the home of a leadership of this process."""
    return LeaderHome(leadership.job, leadership.epoch, leadership.session_id, leadership.directory)


def home_of_environment(environment: Mapping[str, str] | None = None) -> LeaderHome:
    """Return the home of the leader whose program ``ha run`` has started.

    Raises:
        InvalidSettings: there is none.
    """
    known = os.environ if environment is None else environment
    names = ("HA_JOB", "HA_EPOCH", "HA_SESSION_ID", "HA_LEADER_DIRECTORY")
    job, epoch, session_id, directory = (known.get(name, "") for name in names)
    if not (job and epoch.isdecimal() and session_id and directory):
        raise InvalidSettings(
            "The format ha needs a leader: start the program with `ha run --spark JOB -- COMMAND`, or call "
            "ha.spark.register_format(spark, leadership) in it."
        )
    return LeaderHome(job, int(epoch), session_id, directory)


def settling(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the queries of the program are stopped in order: see :mod:`ha.spark.supervision.settling`."""
    path = (os.environ if environment is None else environment).get("HA_SETTLE")
    return settle_file.begun(Path(path)) if path else False
