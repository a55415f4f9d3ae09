"""LeaderHome: where the present leader keeps its files, as a process that only publishes has to know it.

Spark runs a sink's commits in a Python process of its own. It finds the leader in the class that
:func:`ha.spark.sink.data_source.register_format` has registered for the session, which ``ha.spark.lead`` calls.
In a session without one it asks the environment, which ``ha run`` sets and the JVM passes on. That names a leader, or
the file in which a warm standby finds its grant: the environment of a standby's start knows of no leader.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ha.config.sources import load
from ha.program import settle_file
from ha.program.grant_file import granted
from leader.errors import InvalidSettings
from store.bounded import BoundedFiles
from store.errors import Invalid
from store.open import open_files

if TYPE_CHECKING:
    from ha.leadership.leadership import Leadership


@dataclass(unsafe_hash=True)
class LeaderHome:
    """The part of a leadership that a journal needs, with the URI of the leader directory; it can be pickled."""

    job: str
    epoch: int
    session_id: str
    directory: str

    def open_files(self, uri: str) -> BoundedFiles:
        """Open a root as the settings of the environment and of ``ha.toml`` say."""
        settings = load({})
        if settings.stores.kerberos_keytab:
            from store.kerberos import keep_logged_in  # noqa: PLC0415  # most processes have no keytab

            try:
                keep_logged_in(settings.stores.kerberos_keytab, settings.stores.kerberos_principal)
            except Invalid as error:
                raise InvalidSettings(str(error)) from error
        return open_files(uri, directory_mode=int(settings.stores.directory_mode, 8), ca=settings.stores.webhdfs_ca)


def home_of(leadership: "Leadership") -> LeaderHome:
    """Return the home of a leadership of this process."""
    return LeaderHome(leadership.job, leadership.epoch, leadership.session_id, leadership.directory)


def home_of_environment(environment: Mapping[str, str] | None = None) -> LeaderHome:
    """Return the home of the leader whose program ``ha run`` has started, before its grant or with it."""
    known = os.environ if environment is None else environment
    names = ("HA_JOB", "HA_EPOCH", "HA_SESSION_ID", "HA_LEADER_DIRECTORY")
    job, epoch, session_id, directory = (known.get(name, "") for name in names)
    if job and (path := known.get("HA_GRANT")) and (found := granted(Path(path))) is not None:
        return LeaderHome(job, found[0].epoch, found[0].session_id, found[1])
    if not (job and epoch.isdecimal() and session_id and directory):
        raise InvalidSettings(
            "The format ha needs a leader: start the query in the block of ha.spark.lead, or the program with "
            "`ha run --spark JOB -- COMMAND`."
        )
    return LeaderHome(job, int(epoch), session_id, directory)


def settling(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the queries of the program are stopped in order: see :mod:`ha.spark.supervision.settling`."""
    path = (os.environ if environment is None else environment).get("HA_SETTLE")
    return settle_file.begun(Path(path)) if path else False
