"""The moment of a batch: its watermark and its time, as the checkpoint of its query says.

Spark writes ``offsets/N`` before batch N begins, and reads it again if it does the batch again. So both are the same in
every try, unlike those of a clock or of a progress report.
"""

from ha.checkpoints import contents
from ha.leadership.fenced_rename import FencedRename
from ha.outputs.commit_trigger import Moment
from leader.errors import InvalidSettings
from store.errors import NotFound

MOST = 64 << 20
"""Longest file of offsets."""

NO_CHECKPOINT = (
    "A partition commit needs the query's checkpoint below the leader directory: give the query a queryName "
    "instead of a checkpointLocation of its own, or use ha.spark.checkpoint_location."
)


def moment_in(renames: FencedRename, checkpoint: str, number: int) -> Moment:
    """Return when a batch was; it costs one read.

    Args:
        renames: their root contains the checkpoint.
        checkpoint: its path there.
        number: that Spark gave to the batch.

    Raises:
        Fenced: another leader has taken over.
        InvalidSettings: what is written there cannot be understood.
        NotFound: there is no such batch.
        StoreError: the store did not answer.
    """
    path = f"{checkpoint}/offsets/{number}"
    try:
        found = contents.offsets(read_small(renames, path))
    except contents.Unreadable as error:
        raise InvalidSettings(f"When batch {number} was is not known: {path} cannot be read. {error}") from error
    return Moment(found.watermark_ms, found.time_ms)


def read_small(renames: FencedRename, path: str) -> bytes:
    """Read a file of a checkpoint.

    Raises:
        Fenced: another leader has taken over.
        NotFound: there is none.
        StoreError: the store did not answer.
    """
    try:
        return renames.do(lambda files: files.read(path, MOST))
    except NotFound:
        renames.check()
        raise
