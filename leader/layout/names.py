"""Names: the wire format. Everything that must be true is the name of an entry in HDFS.

    <root>/<job>/
        0000000042-<session id>/          leader directory: epoch and session id
            record/
                lease~<sequence>~<mode>~<ttl ms>~<session id>~<attestation>~<contender>~<successor>~<marks>
                endpoint~<epoch>~<version>~<count>~<name>=<escaped address>
                contact~<epoch>~<session id>~<escaped address>~<port>~<process>
                paused~<seconds since 1970>~<escaped operator>~<escaped reason>
                barred~<contender>~<until, seconds since 1970>~<escaped operator>~<escaped reason>
            checkpoints/next=<id>         counter
            checkpoints/<query>=<batch>~<id>~<writing>~<duration ms>~<rows>~<state rows>~<state bytes>~<offsets>
            status=<state>[~cleaning-<trash>|~cleaned-<trash>][~<sequence>]
            unguarded=<number>~<number>   queries that no takeover goes on with, and those that then repeat rows
            runs=<digest>~<program>~<file system>, would=<contender>~<the same>: see running.py
            history/<epoch>-<session id>~<reason>~<contender>
            spark/<query>/
            graph/graph=<version>[~<sequence>]
            graph/queries=<version>[~<sequence>]
            graph/operators=<version>[~<sequence>]
            graph/attempts=<failures>~<hopeless>~<batches>~<cause>~<host>~<0|1>[~<sequence>]
            graph/waits=<sequence>~<milliseconds>
            blobs/<name>=<version>[~<sequence>]
            results/<id>=<dirty|clean>[~<sequence>]
            exceptions/<number>-<eight hex digits>[=<packed>][~<sequence>]
            requests/<id>=<version>[~<sequence>]
            programs/<number>=<version>[~<sequence>]
            files/<SHA-256>=<version>[~<sequence>]
            staged/<epoch>/<uuid>         a file on its way into one of these
            trash/<trash>/<graph|blobs|spark|out>
            out/<output>/                 journal of an output: see ha/outputs/layout.py
            trash/<trash>/query=<query>
            trash/<trash>/swept=<query>/<escaped path>, trash/<trash>/importing=<query>
            trash/<trash>/revived=<old leader directory>
            importing/<query>/<source>/

Lease, endpoints and contact share one directory so that one list of it is one consistent read of the whole record.
Only ``[A-Za-z0-9._~=-]`` and the escape character ``_`` occur: Hadoop forbids ``:`` in a component, Spark mangles ``%``
and ``,``. A name that does not parse is somebody else's and is ignored; among the checkpoints it is an error. A second
way to write the same (other digits, leading zeros) does not parse either: such a name could be seen, but never renamed.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from leader.errors import InvalidName
from store.files import MAX_COMPONENT_BYTES

RECORD = "record"
HISTORY = "history"
ADOPTED = "adopted"  # the reason of a grant that takes up another process's leadership: its epoch is not a new one
CHECKPOINTS = "checkpoints"
SPARK = "spark"
GRAPH = "graph"
BLOBS = "blobs"
RESULTS = "results"
EXCEPTIONS = "exceptions"
REQUESTS = "requests"
PROGRAMS = "programs"
FILES = "files"
SAVEPOINTS = "savepoints"
RESTORING = "restoring"
REWINDING = "rewinding"
STAGED = "staged"
TRASH = "trash"
REWOUND = "rewound="  # before a query's name in the name of its folder in the trash, after a rewind
OUT = "out"
STATUS = "status="
UNGUARDED = "unguarded="
RUNS = "runs="
WOULD = "would="
FIRST_CHECKPOINT = "next=1"

MAX_WRITING = 9_999  # how often an entry can be written until that is acknowledged; see `written`
RETAINED = 10  # completed checkpoints of a query that are kept, unless a setting says otherwise
EXCEPTIONS_RETAINED = 20  # newest failures of a job that are kept, unless a setting says otherwise

# The number at the end of a name that grows with every change; see `written`.
SEQUENCE = r"(?:~([2-9]|[1-9][0-9]{1,17}))?"

MAX_SEQUENCE = 10**18 - 1

MAX_EPOCH = 9_999_999_999  # ten digits, so that names sort as numbers: one grant a second for three centuries

# No job reaches a higher epoch (a grant a second for three decades): such a directory is made by hand.
MAX_REACHED = 999_999_999

_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SESSION_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LEADER_DIRECTORY = re.compile(rf"([0-9]{{10}})-({_SESSION_ID})")
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")
_UNGUARDED = re.compile(rf"{UNGUARDED}([0-9]{{1,9}})~([0-9]{{1,9}})")
_ESCAPED = re.compile(r"(?:[A-Za-z0-9.-]|_[0-9a-f]{2})*")


def unguarded_in(names: Iterable[str]) -> tuple[int, int]:
    """Return how many queries are not guarded, and not exactly once, by the names in a leader directory."""
    found = (_UNGUARDED.fullmatch(each) for each in names)
    return max(((int(match[1]), int(match[2])) for match in found if match), default=(0, 0))


@lru_cache(maxsize=1024)
def check_job(name: str) -> str:
    """Return a job's name if it is valid, else raise InvalidName."""
    if not _JOB.fullmatch(name):
        raise InvalidName(
            f"{name!r} is not a job name: use 1 to 128 letters, digits, dots, underscores and hyphens, "
            "starting with a letter or a digit."
        )
    return name


