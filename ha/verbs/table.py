"""The table of verbs that operators ask a job's leader for, or have a process carry out for the job.

The command line, the HTTP API with its document, the validation and the sidecar read it.
"""

from typing import Annotated, Any

import msgspec

from ha.verbs.places import LONGEST, LONGEST_S
from leader.job.excluded import MOST_HOSTS
from leader.job.status import Status

STOP, CANCEL, RESTART = "stop", "cancel", "restart"
SAVEPOINT, STOP_WITH_SAVEPOINT, RESTART_FROM = "savepoint", "stop-with-savepoint", "restart-from"
RESTART_QUERY = "restart-query"
PAUSE, RESUME = "pause", "resume"

QUERY, EXCLUDE = "query", "exclude"
"""Arguments that the sidecar reads: a query's name, and hosts that executors keep off from then on."""

_URI = "(file|hdfs|webhdfs|swebhdfs)://(.*/)?[^_/\n][^/\n]*/*"
_WORD = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

Word = Annotated[str, msgspec.Meta(pattern=rf"^{_WORD}\Z")]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_S)]
Host = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,198}[A-Za-z0-9])?\Z")]
Hosts = Annotated[list[Host], msgspec.Meta(max_length=MOST_HOSTS)]
Batch = Annotated[int, msgspec.Meta(ge=0)]
Outputs = Annotated[str, msgspec.Meta(pattern=r"^(aside|keep)\Z")]


def _shown(pattern: str) -> msgspec.Meta:
    """A pattern for the document; what does not match is refused later, with a sentence about it."""
    return msgspec.Meta(extra_json_schema={"pattern": rf"^({pattern})\Z", "maxLength": LONGEST})


Uri = Annotated[str, _shown(_URI)]
Name = Annotated[str, _shown(_WORD)]


class NoArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The verb takes none. Other verbs' arguments are fields of a class that is derived from this one."""


class PauseArguments(NoArguments, frozen=True):
    """The reason is for people: as many characters as fit into the name of an entry."""

    reason: Annotated[str, msgspec.Meta(pattern=r"^[ -~]{0,56}\Z")] = ""


class RestartArguments(NoArguments, frozen=True):
    """Hosts that executors keep off from then on."""

    exclude: Hosts = []


class SavepointArguments(NoArguments, frozen=True):
    """Where the savepoint is to be, if not among the job's own, and seconds that it may take."""

    to: Uri | None = None
    timeout: Seconds | None = None


class PartialArguments(SavepointArguments, frozen=True):
    """``partial`` to leave out queries that have completed no batch; else it waits for their first one."""

    partial: bool = False


class StopArguments(SavepointArguments, frozen=True):
    """As for a savepoint; ``drain`` to process all that there is first."""

    drain: bool = False


class FromArguments(RestartArguments, frozen=True, kw_only=True, rename={"savepoint": "from"}):
    """The savepoint: its URI, or its name among the job's own; ``discard_newer`` even if the job has done more."""

    savepoint: Annotated[str, _shown(f"{_URI}|{_WORD}")]
    discard_newer: bool = False


class QueryArguments(NoArguments, frozen=True):
    """Name of the query."""

    query: Name


class RewindArguments(QueryArguments, frozen=True, kw_only=True):
    """The query, and the newest batch that it has done then; ``undo`` instead undoes the last rewind."""

    to: Batch | None = None
    outputs: Outputs | None = None
    undo: bool = False
    dry_run: bool = False


class SeekArguments(QueryArguments, frozen=True, kw_only=True):
    """The query, the time or the offsets where it goes on, and Kafka's brokers."""

    to: Annotated[str, msgspec.Meta(min_length=1, max_length=1 << 20)]
    kafka: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9.:,\[\]_-]+\Z", max_length=LONGEST)]
    outputs: Outputs | None = None
    dry_run: bool = False


class RescaleArguments(QueryArguments, frozen=True, kw_only=True):
    """The query, and its new number of state partitions."""

    partitions: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    deep: bool = False
    redo_begun: bool = False
    dry_run: bool = False


class SweepArguments(NoArguments, frozen=True):
    """``undo`` puts back what the last sweep has moved; ``remove`` takes whole checkpoints of queries, too."""

    dry_run: bool = False
    undo: bool = False
    remove: Annotated[list[Name], msgspec.Meta(max_length=100)] = []


class PromoteArguments(NoArguments, frozen=True):
    """``old_files`` is the root of the job at the old side, if it can be reached; ``force`` even if it runs there."""

    old_files: Uri | None = None
    replace: bool = False
    dry_run: bool = False
    force: bool = False


class HandoverArguments(NoArguments, frozen=True):
    """The contender that leads next; without one, any standby."""

    to: Word | None = None


class MoveArguments(NoArguments, frozen=True):
    """The root of the group, by its URI or nameservice; ``undo`` puts back a move that was interrupted."""

    to: Annotated[str, msgspec.Meta(pattern=r"^[!-~]+\Z", max_length=LONGEST)] | None = None
    undo: bool = False


