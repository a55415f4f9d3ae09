"""Settings of a program's queries: the deadline of a batch, the end of a region, and what standbys do meanwhile."""

import msgspec

from ha.config.setting import check_choice, check_number, check_seconds, seconds, setting

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
        "none. It goes by names, lengths and small files, as `ha checkpoint verify` does, in a process of its own with "
        "the lowest priority, and asks HDFS at most 50 times in a second.",
    )

    replicate_to: str = setting(
        "",
        "Root of the jobs on another file system, to which a sidecar that does not lead replicates the job's "
        "checkpoints, as `ha replica run --to` does, in a process of its own with the lowest priority. Of several "
        "sidecars one does so.",
        shown="empty: nothing is replicated",
    )
    replicate_rate: int = setting(
        0, "Most bytes that this replication moves in a second; 0 for no limit.", unit="bytes"
    )

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        check_seconds("verify_interval", self.verify_interval, 0.0)
        check_number("replicate_rate", self.replicate_rate, 0)