def check_word(name: str, what: str) -> str:
    """Return a valid name of an endpoint or a contender (``what``, for the message), else raise InvalidName."""
    if not _WORD.fullmatch(name):
        raise InvalidName(
            f"{name!r} is not a name of {what}: use 1 to 64 letters, digits, dots, underscores and hyphens, "
            "starting with a letter or a digit."
        )
    return name


def check_component(name: str, what: str) -> str:
    """Return the name of an entry if HDFS can hold it, else raise InvalidName, which says ``what`` it stands for."""
    if len(name.encode()) > MAX_COMPONENT_BYTES:
        raise InvalidName(
            f"{what} is too long: its name in the file system takes {len(name.encode())} bytes and "
            f"{MAX_COMPONENT_BYTES} are allowed."
        )
    return name


def with_reason(fixed: str, reason: str) -> str:
    """Return the name of an entry that ends with an operator's reason; InvalidName if it is too long or unprintable."""
    if not reason.isprintable():
        raise InvalidName("The reason has characters that cannot be shown: give it in one line.")
    escaped = escape(reason)
    if len(fixed) + len(escaped) > MAX_COMPONENT_BYTES:
        raise InvalidName(
            f"The reason is too long: it takes {len(escaped)} bytes, and {MAX_COMPONENT_BYTES - len(fixed)} are "
            "allowed. A letter takes one byte, any other character three or more."
        )
    return fixed + escaped


def escape(text: str) -> str:
    """Write any text with ``[A-Za-z0-9._-]`` only, for :func:`unescape`; InvalidName for a lone surrogate."""
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidName(f"{text!r} cannot be written as UTF-8: remove the lone surrogate.") from error
    return "".join(chr(byte) if byte in _SAFE else f"_{byte:02x}" for byte in raw)


def unescape(escaped: str) -> str:
    """Undo :func:`escape`; InvalidName for any other text."""
    if not _ESCAPED.fullmatch(escaped):
        raise InvalidName(f"{escaped!r} is not an escaped name.")
    raw = re.sub(rb"_([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), escaped.encode())
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidName(f"{escaped!r} is not an escaped name: it does not hold UTF-8.") from error
    if escape(text) != escaped:
        raise InvalidName(f"{escaped!r} is not an escaped name: it escapes what needs no escape.")
    return text


def written(entry: str, writing: int) -> str:
    """The name of an entry that says the same as ``entry``, but was written once more.

    A NameNode can list what its journal will never have. An entry that is listed but was never acknowledged is
    confirmed by a rename to another name for it: that is acknowledged only if the entry is there to stay. ``writing``
    goes from 1 to :data:`MAX_WRITING`, then from 1 again; or it is the entry's sequence.
    """
    return f"{entry}~{writing}" if writing > 1 else entry


def is_session_id(text: str) -> bool:
    """Whether the text is a UUID in its canonical lower-case form."""
    return re.fullmatch(_SESSION_ID, text) is not None


class LeaderDirectory(msgspec.Struct, frozen=True, order=True):
    """The directory that holds a job's state; its name is the epoch and the session id of its leader."""

    epoch: int
    session_id: str

    @property
    def name(self) -> str:
        """The entry's name."""
        return f"{self.epoch:010d}-{self.session_id}"

    @classmethod
    def parse(cls, name: str) -> "LeaderDirectory | None":
        """Read a name; None if it is not a leader directory's."""
        match = _LEADER_DIRECTORY.fullmatch(name)
        return cls(int(match[1]), match[2]) if match else None


def candidates(names: "list[str]") -> list[LeaderDirectory]:
    """Return what may be the leader directory, the highest epoch first, among the names in a job's directory."""
    # There is one, unless somebody made others by hand: a claim renames the leader directory and leaves nothing behind.
    found = (directory for name in names if (directory := LeaderDirectory.parse(name)) is not None)
    return sorted((each for each in found if each.epoch <= MAX_REACHED), reverse=True)


def newest(names: "list[str]") -> LeaderDirectory | None:
    """Pick the candidate of the highest epoch; None if there is none."""
    return next(iter(candidates(names)), None)
