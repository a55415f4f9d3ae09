"""Settings of leadership: durations of the protocol, and how standbys, readers and agents learn of changes."""

from typing import Annotated

from ha.config.setting import check_choice, check_seconds, setting, shown
from ha.config.store_settings import StoreSettings
from leader.errors import InvalidSettings
from leader.timing import Timing

FRESHNESSES_PER_AUDIT = 10
"""``snapshot_fresh`` is at most this part of ``audit``.

An agent may freeze just after a store gave it an outdated answer. That answer must not be used for longer than an audit
would take to correct it.
"""

SNAPSHOTS_OFF = "off"
"""The value of ``snapshots`` that means: neither write snapshots nor read them."""

SUSPICION_ON, SUSPICION_OFF = "on", "off"
OWN_SESSION, HOST_SESSION = "own", "host"


class LeadershipSettings(StoreSettings, frozen=True, kw_only=True):
    """Settings of leadership: the contender, its leases, and how others see that it lives."""

    contender: Annotated[
        str,
        setting(
            "Name of this process among those that contend for a job. No two may have the same.",
            default="host name and process id",
        ),
    ] = ""
    short_ttl: Annotated[
        float,
        setting(
            "Time to live of a lease that only HDFS carries. "
            "While ZooKeeper is down, a job has no leader for this long after a crash.",
            "seconds",
        ),
    ] = 6.0
    long_ttl: Annotated[
        float,
        setting(
            "Time to live of a lease that a ZooKeeper session backs. "
            "A leader that cannot write to HDFS stops after this time.",
            "seconds",
        ),
    ] = 60.0
    session_timeout: Annotated[
        float,
        setting(
            "Session timeout that is requested from ZooKeeper. "
            "A job has no leader for this long after its leader's host is lost.",
            "seconds",
        ),
    ] = 10.0
    call_timeout: Annotated[
        float,
        setting(
            "A file-system call is abandoned after this time. 0 means the default.",
            "seconds",
            "1.5, or less if `short_ttl` or `session_timeout` requires it",
        ),
    ] = 0.0
    stop_margin: Annotated[
        float,
        setting(
            "Leadership ends this long before the lease does, so that work can stop in time. 0 means the default.",
            "seconds",
            "1.5, or less if `short_ttl` or `session_timeout` requires it",
        ),
    ] = 0.0
    drift: Annotated[float, setting("Greatest relative error of the rate of any host's clock.", "ratio")] = 0.01
    hand_over: Annotated[
        float,
        setting(
            "A leader that stepped down does not contend again for this long, so that others go first. "
            "Without ZooKeeper it waits at least until every standby has looked at the lease.",
            "seconds",
        ),
    ] = 3.0
    audit: Annotated[float, setting("A reader compares ZooKeeper's answers with HDFS this often.", "seconds")] = 30.0
    snapshots: Annotated[
        str,
        setting(
            "Directory on this host for the answers that the host's agent has received, or `off`. "
            "It must be an absolute path.",
            default="a directory of the user's in `/dev/shm`",
        ),
    ] = ""
    snapshot_fresh: Annotated[
        float,
        setting(
            "An answer of the agent may be used for this long: at most a tenth of `audit`. 0 means the default.",
            "seconds",
            "a tenth of `audit`",
        ),
    ] = 0.0
    zookeeper_session: Annotated[
        str,
        setting(
            "`own` or `host`: whether a contender's own ZooKeeper session attests its leases, "
            "or the one that the agent of its host confirms for all. `host` needs `ha agent` on each host."
        ),
    ] = OWN_SESSION
    suspicion: Annotated[
        str,
        setting(
            "`on` or `off`: whether contenders keep a connection to the leader's process to see at once that it ended."
        ),
    ] = SUSPICION_ON
    suspicion_listen: Annotated[
        str,
        setting(
            "Address on which this contender accepts these connections: `host:port`. Port 0 takes a free port.",
            default="a free port of the host in `suspicion_address`",
        ),
    ] = ""
    suspicion_address: Annotated[
        str,
        setting(
            "Address that other contenders connect to: `host:port`. Port 0 means the port that is listened on.",
            default="this host's address on its way to ZooKeeper",
        ),
    ] = ""

    @property
    def borrows_session(self) -> bool:
        """Whether a contender uses the session that the agent of its host lends."""
        return self.zookeeper_session == HOST_SESSION

    @property
    def fresh(self) -> float:
        """Seconds for which a snapshot of this process's agent may be used."""
        return self.snapshot_fresh or self.audit / FRESHNESSES_PER_AUDIT

    @property
    def timing(self) -> Timing:
        """The durations of the protocol.

        Raises:
            InvalidSettings: two of them clash.
        """
        return Timing(
            short_ttl=self.short_ttl,
            long_ttl=self.long_ttl,
            session_timeout=self.session_timeout,
            call_timeout=self.call_timeout,
            stop_margin=self.stop_margin,
            drift=self.drift,
            hand_over=self.hand_over,
        )

    def validate(self) -> None:
        """Check these settings as well; it raises as the base does."""
        super().validate()
        check_seconds("audit", self.audit, 0.1)
        check_seconds("snapshot_fresh", self.snapshot_fresh, 0.0)
        check_choice("suspicion", self.suspicion, (SUSPICION_ON, SUSPICION_OFF))
        check_choice("zookeeper_session", self.zookeeper_session, (OWN_SESSION, HOST_SESSION))
        if self.zookeeper_session == HOST_SESSION and (self.snapshots == SNAPSHOTS_OFF or not self.zookeeper):
            missing = "snapshots is off" if self.zookeeper else "zookeeper is not set"
            raise InvalidSettings(
                f"zookeeper_session is {HOST_SESSION}, and {missing}: the agent lends its ZooKeeper session in the "
                f"directory of `snapshots`. Set it, or set zookeeper_session to {OWN_SESSION}."
            )
        where, fresh, longest = self.snapshots, self.snapshot_fresh, self.audit / FRESHNESSES_PER_AUDIT
        if where and where != SNAPSHOTS_OFF and (not where.startswith("/") or "\0" in where):
            raise InvalidSettings(
                f"snapshots is {shown(where)}: it must be an absolute path, or {SNAPSHOTS_OFF!r} to do without them."
            )
        if fresh > longest:
            raise InvalidSettings(
                f"snapshot_fresh ({fresh:g} s) and audit ({self.audit:g} s) clash: a snapshot may be used for at most "
                f"a tenth of audit ({longest:g} s), or it could stay outdated for longer than an audit takes."
            )
        _ = self.timing  # raises if durations clash