class Verb(msgspec.Struct, frozen=True):
    """One verb."""

    does: str  # one sentence for people, as the command line and the document of the API have it
    command: str  # words of the command line that does the same, with the options that choose it
    takes: type[NoArguments] = NoArguments  # its arguments
    undo: str = ""  # a sentence: what undoes it, with fields such as ``{job}``; empty if nothing does, or need be
    at_once: bool = False  # it needs no leader: the change of the lease is all that there is to do
    # it needs a lead, not a leader: the command line leads the job itself, in a process of its own
    own_process: bool = False
    # it means the same to each leader: it is kept for the next one if the present one does not accept it
    kept: bool = False
    saves: bool = False  # it takes or reads a savepoint: a cancel may overtake it, and others of its kind wait
    ends: Status | None = None  # the state in which it leaves a job that it ends
    asks: bool = False  # the command line asks before it changes anything


RUN_AGAIN = "`ha run --again {job}`, with its COMMAND if none is stored, runs it again"
PUT_BACK = "`ha checkpoint rewind {job} {query} --undo` undoes it"

VERBS = {
    STOP: Verb(
        "Stop the job in an orderly way: it has FINISHED.", "job stop", undo=RUN_AGAIN, kept=True, ends=Status.FINISHED
    ),
    CANCEL: Verb(
        "Cancel the job, also if its leader ends meanwhile.",
        "job cancel",
        undo=RUN_AGAIN,
        kept=True,
        ends=Status.CANCELED,
    ),
    RESTART: Verb(
        "Start the command again, on the same host and in the same epoch.",
        "job restart",
        takes=RestartArguments,
        undo="`ha job restart {job}`, without --exclude, lets executors run on all hosts again",
        kept=True,
    ),
    RESTART_QUERY: Verb(
        "Start a declared query again, with those that it is connected to.", "job restart --query", takes=QueryArguments
    ),
    RESTART_FROM: Verb(
        "Start the command again from a savepoint.",
        "job restart --from",
        takes=FromArguments,
        undo="`ha trash restore {job} --query {query}` brings a former checkpoint back, once the job is stopped",
        saves=True,
    ),
    SAVEPOINT: Verb(
        "Take a savepoint; the job goes on.",
        "savepoint take",
        takes=PartialArguments,
        undo="`ha savepoint dispose {job} {where}` deletes it",
        saves=True,
    ),
    STOP_WITH_SAVEPOINT: Verb(
        "Stop the job, and take a savepoint of it.",
        "job stop --savepoint",
        takes=StopArguments,
        undo=RUN_AGAIN,
        saves=True,
    ),
    PAUSE: Verb(
        "Pause the job: its leader stays, and no process takes over.",
        "job pause",
        takes=PauseArguments,
        undo="`ha job resume {job}` ends the pause",
        at_once=True,
    ),
    RESUME: Verb("End the pause of the job.", "job resume", undo="`ha job pause {job}` pauses it", at_once=True),
    "handover": Verb(
        "Have the leader hand over to a standby, and wait until that one leads.",
        "job handover",
        takes=HandoverArguments,
        undo="`ha job handover {job} --to {before}` hands it back",
        own_process=True,
    ),
    "rewind": Verb(
        "Put a stopped query back to a batch, with its outputs.",
        "checkpoint rewind",
        takes=RewindArguments,
        undo=PUT_BACK,
        own_process=True,
        asks=True,
    ),
    "seek": Verb(
        "Let a stopped query go on at other offsets of its Kafka topics, with its state.",
        "checkpoint seek",
        takes=SeekArguments,
        undo=PUT_BACK,
        own_process=True,
        asks=True,
    ),
    "rescale": Verb(
        "Give the state of a stopped query another number of partitions.",
        "checkpoint rescale",
        takes=RescaleArguments,
        undo=PUT_BACK,
        own_process=True,
        asks=True,
    ),
    "sweep": Verb(
        "Move what no retained batch can refer to into the trash.",
        "checkpoint sweep",
        takes=SweepArguments,
        undo="`ha checkpoint sweep {job} --undo` brings it back",
        own_process=True,
    ),
    "promote": Verb(
        "Make the replica of the job, below this root, the job.",
        "replica promote",
        takes=PromoteArguments,
        own_process=True,
        asks=True,
    ),
    "move": Verb(
        "Move the job to another root of its group.",
        "job move",
        takes=MoveArguments,
        undo="`ha job move {job} --to {before}` moves it back, 30 minutes later",
        own_process=True,
    ),
}
"""By name. A leader of an earlier version refuses a verb that it does not know, and overlooks an argument."""

OF_LEADER = {name: verb for name, verb in VERBS.items() if not verb.own_process}
"""What is asked of a leader, or of the lease, and answered by a request."""

OF_PROCESS = {name: verb for name, verb in VERBS.items() if verb.own_process}  # what a process of its own does


def texts(arguments: NoArguments) -> dict[str, str]:
    """Return arguments as a request keeps them: texts, and none that says nothing."""
    given = {name: value for name, value in msgspec.to_builtins(arguments).items() if value not in (None, "", False)}
    return {name: _text(value) for name, value in given.items()}


def _text(value: Any) -> str:
    if value is True:
        return "yes"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
