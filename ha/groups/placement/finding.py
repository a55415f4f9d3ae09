"""Finding: asks the roots of a group where a job lies, within a deadline: its home first, and where that points to.

Only if that leads nowhere, or a root on the way does not answer, are all others asked: at most one of them holds a
leader directory of the job.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ha.groups.placement.place import home_of, pointer_in
from leader.layout import tree
from leader.layout.names import LeaderDirectory, candidates
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import Invalid, NotFound, NotSent, StoreError
from store.files import Entry, Files


class Found:
    """The answers of the roots about one job.

    Attributes:
        root: where it lies; empty if it was not found.
        entries: of its directory there.
        present: roots that have a directory of that name without a leader directory, in the order in which they were
            asked; the job was there, or is on its way.
        pointed: the root to which the newest of them points; empty if none does.
        failure: why a root did not answer; None if all that were asked have answered.
    """

    def __init__(self) -> None:
        self.root = ""
        self.entries: list[Entry] = []
        self.present: list[str] = []
        self.pointed = ""
        self.failure: StoreError | None = None


def find(roots: Mapping[str, BoundedFiles], job: str, deadline: float, first: str = "") -> Found:
    """Ask where a job lies.

    Args:
        roots: of the group, by their URIs.
        job: its name.
        deadline: boot-clock seconds; a root that hangs takes a part of what is left.
        first: the root that is asked first; empty for the job's home.

    Raises:
        Invalid: it lies at a root that is not one of these.
    """
    found, asked, sequence = Found(), list[str](), 0
    home = home_of(roots, job)
    wanted = [root for root in (first, home) if root]
    while len(asked) < len(roots):
        root = next((each for each in wanted if each not in asked), "")
        root = root or next(each for each in roots if each not in asked)
        asked.append(root)
        names = _ask(found, roots[root], job, (deadline - now()) / (len(roots) - len(asked) + 2))
        if names is None:
            continue
        if names.leads:
            found.root = root
            return found
        found.present.append(root)
        pointer = pointer_in(names.all)
        if pointer is not None and pointer.sequence > sequence:
            if pointer.root not in roots:
                raise Invalid(f"Job {job!r} lies at {pointer.root}, which is no root of this group: add it to `files`.")
            sequence, found.pointed = pointer.sequence, pointer.root
            wanted.insert(0, pointer.root)
    return found


class _Names(NamedTuple):
    """The names in a job's directory, and whether the job lies there."""

    all: list[str]
    leads: bool


def _ask(found: Found, files: BoundedFiles, job: str, timeout: float) -> _Names | None:
    """Return the names in the job's directory at a root; None if there is none, or no answer."""

    def ask(driver: Files) -> tuple[list[Entry], bool]:
        entries = driver.list(job)
        return entries, holds(driver, job, [each.name for each in entries])

    try:
        entries, leads = files.call("place", ask, timeout)
    except NotFound:
        return None
    except StoreError as error:
        found.failure = found.failure or error
        return None
    found.entries = entries if leads else [each for each in entries if LeaderDirectory.parse(each.name) is None]
    return _Names([each.name for each in entries], leads)


def holds(files: Files, job: str, names: Collection[str]) -> bool:
    """Whether a job lies where its directory holds these names: one list more if it has moved away from here before.

    Then a driver of an old leader may have made its leader directory once more, as file systems make missing parents:
    without a lease.
    """
    found = candidates(list(names))
    return bool(found) and (pointer_in(names) is None or any(tree.holds_a_lease(files, job, each) for each in found))


def missing(found: Found, job: str, roots: Mapping[str, BoundedFiles]) -> StoreError:
    """Return the error for a job that was not found: there is none only if every root says so."""
    if found.failure is not None:
        return NotSent(f"Where job {job!r} lies is not known, because a root does not answer: {found.failure}")
    if found.present:
        return NotFound(f"Job {job!r} holds no leader directory at {found.present[0]}: it is being moved.")
    return NotFound(f"There is no job {job!r} under any of {', '.join(roots)}.")
