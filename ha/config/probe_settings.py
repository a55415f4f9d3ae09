"""Settings of the liveness probe, by which a sidecar sees that its command hangs; words and defaults of Kubernetes."""

from typing import Annotated

from ha.config.command_settings import CommandSettings
from ha.config.setting import check_seconds, setting
from leader.errors import InvalidSettings

SHORTEST_S = 0.1
"""The sidecar looks at the clock twice a second, so a shorter period would be none."""


class ProbeSettings(CommandSettings, frozen=True, kw_only=True):
    """The probe asks whatever runs as the command, also a program that does not import this package."""

    liveness_probe: Annotated[
        str,
        setting(
            "`exec:COMMAND`, `http:URL`, `tcp:HOST:PORT`, `progress`, `progress:QUERY` or `progress:CHECKPOINT-URI`: "
            "how a sidecar asks whether its command is alive. "
            "`progress` looks for a new batch in Spark's commit logs. "
            "After `liveness_failure_threshold` failures in a row it is killed, and the leadership given back.",
            default="no probe",
        ),
    ] = ""
    liveness_period: Annotated[float, setting("Time from one liveness probe to the next.", "seconds")] = 10.0
    liveness_timeout: Annotated[
        float,
        setting(
            "A liveness probe that has no answer after this time has failed. "
            "`progress` asks the store and has its time-out.",
            "seconds",
        ),
    ] = 1.0
    liveness_failure_threshold: Annotated[
        int, setting("The command is killed after this number of failed liveness probes in a row; at least 1.")
    ] = 3
    liveness_initial_delay: Annotated[
        float,
        setting("Time from when the command is granted the job, or started again, to its first probe.", "seconds"),
    ] = 0.0

    def validate(self) -> None:
        """Check these settings as well; it raises as the base does."""
        super().validate()
        check_seconds("liveness_period", self.liveness_period, SHORTEST_S)
        check_seconds("liveness_timeout", self.liveness_timeout, SHORTEST_S)
        check_seconds("liveness_initial_delay", self.liveness_initial_delay, 0.0)
        if self.liveness_failure_threshold < 1:
            raise InvalidSettings(
                f"liveness_failure_threshold is {self.liveness_failure_threshold}: it must be at least 1."
            )
