"""Settings of the command that a sidecar runs: its start, its end, its restarts, and what it leaves behind."""

from typing import Annotated

from ha.config.http_settings import HttpSettings
from ha.config.restart_strategy import (
    INFINITE,
    Dice,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartStrategy,
)
from ha.config.setting import check_choice, check_seconds, setting, shown
from leader.errors import InvalidSettings
from leader.layout.names import EXCEPTIONS_RETAINED, RETAINED

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

LONGEST_ADOPTED = 400
"""A leadership is taken up only if ``long_ttl`` is at most so many times ``short_ttl``; leader/election/adoption.py."""

MOST_RETAINED = 1000
"""A NameNode lists no more checkpoints than this in one answer."""


class CommandSettings(HttpSettings, frozen=True, kw_only=True):
    """The command; its restart strategies have Flink's names and defaults."""

    stop_grace: Annotated[
        float,
        setting("Time between TERM and KILL when a sidecar stops its command and the lease is still kept.", "seconds"),
    ] = 10.0
    adopt_within: Annotated[
        float,
        setting(
            "Time that a command outlives a sidecar that was killed, for another `ha run` of the same job and command "
            "to take it up on this host; never longer than the leadership lasts. 0: it is killed at once. "
            "Each standby waits for this time as well, so set it only where a new sidecar is started at once.",
            "seconds",
        ),
    ] = 0.0
    heartbeat_timeout: Annotated[
        float,
        setting(
            "Time without a heartbeat of the driver after which a sidecar kills it and gives the leadership back; "
            "0 switches that off. A program beats in the block of `ha.spark.lead`: Python runs and the JVM answers.",
            "seconds",
        ),
    ] = 50.0
    checkpoints_retained: Annotated[
        int,
        setting(
            "Number of completed checkpoints of each query that the leader keeps: 1 to 1,000. "
            "Spark is told to retain at least these batches."
        ),
    ] = RETAINED
    exceptions_retained: Annotated[
        int, setting("Number of failures of a job that `ha exceptions` shows; the leader keeps them: 1 to 1,000.")
    ] = EXCEPTIONS_RETAINED
    standby: Annotated[
        str,
        setting(
            "`cold` or `warm`: whether a sidecar starts its command before it leads. "
            "A warm command waits in `ha.lead` until the leadership is granted."
        ),
    ] = COLD
    cleanup: Annotated[
        str,
        setting(
            "`on` or `off`: whether a sidecar moves a job's leftovers into the trash when the job has ended for good."
        ),
    ] = CLEANUP_OFF
    rerun: Annotated[
        str,
        setting(
            "`on` or `off`: whether a sidecar runs a job once more that had finished before the sidecar began. "
            "It suits jobs that a scheduler starts every day and that end by themselves."
        ),
    ] = RERUN_OFF
    class_data: Annotated[
        str,
        setting(
            "`on` or `off`: whether a sidecar's PySpark command starts with an archive of Spark's classes. "
            "The first sidecar of a host makes it in the background, in the user's cache directory: some 180 MB."
        ),
    ] = CLASS_DATA_OFF
    restart_strategy_type: Annotated[
        str,
        setting(
            "`none`, `fixed-delay`, `failure-rate` or `exponential-delay`: "
            "when a leading sidecar starts its command again after a failure, and `ha.spark.Job` a region of queries. "
            "`none` gives the leadership back after the first failure.",
            default="`none` for a command, `exponential-delay` for declared queries",
        ),
    ] = ""
    restart_strategy_fixed_delay_attempts: Annotated[
        int, setting("Number of restarts before the strategy gives up.")
    ] = 1
    restart_strategy_fixed_delay_delay: Annotated[float, setting("Delay before each restart.", "seconds")] = 1.0
    restart_strategy_failure_rate_max_failures_per_interval: Annotated[
        int,
        setting("Number of failures that one interval may have; at least 1. The strategy gives up at the next one."),
    ] = 1
    restart_strategy_failure_rate_failure_rate_interval: Annotated[
        float, setting("Length of the interval in which failures are counted.", "seconds")
    ] = 60.0
    restart_strategy_failure_rate_delay: Annotated[float, setting("Delay before each restart.", "seconds")] = 1.0
    restart_strategy_exponential_delay_initial_backoff: Annotated[
        float, setting("Delay before the first restart.", "seconds")
    ] = 1.0
    restart_strategy_exponential_delay_max_backoff: Annotated[
        float, setting("Longest delay before a restart.", "seconds")
    ] = 60.0
    restart_strategy_exponential_delay_backoff_multiplier: Annotated[
        float, setting("Each failure multiplies the delay by this number; greater than 1.", "ratio")
    ] = 1.5
    restart_strategy_exponential_delay_jitter_factor: Annotated[
        float, setting("Greatest part of the delay that is added or subtracted at random: 0 to 1.", "ratio")
    ] = 0.1
    restart_strategy_exponential_delay_reset_backoff_threshold: Annotated[
        float, setting("The delay starts from the beginning after this time without a failure.", "seconds")
    ] = 3600.0
    restart_strategy_exponential_delay_attempts_before_reset_backoff: Annotated[
        int,
        setting(
            "Number of restarts without such a pause before the strategy gives up.", default=f"{INFINITE:,}: no limit"
        ),
    ] = INFINITE

    failover_max_attempts: Annotated[
        int,
        setting(
            "Number of leaderships in a row, on whatever host, whose command may fail without a completed batch. "
            "The last one leaves the job FAILED, and it runs no more. "
            "Until then the tries come less and less often: at once, then after 1, 2, 4 ... 300 seconds.",
            default=f"{INFINITE:,}: no limit",
        ),
    ] = INFINITE

    def restart_strategy(self, dice: Dice, unset: str = "none") -> RestartStrategy:
        """Return a new strategy, for one leadership or one region of queries; it has seen no failure yet.

        Args:
            dice: for delays with a jitter.
            unset: the strategy if none was chosen.

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
        kind = RESTARTS.get((self.restart_strategy_type or unset).lower())
        if kind is None:
            raise InvalidSettings(
                f"restart-strategy.type is {shown(self.restart_strategy_type)}: it must be one of "
                f"{', '.join(map(repr, strategies))}."
            )
        return strategies[kind]

    def validate(self) -> None:
        """Check these settings as well; it raises as the base does."""
        super().validate()
        check_seconds("stop_grace", self.stop_grace, 0.0)
        check_seconds("adopt_within", self.adopt_within, 0.0)
        if self.adopt_within and self.long_ttl > LONGEST_ADOPTED * self.short_ttl:
            raise InvalidSettings(
                f"adopt_within ({self.adopt_within:g} s), long_ttl ({self.long_ttl:g} s) and short_ttl "
                f"({self.short_ttl:g} s) clash: a sidecar can be succeeded only if long_ttl is at most "
                f"{LONGEST_ADOPTED} times short_ttl; set adopt_within to 0, or change one of the others."
            )
        check_seconds("heartbeat_timeout", self.heartbeat_timeout, 0.0)
        if not 1 <= self.checkpoints_retained <= MOST_RETAINED:
            raise InvalidSettings(
                f"checkpoints_retained is {self.checkpoints_retained}: it must be from 1 to {MOST_RETAINED:,}, because "
                "the newest checkpoint is always kept."
            )
        if not 1 <= self.exceptions_retained <= MOST_RETAINED:
            raise InvalidSettings(
                f"exceptions_retained is {self.exceptions_retained}: it must be from 1 to {MOST_RETAINED:,}."
            )
        if not 1 <= self.failover_max_attempts <= INFINITE:
            raise InvalidSettings(
                f"failover_max_attempts is {self.failover_max_attempts}: it must be from 1 to {INFINITE:,}."
            )
        check_choice("standby", self.standby, (COLD, WARM))
        check_choice("cleanup", self.cleanup, (CLEANUP_ON, CLEANUP_OFF))
        check_choice("rerun", self.rerun, (RERUN_ON, RERUN_OFF))
        check_choice("class_data", self.class_data, (CLASS_DATA_ON, CLASS_DATA_OFF))
        if self.rerun == RERUN_ON and self.cleanup == CLEANUP_ON:
            raise InvalidSettings(
                "rerun and cleanup clash: a run after a cleaning has no checkpoint and begins with the first input, "
                "and an output takes its batches for those of the run before. Switch one of them off."
            )
        self.restart_strategy(float)  # raises if an option is out of range; the dice are not rolled
