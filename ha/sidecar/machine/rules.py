"""The rules of a sidecar's machine, from the settings."""

from collections.abc import Callable

from ha.config.command_settings import WARM
from ha.config.restart_strategy import INFINITE, LONGEST_BACKOFF, RESET_AFTER_S, ExponentialDelay
from ha.config.settings import Settings
from ha.sidecar.machine.liveness import Schedule
from ha.sidecar.machine.sidecar_state import Rules
from leader.timing import NEVER

# Delays of a warm command that ended before its grant: Flink's exponential defaults.
WARM_UP_AGAIN = (1.0, LONGEST_BACKOFF, RESET_AFTER_S, INFINITE)

PROGRESS = "progress"  # the probe that ends by itself


def rules_of(settings: Settings, dice: Callable[[], float], *, restores: bool = False) -> Rules:
    """Return the rules; ``dice`` are from 0 to 1, ``restores`` says whether the job starts from a savepoint."""

    def probe(at: float) -> Schedule:
        timeout = NEVER if settings.probe.liveness_probe.startswith(PROGRESS) else settings.probe.liveness_period
        due = at + settings.probe.liveness_initial_delay
        return Schedule(due, settings.probe.liveness_period, timeout, settings.probe.liveness_failure_threshold)

    timing = settings.leadership.timing
    return Rules(
        warm=settings.command.standby == WARM,
        strategy=lambda: settings.command.restarts(dice),
        warm_up=ExponentialDelay(*WARM_UP_AGAIN, dice),
        stop_grace=settings.command.stop_grace,
        long_ttl=settings.leadership.long_ttl,
        retry=timing.retry,
        renewal=timing.renewal,
        heartbeat_timeout=settings.command.heartbeat_timeout,
        probe=probe if settings.probe.liveness_probe else None,
        restores=restores,
    )
