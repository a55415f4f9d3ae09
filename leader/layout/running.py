"""Running: what a leader runs, and a standby that would run something else, as names in the leader directory.

    runs=<what>
    would=<contender>~<what>        <what> is <digest>~<escaped program>~<escaped file system>
    would=<contender>~<what>~<escaped name of that file system in the job's checkpoints>

Two sidecars of one job with two commands, or with two file systems for paths that name none, look like a job and its
standby until one takes over from the other. The command itself is not written: it may hold passwords.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence

import msgspec

from leader.errors import InvalidName
from leader.layout.names import RUNS, WOULD, escape, unescape
from store.files import MAX_COMPONENT_BYTES

_DIGITS = 12
_WHAT = rf"([0-9a-f]{{{_DIGITS}}})~([A-Za-z0-9._-]*)~([A-Za-z0-9._-]*)"
_RUNS = re.compile(RUNS + _WHAT)
_WOULD = re.compile(rf"{WOULD}([A-Za-z0-9][A-Za-z0-9._-]{{0,63}})~{_WHAT}(?:~([A-Za-z0-9._-]+))?")
_PROGRAM = re.compile(r"\.(py|jar|R)$")


class Running(msgspec.Struct, frozen=True):
    """What one contender runs, or would run.

    Attributes:
        digest: of the command's words.
        program: its name, for people; empty if it is too long.
        files: where paths are that name no file system (``fs.defaultFS``); empty if that is not known.
        sources: what the file sources in the job's checkpoints call that place, if it is another name of it.
    """

    digest: str
    program: str
    files: str
    sources: str = ""

    @classmethod
    def of(cls, command: Sequence[str], files: str, own: Sequence[str] = ()) -> "Running":
        """Describe a command; one that is stored with the job is the same in all places, and has no words.

        Args:
            command: its words.
            files: where paths are that name no file system.
            own: names of the host and the contender: where a word has one of them, another host has its own.
        """
        names = sorted(filter(None, set(own)), key=len, reverse=True)
        mine = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?![\w.-])")
        words = [mine.sub("\0", word) for word in command] if names else command
        digest = hashlib.sha256("\0\0".join(words).encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
        names = [word.rpartition("/")[2] for word in command]
        program = next(filter(_PROGRAM.search, names), names[0] if names else "the stored program")
        return cls(digest, program.encode(errors="replace").decode(), files)

    def entry(self, contender: str = "") -> str:
        """Return the name that says that the leader runs it, or what a contender would run."""
        fixed = f"{WOULD}{contender}~{self.digest}" if contender else f"{RUNS}{self.digest}"
        name = f"{fixed}~{escape(self.program)}~{escape(self.files)}"
        if contender and self.sources:
            name = f"{name}~{escape(self.sources)}"
        return name if len(name) <= MAX_COMPONENT_BYTES else f"{fixed}~~"

    def differs(self, other: "Running") -> bool:
        """Whether a takeover by the other one would change what the job does, or where."""
        elsewhere = self.files and other.files and self.files != other.files
        return self.digest != other.digest or bool(elsewhere or other.sources)


def runs(names: Iterable[str]) -> Running | None:
    """Return what the leader runs, by the names in a leader directory; None if that is not known."""
    return next(
        (found for each in names if (match := _RUNS.fullmatch(each)) and (found := _read(*match.groups()))), None
    )


def others(names: Iterable[str]) -> dict[str, Running]:
    """Return what contenders would run instead, by contender."""
    matches = filter(None, map(_WOULD.fullmatch, names))
    return {match[1]: found for match in matches if (found := _read(*match.groups()[1:]))}


def contradiction(contender: str, would: Running, leads: Running) -> str:
    """Return a sentence on a standby that would run something else than the leader does, without a full stop."""
    if would.digest != leads.digest:
        theirs = would.program or "a program with a long name"
        ours = "another one of that name, or with other words" if would.program == leads.program else leads.program
        return (
            f"{contender} would run another command than the leader: {theirs}, where {ours or 'another one'} runs now. "
            "If it takes over, that changes what the job does"
        )
    if would.files == leads.files:
        return (
            f"{contender} looks for paths that name no file system on {would.files}, and the checkpoints have read "
            f"their files from {would.sources}, the same NameNode: Spark goes on there only if the program names it so "
            f"itself. Set fs.defaultFS to {would.sources} there"
        )
    return (
        f"{contender} looks for paths that name no file system on {would.files}, the leader on {leads.files}: Spark "
        "does not go on from a checkpoint whose sources it finds elsewhere. Set fs.defaultFS to the same there"
    )


def _read(digest: str, program: str, files: str, sources: str | None = None) -> Running | None:
    try:
        return Running(digest, unescape(program), unescape(files), unescape(sources or ""))
    except InvalidName:
        return None
