"""What a reader answers, and what one look of a watch found."""

from collections.abc import Mapping

import msgspec

from leader.retrieval import Known, Source


class Answer(msgspec.Struct, frozen=True):
    """Who leads a job.

    Attributes:
        job: the job's name.
        epoch: orders answers; it never goes back.
        session_id: the leader session's UUID, the version of the answer.
        endpoints: address by name.
        source: where the answer comes from.
        age: seconds since a store said so.
        verified: whether HDFS has said the same.
        stale: whether no store could be reached, and this is the last that was known.
    """

    job: str
    epoch: int
    session_id: str
    endpoints: Mapping[str, str]
    source: Source
    age: float
    verified: bool
    stale: bool = False


class Look(msgspec.Struct, frozen=True):
    """What one look found; see :meth:`leader.reader.Reader.looks`.

    Attributes:
        started: boot-clock seconds before anybody was asked.
        answer: None if there is no leader, or nobody answered.
        reached: whether somebody answered.
        known: what the reader knows after it; None if it knows nothing of such a job.
    """

    started: float
    answer: Answer | None
    reached: bool
    known: Known | None
