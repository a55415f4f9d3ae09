"""Settings of leadership: durations of the protocol, and how standbys, readers and agents learn of changes."""

import msgspec

from ha.config.setting import check_choice, check_seconds, seconds, setting, shown
from leader.errors import InvalidSettings
from leader.timing import Timing

FRESHNESSES_PER_AUDIT = 10
"""An answer of the agent may be used for this part of ``audit``.

An agent may freeze just after an outdated answer of a store. That answer must not outlive the audit that corrects it.
"""

SNAPSHOTS_OFF = "off"  # the value of ``snapshots`` that means: neither write snapshots nor read them

OWN_SESSION, HOST_SESSION = "own", "host"


class LeadershipSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of leadership: the contender, its leases, and how others see that it lives."""

    contender: str = setting(
        "",
        "Name of this process among those that contend for a job. No two may have the same.",
        shown="host name, process id and a random part",
    )
    short_ttl: float = seconds(
        6.0,
        "Time to live of a lease that only HDFS carries. While ZooKeeper is down, a job has no leader for this long "
        "after a crash.",
    )
    long_ttl: float = seconds(
        60.0,
        "Time to live of a lease that a ZooKeeper session backs. A leader that cannot write to HDFS stops after this "
        "time.",
    )
    session_timeout: float = seconds(
        10.0,
        "Session timeout that is requested from ZooKeeper. A job has no leader for this long after its leader's host "
        "is lost.",
    )
    call_timeout: float = seconds(
        0.0,
        "A file-system call is abandoned after this time. 0 means the default.",
        shown="1.5, or less if `short_ttl` or `session_timeout` requires it",
    )
    hand_over: float = seconds(
        3.0,
        "A leader that stepped down does not contend again for this long, so that others go first. Without ZooKeeper "
        "it waits at least until every standby has looked at the lease.",
    )
    audit: float = seconds(30.0, "A reader compares ZooKeeper's answers with HDFS this often.")
    snapshots: str = setting(
        "",
        "Directory on this host for the answers that the host's agent has received, or `off`. It must be an absolute "
        "path.",
        shown="a directory of the user's in `/dev/shm`",
    )
    zookeeper_session: str = setting(
        OWN_SESSION,
        "`own` or `host`: whether a contender's own ZooKeeper session attests its leases, or the one that the agent of "
        "its host confirms for all. `host` needs `ha host agent` on each host.",
    )
    suspicion: bool = setting(
        True, "Whether contenders keep a connection to the leader's process to see at once that it ended."
    )
    suspicion_address: str = setting(
        "",
        "Address that other contenders connect to: `host:port`. Port 0 takes a free port. With `0.0.0.0` only the port "
        "is chosen. If no interface of this host has the address, as in a container, all are listened on.",
        shown="this host's address on its way to ZooKeeper, and a free port",
    )

    @property
    def borrows_session(self) -> bool:
        """Whether a contender uses the session that the agent of its host lends."""
        return self.zookeeper_session == HOST_SESSION

    @property
    def fresh(self) -> float:
        """Seconds for which a snapshot of this process's agent may be used."""
        return self.audit / FRESHNESSES_PER_AUDIT

    @property
    def timing(self) -> Timing:
        """The durations of the protocol. InvalidSettings: two of them clash."""
        return Timing(
            short_ttl=self.short_ttl,
            long_ttl=self.long_ttl,
            session_timeout=self.session_timeout,
            call_timeout=self.call_timeout,
            hand_over=self.hand_over,
        )

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        check_seconds("audit", self.audit, 0.1)
        check_choice("zookeeper_session", self.zookeeper_session, (OWN_SESSION, HOST_SESSION))
        where = self.snapshots
        if where and where != SNAPSHOTS_OFF and (not where.startswith("/") or "\0" in where):
            raise InvalidSettings(
                f"snapshots is {shown(where)}: it must be an absolute path, or {SNAPSHOTS_OFF!r} to do without them."
            )
        _ = self.timing  # raises if durations clash
