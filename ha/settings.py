"""Settings: arguments, then the environment, then ``ha.toml``, then defaults. Validated before anything starts."""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ha.restart import INFINITE, Dice, ExponentialDelay, FailureRate, FixedDelay, NoRestart, RestartStrategy
from ha.setting_sources import check, config_path, from_file, printable, shown
from leader.errors import InvalidSettings
from leader.names import RETAINED, check_word
from leader.timing import LONGEST, Timing

FRESHNESSES_PER_AUDIT = 10
"""At least: an agent that is frozen right after it was told something stale must not be believed beyond the audit."""

SNAPSHOTS_OFF = "off"
"""The value of ``snapshots`` for: neither write them nor read them."""

SUSPICION_ON, SUSPICION_OFF = "on", "off"
COLD, WARM = "cold", "warm"
CLEANUP_OFF, CLEANUP_ON = "off", "on"

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
"""What ``restart-strategy.type`` may be, as in Flink, and the strategy that is meant."""

MOST_RETAINED = 1000
"""More checkpoints would not come in one answer of a NameNode."""


def _in_file(field: str) -> str:
    """The name of a setting in ``ha.toml``: its own, but Flink's for Flink's options."""
    flink = re.fullmatch(r"restart_strategy_(?:(fixed_delay|failure_rate|exponential_delay)_)?(\w+)", field)
    return (
        ".".join(part.replace("_", "-") for part in ("restart_strategy", *flink.groups()) if part) if flink else field
    )


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename=_in_file):
    """Everything that can be set. Each setting is an argument, ``HA_<NAME>`` in the environment, a key in ``ha.toml``.

    Those of restarts have Flink's names in ``ha.toml``, ``restart-strategy.fixed-delay.delay``; their defaults are
    Flink's as well, and their times are in seconds.

    Attributes:
        files: URI of the directory that holds the jobs: ``hdfs://``, ``webhdfs://`` or ``file://``.
        zookeeper: ``host:port,host:port/chroot``; empty means that the file system carries everything.
        contender: name of this process among those that contend for a job.
        short_ttl: seconds; see :class:`leader.timing.Timing`, as for the next six.
        long_ttl: seconds.
        session_timeout: seconds.
        call_timeout: seconds; 0 derives it from the others.
        stop_margin: seconds; 0 derives it from the others.
        drift: a ratio.
        hand_over: seconds.
        audit: seconds after which an answer of ZooKeeper is compared with HDFS.
        stop_grace: seconds that a command has between TERM and KILL while the lease is being kept.
        listen: ``host:port`` of the HTTP API; port 0 takes a free one, an empty text none.
        checkpoints_retained: completed checkpoints of each query that the leader keeps.
        history: directory on this host into which each process writes what happened to it; empty for none.
        snapshots: directory on this host for what its agent was told; empty for one in shared memory; or ``off``.
        snapshot_fresh: seconds for which what the agent was told may be used; 0 derives it from ``audit``.
        suspicion: ``on`` or ``off``: whether contenders see by connections among them that a leader's process is gone.
        suspicion_listen: ``host:port`` that this contender listens on for that; port 0 takes a free one; empty for a
            free one of ``suspicion_address``'s host.
        suspicion_address: ``host:port`` that others connect to; port 0 is the one that is listened on; empty for the
            host's address on its way to ZooKeeper.
        standby: ``cold`` or ``warm``: whether a sidecar starts its command before it leads, so that it warms up.
        cleanup: ``on`` or ``off``: whether a sidecar moves what its job leaves into the trash, once that has ended.
        restart_strategy_type: one of :data:`RESTARTS`: what a sidecar that leads does when its command fails.
        restart_strategy_fixed_delay_attempts: see :class:`ha.restart.FixedDelay`, as for the next.
        restart_strategy_fixed_delay_delay: seconds.
        restart_strategy_failure_rate_max_failures_per_interval: see :class:`ha.restart.FailureRate`, as for
            the next two.
        restart_strategy_failure_rate_failure_rate_interval: seconds.
        restart_strategy_failure_rate_delay: seconds.
        restart_strategy_exponential_delay_initial_backoff: seconds; see :class:`ha.restart.ExponentialDelay`, as for
            the rest.
        restart_strategy_exponential_delay_max_backoff: seconds.
        restart_strategy_exponential_delay_backoff_multiplier: a ratio.
        restart_strategy_exponential_delay_jitter_factor: a ratio.
        restart_strategy_exponential_delay_reset_backoff_threshold: seconds.
        restart_strategy_exponential_delay_attempts_before_reset_backoff: a number of restarts.
    """

    files: str = ""
    zookeeper: str = ""
    contender: str = ""
    short_ttl: float = 6.0
    long_ttl: float = 60.0
    session_timeout: float = 10.0
    call_timeout: float = 0.0
    stop_margin: float = 0.0
    drift: float = 0.01
    hand_over: float = 3.0
    audit: float = 30.0
    stop_grace: float = 10.0
    listen: str = ""
    checkpoints_retained: int = RETAINED
    history: str = ""
    snapshots: str = ""
    snapshot_fresh: float = 0.0
    suspicion: str = SUSPICION_ON
    suspicion_listen: str = ""
    suspicion_address: str = ""
    standby: str = COLD
    cleanup: str = CLEANUP_OFF
    restart_strategy_type: str = "none"
    restart_strategy_fixed_delay_attempts: int = 1
    restart_strategy_fixed_delay_delay: float = 1.0
    restart_strategy_failure_rate_max_failures_per_interval: int = 1
    restart_strategy_failure_rate_failure_rate_interval: float = 60.0
    restart_strategy_failure_rate_delay: float = 1.0
    restart_strategy_exponential_delay_initial_backoff: float = 1.0
    restart_strategy_exponential_delay_max_backoff: float = 60.0
    restart_strategy_exponential_delay_backoff_multiplier: float = 1.5
    restart_strategy_exponential_delay_jitter_factor: float = 0.1
    restart_strategy_exponential_delay_reset_backoff_threshold: float = 3600.0
    restart_strategy_exponential_delay_attempts_before_reset_backoff: int = INFINITE

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

    def restart_strategy(self, dice: Dice) -> RestartStrategy:
        """Return what one leadership is to do about failures of its command; it has seen none yet.

        Args:
            dice: for delays with a jitter.

        Raises:
            InvalidSettings: an option is out of range, whether its strategy is the one that was chosen or not.
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


def load(
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    source: str = "the arguments",
) -> Settings:
    """Gather the settings.

    Args:
        arguments: those given in code or as flags; None among the values means "not given".
        environment: defaults to the process's.
        source: what an error calls the arguments.

    Raises:
        InvalidSettings: one is unknown, of the wrong kind, or clashes with another; the message says which and where.
    """
    environment = os.environ if environment is None else environment
    known = {field.encode_name: field.type for field in msgspec.structs.fields(Settings)}
    values: dict[str, Any] = {}
    for where, found in (
        (printable(config_path(environment)), from_file(environment, known)),
        ("the environment", _from_environment(environment)),
        (source, {_in_file(key): value for key, value in (arguments or {}).items() if value is not None}),
    ):
        check(found, where, known)
        values.update(found)
    settings: Settings = msgspec.convert(values, Settings, strict=False)
    settings = msgspec.structs.replace(
        settings,
        files=settings.files or _default_files(environment),
        contender=check_word(settings.contender or _default_contender(), "a contender"),
    )
    for name, least in (("audit", 0.1), ("stop_grace", 0.0), ("snapshot_fresh", 0.0)):
        if not getattr(settings, name) >= least:
            raise InvalidSettings(f"{name} is {getattr(settings, name):g} s: it must be at least {least:g}.")
        if getattr(settings, name) > LONGEST:  # a thread can wait for no more than 292 years
            raise InvalidSettings(f"{name} is {getattr(settings, name):g} s: it must be at most {LONGEST:,}.")
    if not 1 <= settings.checkpoints_retained <= MOST_RETAINED:
        raise InvalidSettings(
            f"checkpoints_retained is {settings.checkpoints_retained}: it must be from 1 to {MOST_RETAINED:,}, for the "
            "newest checkpoint is always kept."
        )
    _check_snapshots(settings)
    if settings.suspicion not in (SUSPICION_ON, SUSPICION_OFF):
        raise InvalidSettings(f"suspicion is {shown(settings.suspicion)}: it must be 'on' or 'off'.")
    if settings.standby not in (COLD, WARM):
        raise InvalidSettings(f"standby is {shown(settings.standby)}: it must be 'cold' or 'warm'.")
    if settings.cleanup not in (CLEANUP_ON, CLEANUP_OFF):
        raise InvalidSettings(f"cleanup is {shown(settings.cleanup)}: it must be 'on' or 'off'.")
    _ = settings.timing  # raises if durations clash
    settings.restart_strategy(float)  # raises if one of its options is out of range; nothing is rolled
    return settings


def _check_snapshots(settings: Settings) -> None:
    where, fresh, longest = settings.snapshots, settings.snapshot_fresh, settings.audit / FRESHNESSES_PER_AUDIT
    if where and where != SNAPSHOTS_OFF and (not where.startswith("/") or "\0" in where):
        raise InvalidSettings(
            f"snapshots is {shown(where)}: it must be an absolute path, or {SNAPSHOTS_OFF!r} to do without them."
        )
    if fresh > longest:
        raise InvalidSettings(
            f"snapshot_fresh ({fresh:g} s) and audit ({settings.audit:g} s) clash: a snapshot that is used for more "
            f"than a tenth of audit ({longest:g} s) could be stale for longer than that."
        )


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    # Only names of settings: HA_JOB, HA_EPOCH and their like are what a sidecar tells its command.
    fields = msgspec.structs.fields(Settings)
    found = {field.encode_name: environment.get(f"HA_{field.name.upper()}") for field in fields}
    return {name: value for name, value in found.items() if value}


def _default_files(environment: Mapping[str, str]) -> str:
    state = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118
    # Not Path.as_uri(): Hadoop's URIs have no escapes, so a %20 would be three letters of a directory's name.
    return f"file://{Path(state, 'hybrid-ha', 'jobs').absolute()}"


def _default_contender() -> str:
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()).strip("-.")[:40] or "host"
    return f"{host}-{os.getpid()}"
