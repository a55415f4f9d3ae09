"""Asked: the body of a POST that asks a job's leader for something: one type a verb, with that verb's arguments."""

from typing import Annotated, TypeAlias

import msgspec

from ha.sidecar.operator_requests import EXCLUDE
from ha.spark.savepoints.arguments import LONGEST, LONGEST_S
from leader.job.excluded import MOST_HOSTS, text_of

_URI = "(file|hdfs|webhdfs|swebhdfs)://(.*/)?[^_/\n][^/\n]*/*"
_WORD = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

Word = Annotated[str, msgspec.Meta(pattern=rf"^{_WORD}\Z")]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_S)]
Host = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,198}[A-Za-z0-9])?\Z")]
Hosts = Annotated[list[Host], msgspec.Meta(max_length=MOST_HOSTS)]


def _shown(pattern: str) -> msgspec.Meta:
    """A pattern for the document; what does not match is refused later, with a sentence about it."""
    return msgspec.Meta(extra_json_schema={"pattern": rf"^({pattern})\Z", "maxLength": LONGEST})


# --- arguments


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class NoArguments(_Arguments, frozen=True):
    """The verb takes none."""


class RestartArguments(_Arguments, frozen=True):
    """Hosts that executors keep off from then on."""

    exclude: Hosts = []


class SavepointArguments(_Arguments, frozen=True):
    """Where the savepoint is to be, if not among the job's own, and seconds that it may take."""

    to: Annotated[str, _shown(_URI)] | None = None
    timeout: Seconds | None = None


class StopArguments(SavepointArguments, frozen=True):
    """As for a savepoint; ``drain`` to process all that there is first."""

    drain: bool = False


class FromArguments(RestartArguments, frozen=True, kw_only=True, rename={"savepoint": "from"}):
    """The savepoint: its URI, or its name among the job's own; ``discard_newer`` even if the job has done more."""

    savepoint: Annotated[str, _shown(f"{_URI}|{_WORD}")]
    discard_newer: bool = False


class QueryArguments(_Arguments, frozen=True):
    """Name of the query."""

    query: Annotated[str, _shown(_WORD)]


class ExecutorsArguments(_Arguments, frozen=True):
    """The number of executors."""

    executors: Annotated[float, msgspec.Meta(ge=1, le=9999, multiple_of=1)]  # 3.0 is a whole number in JSON


# --- verbs


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="verb"):
    """The id of an earlier request returns that one and asks for nothing new; without one the request is new."""

    id: Word | None = None

    @property
    def verb(self) -> str:
        return str(self.__struct_config__.tag)


class Stop(_Asked, frozen=True, tag="stop"):
    """As ``ha stop``."""

    arguments: NoArguments = NoArguments()


class Cancel(_Asked, frozen=True, tag="cancel"):
    """As ``ha cancel``."""

    arguments: NoArguments = NoArguments()


class Pause(_Asked, frozen=True, tag="pause"):
    """As ``ha pause``. The reason is for people: as many characters as fit into the name of an entry."""

    arguments: NoArguments = NoArguments()
    reason: Annotated[str, msgspec.Meta(pattern=r"^[ -~]{0,56}\Z")] = ""


class Resume(_Asked, frozen=True, tag="resume"):
    """As ``ha resume``."""

    arguments: NoArguments = NoArguments()


class Restart(_Asked, frozen=True, tag="restart"):
    """As ``ha restart``."""

    arguments: RestartArguments = RestartArguments()


class Savepoint(_Asked, frozen=True, tag="savepoint"):
    """As ``ha savepoint``."""

    arguments: SavepointArguments = SavepointArguments()


class StopWithSavepoint(_Asked, frozen=True, tag="stop-with-savepoint"):
    """As ``ha stop --savepoint``."""

    arguments: StopArguments = StopArguments()


class RestartFrom(_Asked, frozen=True, tag="restart-from"):
    """As ``ha restart --from``."""

    arguments: FromArguments


class RestartQuery(_Asked, frozen=True, tag="restart-query"):
    """As ``ha restart --query``."""

    arguments: QueryArguments


class RescaleExecutors(_Asked, frozen=True, tag="rescale-executors"):
    """As ``ha rescale --executors``."""

    arguments: ExecutorsArguments


Asked: TypeAlias = (
    Stop
    | Cancel
    | Pause
    | Resume
    | Restart
    | Savepoint
    | StopWithSavepoint
    | RestartFrom
    | RestartQuery
    | RescaleExecutors
)


def texts(asked: Asked) -> dict[str, str]:
    """Return the arguments as the command line gives them: texts, and none that says nothing."""
    given = msgspec.to_builtins(asked.arguments)
    return {name: _text(name, value) for name, value in given.items()}


def _text(name: str, value: object) -> str:
    if name == EXCLUDE:
        assert isinstance(value, list)
        return text_of(value)
    if value is True:
        return "yes"
    return f"{value:g}" if isinstance(value, float) else str(value)
