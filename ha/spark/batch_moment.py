"""BatchMoment: when a batch of a streaming query was, as the query's checkpoint says.

Spark writes ``offsets/N`` before batch N begins, and reads it again if it does the batch again. So the watermark and
the time in it are the same in every try, unlike those of a clock or of a progress report.
"""

import re
from typing import TYPE_CHECKING

from ha.checkpoints.batch_moment import NO_CHECKPOINT, moment_in, read_small
from ha.leadership.fenced_rename import FencedRename
from ha.outputs.commit_trigger import Moment
from leader.errors import InvalidSettings
from leader.layout.names import SPARK
from store.errors import NotFound

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID = "sql.streaming.queryId"
"""Spark's property of the thread on which it calls ``foreachBatch``."""

_ID = re.compile(r'"id"\s*:\s*"([0-9a-f-]{36})"')


class BatchMoments:
    """The moments of the batches of one query, whose checkpoint is in the leader directory."""

    def __init__(self, renames: FencedRename) -> None:
        """Connect to nothing yet."""
        self._renames = renames
        self._places: dict[str, str] = {}

    def read(self, batch: "DataFrame", number: int) -> Moment:
        """Return when a batch was; call it on the thread on which Spark has handed out the batch.

        It costs one read; for the first batch a list, and a read for each query of the job.

        Raises:
            Fenced: another leader has taken over.
            InvalidSettings: the query's checkpoint is elsewhere, or this is no batch of a query.
            StoreError: the store did not answer.
        """
        query = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if not query:
            raise InvalidSettings("A partition commit needs batches of a streaming query: use foreachBatch.")
        if query not in self._places:
            self._places[query] = self._place(query)
        return moment_in(self._renames, self._places[query], number)

    def _place(self, query: str) -> str:
        checkpoints = f"{self._renames.inside}/{SPARK}"
        for entry in self._renames.list(checkpoints):
            try:
                said = read_small(self._renames, f"{checkpoints}/{entry.name}/metadata").decode(errors="replace")
            except NotFound:
                continue
            if (found := _ID.search(said)) and found[1] == query:
                return f"{checkpoints}/{entry.name}"
        raise InvalidSettings(NO_CHECKPOINT)
