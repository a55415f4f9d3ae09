"""Settings: the type that holds every setting, with its documentation, its default and its validation.

:func:`ha.config.sources.load` gathers the values from arguments, the environment and ``ha.toml``.

Each field of :class:`Settings` is documented where it is declared: ``name: Annotated[type, _setting(text, unit,
default)] = value``. :func:`reference` returns that documentation as a list of :class:`SettingReference`, one a field,
in order; the table of settings in ``docs/reference`` and the help of the command line's options are made from it.
"""

import re
from typing import TYPE_CHECKING, Annotated, get_args

import msgspec

from ha.config.restart_strategy import (
    INFINITE,
    Dice,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartStrategy,
)
from leader.errors import InvalidSettings
from leader.layout.names import RETAINED
from leader.timing import LONGEST, Timing
from store.errors import Invalid
from store.zookeeper.security import Security

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

FRESHNESSES_PER_AUDIT = 10
"""``snapshot_fresh`` is at most this part of ``audit``.

An agent may freeze just after a store gave it an outdated answer. That answer must not be used for longer than an audit
would take to correct it.
"""

SNAPSHOTS_OFF = "off"
"""The value of ``snapshots`` that means: neither write snapshots nor read them."""

SUSPICION_ON, SUSPICION_OFF = "on", "off"
COLD, WARM = "cold", "warm"
CLEANUP_OFF, CLEANUP_ON = "off", "on"
RERUN_OFF, RERUN_ON = "off", "on"
CLASS_DATA_OFF, CLASS_DATA_ON = "off", "on"

RESTARTS = {
    "none": "none",
    "off": "none",
    "disable": "none",
    "fixed-delay": "fixed-delay",
    "fixeddelay": "fixed-delay",
    "failure-rate": "failure-rate",
    "failurerate": "failure-rate",
    "exponential-delay": "exponential-delay",
    "exponentialdelay": "exponential-delay",
}
"""The values that Flink allows for ``restart-strategy.type``, and the strategy that each one names."""

MOST_RETAINED = 1000
"""A NameNode lists no more checkpoints than this in one answer."""

_HOST = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")

MAX_SHOWN_CHARACTERS = 100
"""Characters of a wrong value that an error message shows."""


class SettingReference(msgspec.Struct, frozen=True):
    """The documentation of one setting.

    Attributes:
        name: of the field, and of the argument: ``stop_grace``.
        key: its name in ``ha.toml``: the same, except that restart strategies have Flink's names.
        variable: its name in the environment: ``HA_STOP_GRACE``.
        kind: the type of its value.
        unit: of its value, ``seconds`` for example; empty if it has none.
        default: the default, as text for people.
        text: complete sentences.
    """

    name: str
    key: str
    variable: str
    kind: type[str | float | int]
    unit: str
    default: str
    text: str


def _setting(text: str, unit: str = "", default: str = "") -> msgspec.Meta:
    """Document a field.

    Args:
        text: complete sentences.
        unit: of the value; empty if it has none.
        default: describes the default if the value does not; empty to show the value.
    """
    return msgspec.Meta(description=text, extra={"unit": unit, "default": default})


