"""Place: the root of a group at which a job lies, as names say it. Pure.

    <root>/<job>/<leader directory>                     the job lies here
    <root>/<job>/moved~<sequence>~<escaped root>        it lies there; the highest sequence is the newest

Each job has a home among the roots, which everybody computes alike. Where it does not lie at home, a pointer there says
so. See decision 61.
"""

import hashlib
import re
from collections.abc import Iterable

import msgspec

from leader.errors import InvalidName
from leader.layout.names import candidates, check_component, escape, unescape
from store.errors import Invalid

SEPARATOR = ","  # between the roots of a group in the setting `files`
HASH, LEAST_JOBS, LEAST_RPC = "hash", "least-jobs", "least-rpc"  # the policies of the setting `placement`
_POINTER = re.compile(r"moved~([1-9][0-9]{0,8})~(.+)")


class Pointer(msgspec.Struct, frozen=True, order=True):
    """A pointer to the root at which a job lies; a later one has a higher sequence."""

    sequence: int
    root: str

    @property
    def name(self) -> str:
        """The entry's name; ``InvalidName`` if the root's URI is too long."""
        return check_component(f"moved~{self.sequence}~{escape(self.root)}", "A pointer to a root")

    @classmethod
    def parse(cls, name: str) -> "Pointer | None":
        """Read a name; None if it is not a pointer's."""
        match = _POINTER.fullmatch(name)
        if match is None:
            return None
        try:
            return cls(int(match[1]), unescape(match[2]))
        except InvalidName:
            return None


def roots_of(files: str) -> list[str]:
    """Return the roots that the setting ``files`` names; more than one is a group."""
    # Invalid: one is missing or named twice, or they are not of one kind.
    roots = [each.strip() for each in files.split(SEPARATOR)]
    if len(roots) == 1:
        return [files]
    if not all(roots) or len(set(roots)) < len(roots):
        raise Invalid(f"{files!r} names a root twice, or has a comma too much: name each root of the group once.")
    if len({each.partition("://")[0] for each in roots}) > 1:
        bare = [each for each in roots if "://" not in each]
        if bare:
            said = f"{bare[0]!r} in {files!r} is no URI"
            raise Invalid(f"A comma separates roots, and {said}: take a path without commas.")
        raise Invalid(f"{files!r} has several schemes: all roots of a group must have the same one.")
    return roots


def home_of(roots: Iterable[str], job: str) -> str:
    """Return the job's home: by rendezvous hashing, so that another root changes the home of few jobs."""
    return max(roots, key=lambda root: hashlib.sha256(f"{root} {job}".encode()).digest())


def lies_here(names: Iterable[str]) -> bool:
    """Whether a job lies where its directory holds these names."""
    return bool(candidates(list(names)))


def pointer_in(names: Iterable[str]) -> Pointer | None:
    """Return the newest pointer among the names in a job's directory; None if there is none."""
    return max(filter(None, map(Pointer.parse, names)), default=None)
