"""Policies: which root of a group a new job gets. The first process that starts the job decides, for good."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ha.placement.group_files import Choose
from ha.placement.load import load_of
from ha.placement.place import HASH, LEAST_JOBS, LEAST_RPC, home_of
from store.bounded import BoundedFiles
from store.errors import NotFound, StoreError

LIST_S = 2.0  # seconds for a list of a root
_log = logging.getLogger("ha")


def policy(name: str, ca: str = "") -> Choose:
    """Return the policy of that name; for ``ca`` see :func:`ha.placement.load.load_of`."""
    known: dict[str, Choose] = {HASH: by_hash, LEAST_JOBS: by_jobs, LEAST_RPC: partial(by_rpc, ca=ca)}
    return known[name]


def by_hash(roots: Sequence[BoundedFiles], job: str) -> str:
    """The job's home: its place is known without a call, now and later."""
    return home_of([each.uri for each in roots], job)


def by_jobs(roots: Sequence[BoundedFiles], job: str) -> str:
    """The root with the fewest directories of jobs; of several, the job's home if it is among them."""

    def jobs(root: BoundedFiles) -> int:
        try:
            found = root.call("place", lambda files: files.list(""), LIST_S)
        except NotFound:  # no job has used it yet
            return 0
        return sum(each.is_directory and not each.name.startswith(".") for each in found)

    return _least(roots, job, jobs)


def by_rpc(roots: Sequence[BoundedFiles], job: str, ca: str = "") -> str:
    """The root whose NameNode lets requests wait for the shortest time, then has the shortest queue of them."""
    # If one does not say so, the job goes to its home: a policy must not keep a job from starting.

    def waiting(root: BoundedFiles) -> tuple[float, int]:
        load = load_of(root.uri, ca)
        return round(load.queue_ms, 1), load.queue_length

    try:
        return _least(roots, job, waiting)
    except StoreError as error:
        _log.warning("%s is placed by its name, because the load of a root is not known: %s", job, error)
        return by_hash(roots, job)


def _least(roots: Sequence[BoundedFiles], job: str, cost: Callable[[BoundedFiles], object]) -> str:
    costs = {each.uri: cost(each) for each in roots}
    least = min(costs.values())  # type: ignore[type-var]
    return home_of([root for root, each in costs.items() if each == least], job)