def key_of(field: str) -> str:
    """Return the name of a setting in ``ha.toml``: the field's name, or Flink's name for an option of Flink's."""
    flink = re.fullmatch(r"restart_strategy_(?:(fixed_delay|failure_rate|exponential_delay)_)?(\w+)", field)
    return (
        ".".join(part.replace("_", "-") for part in ("restart_strategy", *flink.groups()) if part) if flink else field
    )


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename=key_of):
    """All settings. The restart strategies have Flink's names and defaults; all times are in seconds."""

    files: Annotated[
        str,
        _setting(
            "URI of the directory that holds all jobs: `hdfs://`, `webhdfs://`, `swebhdfs://` (HTTPS) or `file://`. "
            "`hdfs:///path` is on the file system in `fs.defaultFS` of the Hadoop configuration (`HADOOP_CONF_DIR`).",
            default="a directory below the user's state directory",
        ),
    ] = ""
    directory_mode: Annotated[
        str,
        _setting(
            "Permissions of the directories that are made for jobs, as `chmod` takes them. "
            "`0750` or `0755` lets readers of other users ask HDFS; the jobs' owner always needs all three."
        ),
    ] = "0700"
    webhdfs_ca: Annotated[
        str,
        _setting(
            "File with the certificates (PEM) of the authorities that sign those of HDFS, for `swebhdfs://`.",
            default="the authorities that this host trusts",
        ),
    ] = ""
    zookeeper: Annotated[
        str,
        _setting(
            "Address of the ZooKeeper ensemble: `host:port,host:port/chroot`. "
            "Without ZooKeeper, the file system does all the work.",
            default="no ZooKeeper",
        ),
    ] = ""
    zookeeper_auth: Annotated[
        str,
        _setting(
            "How processes log in to ZooKeeper: `none`, `digest`, `sasl-digest` (DIGEST-MD5) or `kerberos`. "
            "The last two need `hybrid-ha[kerberos]`."
        ),
    ] = "none"
    zookeeper_credentials: Annotated[
        str,
        _setting(
            "File with `user:password` for `digest` and `sasl-digest`. It is read for each connection.",
            default="no file",
        ),
    ] = ""
    zookeeper_sasl_service: Annotated[
        str, _setting("First part of the ZooKeeper servers' Kerberos principal, as in `zookeeper/host`.")
    ] = "zookeeper"
    zookeeper_tls_ca: Annotated[
        str,
        _setting(
            "File with the certificates (PEM) of the authorities that sign those of the ZooKeeper servers. "
            "With it, TLS is spoken, and the servers' names must be right.",
            default="no TLS",
        ),
    ] = ""
    zookeeper_tls_certificate: Annotated[
        str, _setting("File with this process's own certificate (PEM) for ZooKeeper.", default="none")
    ] = ""
    zookeeper_tls_key: Annotated[
        str,
        _setting(
            "File with the key of that certificate (PEM, without a password).", default="in the certificate's file"
        ),
    ] = ""
    zookeeper_acl: Annotated[
        str,
        _setting(
            "`open` or `creator`: who may read and change the nodes that a process makes. "
            "`creator` needs a login or a certificate, the same for all contenders of a chroot.",
            default="`creator` with a login or a certificate, else `open`",
        ),
    ] = ""
    zookeeper_readers: Annotated[
        str,
        _setting(
            "Who else may read nodes with `creator`: `scheme:id,scheme:id`, such as `sasl:reports` or `world:anyone`.",
            default="nobody",
        ),
    ] = ""
    kerberos_keytab: Annotated[
        str,
        _setting(
            "File with the keys of `kerberos_principal`. "
            "With it, this process logs in by itself, and again at 80 % of each ticket's life.",
            default="the ticket that this process finds",
        ),
    ] = ""
    kerberos_principal: Annotated[
        str, _setting("Who this process is for Kerberos, if it has a keytab.", default="none")
    ] = ""
    contender: Annotated[
        str,
        _setting(
            "Name of this process among those that contend for a job. No two may have the same.",
            default="host name and process id",
        ),
    ] = ""
    short_ttl: Annotated[
        float,
        _setting(
            "Time to live of a lease that only HDFS carries. "
            "While ZooKeeper is down, a job has no leader for this long after a crash.",
            "seconds",
        ),
    ] = 6.0
    long_ttl: Annotated[
        float,
        _setting(
            "Time to live of a lease that a ZooKeeper session backs. "
            "A leader that cannot write to HDFS stops after this time.",
            "seconds",
        ),
    ] = 60.0
    session_timeout: Annotated[
        float,
        _setting(
            "Session timeout that is requested from ZooKeeper. "
            "A job has no leader for this long after its leader's host is lost.",
            "seconds",
        ),
    ] = 10.0
    call_timeout: Annotated[
        float,
        _setting(
            "A file-system call is abandoned after this time. 0 means the default.",
            "seconds",
            "1.5, or less if `short_ttl` or `session_timeout` requires it",
        ),
    ] = 0.0
    stop_margin: Annotated[
        float,
        _setting(
            "Leadership ends this long before the lease does, so that work can stop in time. 0 means the default.",
            "seconds",
            "1.5, or less if `short_ttl` or `session_timeout` requires it",
        ),
    ] = 0.0
    drift: Annotated[float, _setting("Greatest relative error of the rate of any host's clock.", "ratio")] = 0.01
    hand_over: Annotated[
        float,
        _setting(
            "A leader that stepped down does not contend again for this long, so that others go first. "
            "Without ZooKeeper it waits at least until every standby has looked at the lease.",
            "seconds",
        ),
    ] = 3.0
    audit: Annotated[float, _setting("A reader compares ZooKeeper's answers with HDFS this often.", "seconds")] = 30.0
    stop_grace: Annotated[
        float,
        _setting("Time between TERM and KILL when a sidecar stops its command and the lease is still kept.", "seconds"),
    ] = 10.0
    listen: Annotated[
        str,
        _setting(
            "Address of the HTTP API: `host:port`. Port 0 takes a free port.",
            default="no HTTP API; for `ha daemon` and `ha agent` a free port of 127.0.0.1",
        ),
    ] = ""
    http_hosts: Annotated[
        str,
        _setting(
            "Further names that requests to the HTTP API may have in their Host header: `a.example.com,b`. "
            "`*.example.com` means all names below it, and `*` all names.",
            default="this host's own names, and the host in `listen`; IP addresses need no list",
        ),
    ] = ""
    http_networks: Annotated[
        str,
        _setting(
            "Networks and addresses from which connections to the HTTP API are accepted: `10.1.0.0/16,192.168.7.9`.",
            default="all",
        ),
    ] = ""
    http_certificate: Annotated[
        str,
        _setting(
            "File with the certificate of the HTTP API and its chain, in PEM. With it, the API speaks TLS only.",
            default="no TLS",
        ),
    ] = ""
    http_key: Annotated[
        str,
        _setting(
            "File with the key of `http_certificate`, in PEM, without a password.", default="the certificate's file"
        ),
    ] = ""
    http_client_ca: Annotated[
        str,
        _setting(
            "File with the authorities, in PEM, of which clients of the HTTP API must have a certificate.",
            default="clients need no certificate",
        ),
    ] = ""
    http_read_tokens: Annotated[
        str,
        _setting(
            "File with the tokens of clients that may read, one a line. "
            "As soon as there is a file of tokens, each request but `/health` needs one.",
            default="no tokens",
        ),
    ] = ""
    http_operate_tokens: Annotated[
        str,
        _setting("File with the tokens of clients that may also change something, one a line.", default="no tokens"),
    ] = ""
    jobmaster_ca: Annotated[
        str,
        _setting(
            "File with the authorities, in PEM, that sign the certificates of job masters. "
            "With it, only job masters with an address of `https://` are called.",
            default="those of the system",
        ),
    ] = ""
    jobmaster_token: Annotated[
        str,
        _setting(
            "File with the token that calls to job masters show, over TLS only. "
            "With it, only job masters with an address of `https://` are called.",
            default="no token",
        ),
    ] = ""
    jobmaster_certificate: Annotated[
        str,
        _setting(
            "File with the certificate, in PEM, that callers of job masters show.", default="no certificate is shown"
        ),
    ] = ""
    jobmaster_key: Annotated[
        str,
        _setting(
            "File with the key of `jobmaster_certificate`, in PEM, without a password.",
            default="the certificate's file",
        ),
    ] = ""
    checkpoints_retained: Annotated[
        int, _setting("Number of completed checkpoints of each query that the leader keeps: 1 to 1,000.")
    ] = RETAINED
    history: Annotated[
        str,
        _setting(
            "Directory on this host into which each process writes the events that `ha check` reads.",
            default="no history",
        ),
    ] = ""
    snapshots: Annotated[
        str,
        _setting(
            "Directory on this host for the answers that the host's agent has received, or `off`. "
            "It must be an absolute path.",
            default="a directory of the user's in `/dev/shm`",
        ),
    ] = ""
    snapshot_fresh: Annotated[
        float,
        _setting(
            "An answer of the agent may be used for this long: at most a tenth of `audit`. 0 means the default.",
            "seconds",
            "a tenth of `audit`",
        ),
    ] = 0.0
    suspicion: Annotated[
        str,
        _setting(
            "`on` or `off`: whether contenders keep a connection to the leader's process to see at once that it ended."
        ),
    ] = SUSPICION_ON
    suspicion_listen: Annotated[
        str,
        _setting(
            "Address on which this contender accepts these connections: `host:port`. Port 0 takes a free port.",
            default="a free port of the host in `suspicion_address`",
        ),
    ] = ""
    suspicion_address: Annotated[
        str,
        _setting(
            "Address that other contenders connect to: `host:port`. Port 0 means the port that is listened on.",
            default="this host's address on its way to ZooKeeper",
        ),
    ] = ""
    standby: Annotated[
        str,
        _setting(
            "`cold` or `warm`: whether a sidecar starts its command before it leads. "
            "A warm command waits in `ha.lead` until the leadership is granted."
        ),
    ] = COLD
    cleanup: Annotated[
        str,
        _setting(
            "`on` or `off`: whether a sidecar moves a job's leftovers into the trash when the job has ended for good."
        ),
    ] = CLEANUP_OFF
    rerun: Annotated[
        str,
        _setting(
            "`on` or `off`: whether a sidecar runs a job once more that had finished before the sidecar began. "
            "It suits jobs that a scheduler starts every day and that end by themselves."
        ),
    ] = RERUN_OFF
    class_data: Annotated[
        str,
        _setting(
            "`on` or `off`: whether a sidecar's PySpark command starts with an archive of Spark's classes. "
            "The first sidecar of a host makes it in the background, in the user's cache directory: some 180 MB."
        ),
    ] = CLASS_DATA_OFF
    restart_strategy_type: Annotated[
        str,
        _setting(
            "`none`, `fixed-delay`, `failure-rate` or `exponential-delay`: "
            "when a leading sidecar starts its command again after a failure. "
            "`none` gives the leadership back after the first failure."
        ),
    ] = "none"
    restart_strategy_fixed_delay_attempts: Annotated[
        int, _setting("Number of restarts before the strategy gives up.")
    ] = 1
    restart_strategy_fixed_delay_delay: Annotated[float, _setting("Delay before each restart.", "seconds")] = 1.0
    restart_strategy_failure_rate_max_failures_per_interval: Annotated[
        int,
        _setting("Number of failures that one interval may have; at least 1. The strategy gives up at the next one."),
    ] = 1
    restart_strategy_failure_rate_failure_rate_interval: Annotated[
        float, _setting("Length of the interval in which failures are counted.", "seconds")
    ] = 60.0
    restart_strategy_failure_rate_delay: Annotated[float, _setting("Delay before each restart.", "seconds")] = 1.0
    restart_strategy_exponential_delay_initial_backoff: Annotated[
        float, _setting("Delay before the first restart.", "seconds")
    ] = 1.0
    restart_strategy_exponential_delay_max_backoff: Annotated[
        float, _setting("Longest delay before a restart.", "seconds")
    ] = 60.0
    restart_strategy_exponential_delay_backoff_multiplier: Annotated[
        float, _setting("Each failure multiplies the delay by this number; greater than 1.", "ratio")
    ] = 1.5
    restart_strategy_exponential_delay_jitter_factor: Annotated[
        float, _setting("Greatest part of the delay that is added or subtracted at random: 0 to 1.", "ratio")
    ] = 0.1
    restart_strategy_exponential_delay_reset_backoff_threshold: Annotated[
        float, _setting("The delay starts from the beginning after this time without a failure.", "seconds")
    ] = 3600.0
    restart_strategy_exponential_delay_attempts_before_reset_backoff: Annotated[
        int,
        _setting(
            "Number of restarts without such a pause before the strategy gives up.", default=f"{INFINITE:,}: no limit"
        ),
    ] = INFINITE

    @property
    def fresh(self) -> float:
        """Seconds for which a snapshot of this process's agent may be used."""
        return self.snapshot_fresh or self.audit / FRESHNESSES_PER_AUDIT

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names in ``http_hosts``.

        Raises:
            InvalidSettings: one of them is no name.
        """
        names = _listed(self.http_hosts)
        for each in names:
            if not _HOST.fullmatch(each):
                raise InvalidSettings(
                    f"http_hosts has {shown(each)}: each must be a host's name, such as a.example.com or *.example.com."
                )
        return names

    @property
    def networks(self) -> "tuple[IPv4Network | IPv6Network, ...]":
        """The networks in ``http_networks``.

        Raises:
            InvalidSettings: one of them is no network.
        """
        if not self.http_networks:
            return ()
        import ipaddress  # noqa: PLC0415  # most processes need none

        try:
            return tuple(ipaddress.ip_network(each) for each in _listed(self.http_networks))
        except ValueError as error:
            raise InvalidSettings(
                f"http_networks is {shown(self.http_networks)}: {error}; write networks such as 10.1.0.0/16."
            ) from error

    @property
    def zookeeper_security(self) -> Security:
        """How to log in to ZooKeeper, and who may do what there."""
        return Security(
            auth=self.zookeeper_auth,
            credentials=self.zookeeper_credentials,
            service=self.zookeeper_sasl_service,
            ca=self.zookeeper_tls_ca,
            certificate=self.zookeeper_tls_certificate,
            key=self.zookeeper_tls_key,
            acl=self.zookeeper_acl,
            readers=self.zookeeper_readers,
        )

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

    def restart_strategy(self, dice: Dice) -> RestartStrategy:
        """Return a new strategy, for one leadership; it has seen no failure yet.

        Args:
            dice: for delays with a jitter.

        Raises:
            InvalidSettings: an option is out of range, even one of a strategy that was not chosen.
        """
        strategies: dict[str, RestartStrategy] = {
            "none": NoRestart(),
            "fixed-delay": FixedDelay(
                self.restart_strategy_fixed_delay_attempts, self.restart_strategy_fixed_delay_delay
            ),
            "failure-rate": FailureRate(
                self.restart_strategy_failure_rate_max_failures_per_interval,
                self.restart_strategy_failure_rate_failure_rate_interval,
                self.restart_strategy_failure_rate_delay,
            ),
            "exponential-delay": ExponentialDelay(
                self.restart_strategy_exponential_delay_initial_backoff,
                self.restart_strategy_exponential_delay_max_backoff,
                self.restart_strategy_exponential_delay_backoff_multiplier,
                self.restart_strategy_exponential_delay_jitter_factor,
                self.restart_strategy_exponential_delay_reset_backoff_threshold,
                self.restart_strategy_exponential_delay_attempts_before_reset_backoff,
                dice,
            ),
        }
        kind = RESTARTS.get(self.restart_strategy_type.lower())
        if kind is None:
            raise InvalidSettings(
                f"restart-strategy.type is {shown(self.restart_strategy_type)}: it must be one of "
                f"{', '.join(map(repr, strategies))}."
            )
        return strategies[kind]

    def validate(self) -> None:
        """Check every setting that is checked before it is used.

        Raises:
            InvalidSettings: one is out of range or clashes with another; the message names them.
        """
        for name, least in (("audit", 0.1), ("stop_grace", 0.0), ("snapshot_fresh", 0.0)):
            if not getattr(self, name) >= least:
                raise InvalidSettings(f"{name} is {getattr(self, name):g} s: it must be at least {least:g}.")
            if getattr(self, name) > LONGEST:  # a thread can wait for no more than 292 years
                raise InvalidSettings(f"{name} is {getattr(self, name):g} s: it must be at most {LONGEST:,}.")
        if not 1 <= self.checkpoints_retained <= MOST_RETAINED:
            raise InvalidSettings(
                f"checkpoints_retained is {self.checkpoints_retained}: it must be from 1 to {MOST_RETAINED:,}, because "
                "the newest checkpoint is always kept."
            )
        self._validate_snapshots()
        self._validate_access()
        for name, allowed in (
            ("suspicion", (SUSPICION_ON, SUSPICION_OFF)),
            ("standby", (COLD, WARM)),
            ("cleanup", (CLEANUP_ON, CLEANUP_OFF)),
            ("rerun", (RERUN_ON, RERUN_OFF)),
            ("class_data", (CLASS_DATA_ON, CLASS_DATA_OFF)),
        ):
            if getattr(self, name) not in allowed:
                choices = " or ".join(map(repr, allowed))
                raise InvalidSettings(f"{name} is {shown(getattr(self, name))}: it must be {choices}.")
        if self.rerun == RERUN_ON and self.cleanup == CLEANUP_ON:
            raise InvalidSettings(
                "rerun and cleanup clash: a run after a cleaning has no checkpoint and begins with the first input, "
                "and an output takes its batches for those of the run before. Switch one of them off."
            )
        _ = self.timing  # raises if durations clash
        self.restart_strategy(float)  # raises if an option is out of range; the dice are not rolled

    def _validate_access(self) -> None:
        if not re.fullmatch("0?7[0-7]{2}", self.directory_mode):
            raise InvalidSettings(
                f"directory_mode is {shown(self.directory_mode)}: it must be 0700 to 0777, as chmod takes it."
            )
        _ = self.hosts, self.networks  # raises if one is none
        if self.jobmaster_key and not self.jobmaster_certificate:
            raise InvalidSettings(
                "jobmaster_key is of no use without jobmaster_certificate: set it, or leave both out."
            )
        if (self.http_key or self.http_client_ca) and not self.http_certificate:
            raise InvalidSettings(
                "http_key and http_client_ca are of no use without http_certificate: set it, or leave them out."
            )
        if bool(self.kerberos_keytab) != bool(self.kerberos_principal):
            raise InvalidSettings("kerberos_keytab and kerberos_principal need each other: set both, or neither.")
        try:
            self.zookeeper_security.check()
        except Invalid as error:
            raise InvalidSettings(str(error)) from error

    def _validate_snapshots(self) -> None:
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


def reference() -> list[SettingReference]:
    """Return the documentation of every setting, in the order of :class:`Settings`."""
    return [_reference_of(field) for field in msgspec.structs.fields(Settings)]


def _reference_of(field: msgspec.structs.FieldInfo) -> SettingReference:
    kind, meta = get_args(field.type)
    shown_default = field.default if isinstance(field.default, str) else f"{field.default:g}"
    return SettingReference(
        name=field.name,
        key=field.encode_name,
        variable=f"HA_{field.name.upper()}",
        kind=kind,
        unit=meta.extra["unit"],
        default=meta.extra["default"] or shown_default,
        text=meta.description,
    )


def _listed(text: str) -> tuple[str, ...]:
    """Read a list with commas."""
    return tuple(each.strip() for each in text.split(",")) if text.strip() else ()


def shown(value: object) -> str:
    """Write a wrong value for an error message; a long one is cut."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits; a table in a table in a table ...
        return "too long to show"
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."
