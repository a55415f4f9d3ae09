"""Plan: what a rewind does, written down before it is decided, so that any leader can complete it. Pure.

<leader directory>/rewinding/<query>/to-<batch>/     being prepared: the plan and a copy; the query is untouched
<leader directory>/rewinding/<query>/decided/        one rename of it: the query resumes from there
    plan                                             this file
    tree/                                            the checkpoint after the batch; of an undo it is in back
    back/                                            what an undo takes out of the trash
    apart                                            everything that goes into the trash is there
<leader directory>/trash/<trash>/rewound=<query>/    what was there before
    plan
    checkpoint/
    <output>/<batch>/<number>                        a partition of a batch; its number is that in the record
    <output>/<batch>/ready or done                   the batch's folder in the journal, with its record
"""

import msgspec

from store.errors import Invalid

PLAN, TREE, BACK, APART, CHECKPOINT, DECIDED = "plan", "tree", "back", "apart", "checkpoint", "decided"

FORMAT = 1


class RewoundOutput(msgspec.Struct, frozen=True):
    """The fate of one output."""

    name: str  # given by the program
    folder: str  # of its journal, below `out`
    target: str  # path of the directory in which its batches appear
    stays: int  # newest id that stays; batches with higher ones go into the trash
    lines: list[str]  # the names `line=...` that the journal has afterwards
    before: list[str]  # those that it has now, for an undo


class RewindPlan(msgspec.Struct, frozen=True):
    """One rewind, or the undo of one."""

    query: str  # its name
    batch: int | None  # newest batch that the query has committed afterwards; None if it had committed none
    trash: str  # name of the folder in the trash
    epoch: int  # of the leader that decided it
    number: int  # higher than that of every plan of the query that lies in the trash: an undo is of the newest
    outputs: list[RewoundOutput]  # those that follow
    back: str = ""  # name of the folder in the trash that an undo takes back; empty for a rewind
    format: int = FORMAT  # of this file and of what is beside it


def encoded(plan: RewindPlan) -> bytes:
    """Return the file."""
    return msgspec.json.encode(plan)


def decoded(data: bytes) -> RewindPlan:
    """Read the file; ``Invalid`` if it is none, or that of a later version of this package."""
    try:
        found = msgspec.json.decode(data, type=RewindPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"The plan of a rewind says something else ({error}).") from error
    if found.format != FORMAT:
        raise Invalid(f"The plan of a rewind has format {found.format}: this version of the package reads {FORMAT}.")
    return found
