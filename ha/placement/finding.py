"""Finding: asks the roots of a group where a job lies, within a deadline: its home first, and where that points to.

If that leads nowhere, or a root on the way is silent, all others are asked: at most one has a leader directory.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ha.placement.place import home_of, pointer_in
from leader.layout import tree
from leader.layout.names import LeaderDirectory, candidates
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import Invalid, NotFound, NotSent, StoreError
from store.files import Entry, Files


@dataclass
class Found:
    """The answers of the roots about one job."""

    root: str = ""  # where it lies; empty if it was not found
    entries: list[Entry] = field(default_factory=list)  # of its directory there
    # Roots that have a directory of that name without a leader directory, in the order in which they were asked; the
    # job was there, or is on its way.
    present: list[str] = field(default_factory=list)
    pointed: str = ""  # the root to which the newest of them points; empty if none does
    failure: StoreError | None = None  # why a root did not answer; None if all that were asked have answered


def find(roots: Mapping[str, BoundedFiles], job: str, deadline: float, first: str = "") -> Found:
    """Ask where a job lies: ``first`` a root that is given, or the job's home."""
    # A root that hangs takes a part of the time until the deadline. Invalid: the job lies at none of these roots.
    found, asked, sequence = Found(), list[str](), 0
    home = home_of(roots, job)
    wanted = [root for root in (first, home) if root]
    while len(asked) < len(roots):
        root = next((each for each in wanted if each not in asked), "")
        root = root or next(each for each in roots if each not in asked)
        asked.append(root)
        answer = _ask(found, roots[root], job, (deadline - now()) / (len(roots) - len(asked) + 2))
        if answer is None:
            continue
        entries, leads = answer
        if leads:
            found.root, found.entries = root, entries
            return found
        found.entries = [each for each in entries if LeaderDirectory.parse(each.name) is None]
        found.present.append(root)
        pointer = pointer_in(each.name for each in entries)
        if pointer is not None and pointer.sequence > sequence:
            if pointer.root not in roots:
                raise Invalid(f"Job {job!r} lies at {pointer.root}, which is no root of this group: add it to `files`.")
            sequence, found.pointed = pointer.sequence, pointer.root
            wanted.insert(0, pointer.root)
    return found


def _ask(found: Found, files: BoundedFiles, job: str, timeout: float) -> tuple[list[Entry], bool] | None:
    """Return the entries of the job's directory at a root, and whether it lies there; None without one or an answer."""

    def ask(driver: Files) -> tuple[list[Entry], bool]:
        entries = driver.list(job)
        return entries, holds(driver, job, [each.name for each in entries])

    try:
        return files.call("place", ask, timeout)
    except NotFound:
        return None
    except StoreError as error:
        found.failure = found.failure or error
        return None


def holds(files: Files, job: str, names: Collection[str]) -> bool:
    """Whether a job lies where its directory holds these names: one list more if it has moved away from here before."""
    # Then a driver of an old leader may have made its leader directory again, without a lease, as a missing parent.
    found = candidates(list(names))
    return bool(found) and (pointer_in(names) is None or any(tree.holds_a_lease(files, job, each) for each in found))


def missing(found: Found, job: str, roots: Mapping[str, BoundedFiles]) -> StoreError:
    """Return the error for a job that was not found: there is none only if every root says so."""
    if found.failure is not None:
        return NotSent(f"Where job {job!r} lies is not known, because a root does not answer: {found.failure}")
    if found.present:
        return NotFound(f"Job {job!r} holds no leader directory at {found.present[0]}: it is being moved.")
    return NotFound(f"There is no job {job!r} under any of {', '.join(roots)}.")
