"""Settings of a program's queries: which of them restart when one fails, and what follows when no restart helps."""

from typing import Annotated

from ha.config.probe_settings import ProbeSettings
from ha.config.setting import check_choice, check_seconds, setting
from leader.errors import InvalidSettings

REGION, FULL = "region", "full"
END, STAY, REPORT = "end", "stay", "report"

SHORTEST_S = 0.1
"""Least time between two rounds of a replication, each of which lists directories."""


class QuerySettings(ProbeSettings, frozen=True, kw_only=True):
    """The queries of ``ha.spark.Job`` and ``ha.spark.lead``; their restart strategy is that of the command's settings.

    If no strategy is chosen, they have ``exponential-delay``.
    """

    failover_strategy: Annotated[
        str,
        setting(
            "`region` or `full`: which queries of `ha.spark.Job` restart when one fails: "
            "those that are connected to it by what they read and write, or all."
        ),
    ] = REGION
    failed_region: Annotated[
        str,
        setting(
            "`end` or `stay`: whether the program ends with an error when the restart strategy of a region of queries "
            "gives up, or that region stays failed and the others go on."
        ),
    ] = END
    failed_query: Annotated[
        str,
        setting(
            "`report` or `end`: whether a query that fails under `ha.spark.lead` is only reported while others go on, "
            "or all queries stop and the block raises an error."
        ),
    ] = REPORT

    checkpointing_timeout: Annotated[
        float,
        setting(
            "Time after which a batch of `ha.spark.Job` is interrupted, and its region started again; 0 for no limit. "
            "Choose more than the longest batch takes, also after an outage: a longer one would never be completed.",
            "seconds",
        ),
    ] = 0.0
    checkpointing_tolerable_failed_checkpoints: Annotated[
        int,
        setting(
            "Number of batches in a row of one query that may take too long before one counts as a failure of its "
            "region. Until then the region starts again at once, whatever its restart strategy is."
        ),
    ] = 0

    verify_interval: Annotated[
        float,
        setting(
            "Time from one verification of the job's checkpoints to the next, by each sidecar that does not lead; "
            "0 for none. It goes by names, lengths and small files, as `ha verify` does, in a process of its own with "
            "the lowest priority, and asks HDFS at most 50 times in a second.",
            "seconds",
        ),
    ] = 0.0

    replicate_to: Annotated[
        str,
        setting(
            "Root of the jobs on another file system, to which a sidecar that does not lead replicates the job's "
            "checkpoints, as `ha replicate --to` does, in a process of its own with the lowest priority. Of several "
            "sidecars one does so.",
            default="empty: nothing is replicated",
        ),
    ] = ""
    replicate_interval: Annotated[
        float,
        setting("Time between two rounds of this replication.", "seconds"),
    ] = 1.0
    replicate_rate: Annotated[
        int,
        setting("Most bytes that this replication moves in a second; 0 for no limit.", "bytes"),
    ] = 0

    def validate(self) -> None:
        """Check these settings as well; it raises as the base does."""
        super().validate()
        check_choice("failover_strategy", self.failover_strategy, (REGION, FULL))
        check_choice("failed_region", self.failed_region, (END, STAY))
        check_choice("failed_query", self.failed_query, (REPORT, END))
        check_seconds("checkpointing_timeout", self.checkpointing_timeout, 0.0)
        check_seconds("verify_interval", self.verify_interval, 0.0)
        check_seconds("replicate_interval", self.replicate_interval, SHORTEST_S)
        if self.replicate_rate < 0:
            raise InvalidSettings(f"replicate_rate is {self.replicate_rate}: it must be at least 0.")
        if self.checkpointing_tolerable_failed_checkpoints < 0:
            raise InvalidSettings(
                "checkpointing_tolerable_failed_checkpoints is "
                f"{self.checkpointing_tolerable_failed_checkpoints}: it must be at least 0."
            )
