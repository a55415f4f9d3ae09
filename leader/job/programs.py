"""Programs: a job's command and files, as numbered versions in the leader directory. The newest one counts.

A version never changes: its number is a name that is taken once. It names its files by their SHA-256, and they are
stored before it, so a reader of a version finds all of it. A roll-back is a new version with an old one's content.
Operators write versions and sidecars read them; a claim moves both along.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from leader.errors import Fenced, Unreadable
from leader.job.fenced_directory import FencedDirectory
from leader.job.versioned_files import VersionedFiles
from leader.layout.names import FILES, PROGRAMS
from store.errors import Conflict, Invalid, StoreError

MIB = 1 << 20

MOST_BYTES = 64 * MIB  # of a file, which one call moves; bigger ones belong into a package or an image of the host

MOST_FILES = 100

KEPT = 10  # newest versions that stay
ATTEMPTS = 5  # tries to take the next number while other operators do


class ProgramFile(msgspec.Struct, frozen=True):
    """One file of a program."""

    name: str  # in the working directory of the command
    sha256: str  # of its content, in hexadecimal digits
    size: int  # in bytes
    executable: bool = False  # whether it can be executed


class Program(msgspec.Struct, frozen=True):
    """One version of what a job runs."""

    command: list[str]  # program and arguments
    environment: dict[str, str] = {}  # variables for the command, beside those of its host
    files: list[ProgramFile] = []  # in the command's working directory
    version: int = 0  # its number; 0 for a command that was never stored
    by: str = ""  # who has stored it, for people
    at: int = 0  # when, in seconds since 1970 by that one's wall clock, for people
    same_as: int = 0  # the version to which this one rolls back; 0 if it is none that does
    checked: bool = False  # whether a dry run has shown that it fits the job's checkpoints, before it was stored

    def runs_like(self, other: "Program") -> bool:
        """Whether the other one is the same but for who has stored it."""
        return (self.command, self.environment, self.files) == (other.command, other.environment, other.files)


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(data).hexdigest()


class Programs:
    """The stored programs of one job."""

    # Fenced: another leader has claimed the directory, so it has to be looked for again.

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory
        self._versions = VersionedFiles(directory, PROGRAMS, "a program")
        self._files = VersionedFiles(directory, FILES, "a file of a program", MOST_BYTES)

    def numbers(self) -> list[int]:
        """Return the numbers of the versions, the newest one last."""
        return sorted(int(name) for name in self._versions.versions() if name.isdecimal())

    def newest(self, known: Program | None = None) -> Program | None:
        """Return the newest version; None if no program was ever stored. If it is the known one, that is one list."""
        numbers = self.numbers()
        if known is not None and numbers and numbers[-1] == known.version:
            return known
        return self.load(numbers[-1]) if numbers else None

    def load(self, number: int) -> Program | None:
        """Return a version; None if there is none of that number (any more).

        Unreadable if it is damaged, or from another version.
        """
        found = self._versions.load(f"{number}")
        try:
            return msgspec.json.decode(found.data, type=Program) if found is not None else None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(
                f"Version {number} of the program of job {self._directory.job!r} cannot be read: {error}. Store it "
                f"again with `ha job submit {self._directory.job} -- COMMAND`."
            ) from error

    def read(self, program: Program, file: ProgramFile) -> bytes:
        """Return a file's content as it was stored; Unreadable if it is damaged, or gone."""
        found = self._files.load(file.sha256)
        if found is None or digest(found.data) != file.sha256:
            raise Unreadable(
                f"File {file.name} of version {program.version} of the program of job {self._directory.job!r} is "
                f"{'damaged' if found is not None else 'missing'}: store the program again "
                f"with `ha job submit {self._directory.job} -- COMMAND`."
            )
        return found.data

    def add(self, program: Program, contents: Mapping[str, bytes]) -> Program:
        """Store the next version; returns the newest one instead if that is the same. Invalid if there is too much.

        ``contents`` are files by their SHA-256; not needed for those that are stored, unless they are damaged.
        """
        if len(program.files) > MOST_FILES:
            raise Invalid(f"The program has {len(program.files)} files, and {MOST_FILES} are allowed: make an archive.")
        numbers = self.numbers()
        newest = self.load(numbers[-1]) if numbers else None
        self._put_files(contents)
        if newest is not None and newest.runs_like(program):
            return newest
        number = numbers[-1] if numbers else 0
        for _ in range(ATTEMPTS):
            number += 1
            stored = msgspec.structs.replace(program, version=number)
            with suppress(Conflict):  # another operator has taken that number
                self._versions.put(f"{number}", msgspec.json.encode(stored), 0)
                self._forget([*numbers, number])
                return stored
        raise Conflict(f"Other operators keep storing programs of job {self._directory.job!r}: submit it again.")

    def _put_files(self, contents: Mapping[str, bytes]) -> None:
        there = self._files.versions()
        for sha256, data in contents.items():
            if len(data) > MOST_BYTES:
                raise Invalid(f"A file has {len(data) / MIB:,.0f} MiB, and {MOST_BYTES // MIB} are allowed.")
            if sha256 not in there or (found := self._files.load(sha256)) is None or found.data != data:
                self._files.put(sha256, data)

    def _forget(self, numbers: list[int]) -> None:
        old, kept = numbers[:-KEPT], numbers[-KEPT:]
        with suppress(StoreError, Fenced, Unreadable):
            if not old:
                return
            needed = {file.sha256 for number in kept if (program := self.load(number)) for file in program.files}
            for number in old:
                self._versions.delete(f"{number}")
            for sha256 in self._files.versions():
                if sha256 not in needed:
                    self._files.delete(sha256)
