"""Settings of what a sidecar runs: the command, its probe, the queries of its program, and what standbys do."""

import msgspec

from ha.config.restart_strategy import (
    INFINITE,
    LONGEST_BACKOFF,
    RESET_AFTER_S,
    Dice,
    ExponentialDelay,
    FixedDelay,
    NoRestart,
    RestartStrategy,
)
from ha.config.setting import check_choice, check_number, check_seconds, seconds, setting
from leader.errors import InvalidSettings
from leader.layout.names import RETAINED

COLD, WARM = "cold", "warm"
NONE, FIXED_DELAY, EXPONENTIAL_DELAY = "none", "fixed-delay", "exponential-delay"

SHORTEST_S = 0.1  # the sidecar looks at the clock twice a second, so a shorter period of probes would be none
MOST_RETAINED = 1000  # A NameNode lists at most this many checkpoints in one answer


class CommandSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The command; its restart strategies have Flink's names and defaults."""

    stop_grace: float = seconds(
        10.0, "Time between TERM and KILL when a sidecar stops its command and the lease is still kept."
    )
    adopt_within: float = seconds(
        0.0,
        "Time that a command outlives a sidecar that was killed, for another `ha run` of the same job and command to "
        "take it up on this host; never longer than the leadership lasts. 0: it is killed at once. Each standby waits "
        "for this time as well, so set it only where a new sidecar is started at once.",
    )
    heartbeat_timeout: float = seconds(
        50.0,
        "Time without a heartbeat of the driver after which a sidecar kills it and gives the leadership back; 0 "
        "switches that off. A program beats in the block of `ha.spark.lead`: Python runs and the JVM answers.",
    )
    checkpoints_retained: int = setting(
        RETAINED,
        "Number of completed checkpoints of each query that the leader keeps: 1 to 1,000. Spark is told to retain at "
        "least these batches.",
    )
    standby: str = setting(
        COLD,
        "`cold` or `warm`: whether a sidecar starts its command before it leads. A warm command waits in `ha.lead` "
        "until the leadership is granted.",
    )
    cleanup: bool = setting(
        False, "Whether a sidecar moves a job's leftovers into the trash when the job has ended for good."
    )
    rerun: bool = setting(
        False,
        "Whether a sidecar runs a job once more that had finished before the sidecar began. It suits jobs that a "
        "scheduler starts every day and that end by themselves.",
    )
    class_data: bool = setting(
        False,
        "Whether a sidecar's PySpark command starts with an archive of Spark's classes. The first sidecar of a host "
        "makes it in the background, in the user's cache directory: some 180 MB.",
    )
    restart_strategy: str = setting(
        "",
        "`none`, `fixed-delay` or `exponential-delay`: when a leading sidecar starts its command again after a "
        "failure, and `ha.spark.Job` a region of queries. `none` gives the leadership back after the first failure.",
        shown="`none` for a command, `exponential-delay` for declared queries",
    )
    restart_attempts: int = setting(
        0,
        "Number of restarts before the strategy gives up; an hour without a failure clears the count of "
        "`exponential-delay`. 0 means the default.",
        shown="1 for `fixed-delay`, no limit for `exponential-delay`",
    )
    restart_delay: float = seconds(
        1.0, "Delay before a restart. With `exponential-delay` it is the first one, and grows to 60 seconds."
    )
    failover_max_attempts: int = setting(
        INFINITE,
        "Number of leaderships in a row, on any host, whose command may fail without a completed batch. The last "
        "failure leaves the job FAILED, and it does not start again. Until then retries back off: at once, then after "
        "1, 2, 4 ... 300 seconds.",
        shown=f"{INFINITE:,}: no limit",
    )

    def restarts(self, dice: Dice, unset: str = NONE) -> RestartStrategy:
        """Return a new strategy, for one leadership or one region of queries; it has seen no failure yet."""
        # `dice`: for delays with a jitter. `unset`: the strategy if none was chosen.
        match self.restart_strategy or unset:
            case "fixed-delay":
                return FixedDelay(self.restart_attempts or 1, self.restart_delay)
            case "exponential-delay":
                most = self.restart_attempts or INFINITE
                return ExponentialDelay(self.restart_delay, LONGEST_BACKOFF, RESET_AFTER_S, most, dice)
            case _:
                return NoRestart()

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        check_seconds("stop_grace", self.stop_grace, 0.0)
        check_seconds("adopt_within", self.adopt_within, 0.0)
        check_seconds("heartbeat_timeout", self.heartbeat_timeout, 0.0)
        if not 1 <= self.checkpoints_retained <= MOST_RETAINED:
            raise InvalidSettings(
                f"checkpoints_retained is {self.checkpoints_retained}: it must be from 1 to {MOST_RETAINED:,}, because "
                "the newest checkpoint is always kept."
            )
        check_number("failover_max_attempts", self.failover_max_attempts, 1, INFINITE)
        check_choice("standby", self.standby, (COLD, WARM))
        check_choice("restart_strategy", self.restart_strategy, ("", NONE, FIXED_DELAY, EXPONENTIAL_DELAY))
        check_seconds("restart_delay", self.restart_delay, 0.0)
        check_number("restart_attempts", self.restart_attempts, 0, INFINITE)
        if self.rerun and self.cleanup:
            raise InvalidSettings(
                "rerun and cleanup clash: a run after a cleaning has no checkpoint and begins with the first input, "
                "and an output takes its batches for those of the run before. Switch one of them off."
            )


class ProbeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The liveness probe, with words of Kubernetes. It asks whatever runs as the command, whatever that imports."""

    liveness_probe: str = setting(
        "",
        "`exec:COMMAND`, `http:URL`, `tcp:HOST:PORT`, `progress`, `progress:QUERY` or `progress:CHECKPOINT-URI`: how a "
        "sidecar asks whether its command is alive. `progress` looks for a new batch in Spark's commit logs. After "
        "`liveness_failure_threshold` failures in a row it is killed, and the leadership given back.",
        shown="no probe",
    )
    liveness_period: float = seconds(
        10.0,
        "Time from one liveness probe to the next. One without an answer by then has failed; `progress` asks the store "
        "and has its time-out.",
    )
    liveness_failure_threshold: int = setting(
        3, "The command is killed after this number of failed liveness probes in a row; at least 1."
    )
    liveness_initial_delay: float = seconds(
        0.0, "Time from when the command is granted the job, or started again, to its first probe."
    )

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        check_seconds("liveness_period", self.liveness_period, SHORTEST_S)
        check_seconds("liveness_initial_delay", self.liveness_initial_delay, 0.0)
        check_number("liveness_failure_threshold", self.liveness_failure_threshold, 1)


END, STAY = "end", "stay"


class QuerySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The queries of ``ha.spark.Job`` and ``ha.spark.lead``; their restart strategy is that of the command's settings.

    If no strategy is chosen, they have ``exponential-delay``.
    """

    failed_region: str = setting(
        END,
        "`end` or `stay`: whether the program ends with an error when the restart strategy of a region of queries "
        "gives up, or that region stays failed and the others go on.",
    )

    batch_deadline: float = seconds(
        0.0,
        "Time after which a batch of `ha.spark.Job` is interrupted, and its region started again; 0 for no limit. "
        "Choose more than the longest batch takes, also after an outage: a longer one would never be completed.",
    )
    late_batches_tolerated: int = setting(
        0,
        "Number of batches in a row of one query that may take too long before one counts as a failure of its region. "
        "Until then the region starts again at once, whatever its restart strategy is.",
    )

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        check_choice("failed_region", self.failed_region, (END, STAY))
        check_seconds("batch_deadline", self.batch_deadline, 0.0)
        check_number("late_batches_tolerated", self.late_batches_tolerated, 0)


class StandbySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a sidecar that does not lead does for the job meanwhile: it verifies and replicates checkpoints."""

    verify_interval: float = seconds(
        0.0,
        "Time from one verification of the job's checkpoints to the next, by each sidecar that does not lead; 0 for "
        "none. It is that of `ha checkpoint verify`, with the lowest priority, and asks HDFS at most 50 times in a "
        "second.",
    )

    replicate_to: str = setting(
        "",
        "Root of the jobs on another file system, to which a sidecar that does not lead replicates the job's "
        "checkpoints, as `ha replica run --to` does, with the lowest priority. Of several sidecars one does so.",
        shown="empty: nothing is replicated",
    )
    replicate_rate: int = setting(
        0, "Most bytes that this replication moves in a second; 0 for no limit.", unit="bytes"
    )

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        check_seconds("verify_interval", self.verify_interval, 0.0)
        check_number("replicate_rate", self.replicate_rate, 0)
