"""Check whether this host may lead: an operator may have drained it."""

from collections.abc import Iterator
from contextlib import suppress

from ha.doctor.finding import Finding, ok, warning
from leader.job.barring import drained
from store.bounded import BoundedFiles
from store.clock import wall
from store.errors import StoreError

CHECK = "drained"


def check_drained(files: BoundedFiles, contender: str, timeout: float) -> Iterator[Finding]:
    """Yield whether the host is drained; nothing if the file system does not answer, which is another finding."""
    with suppress(StoreError):
        order = files.call(CHECK, drained, timeout).get(contender)
        if order is not None and order.until > wall():
            yield warning(
                CHECK, f"{contender} is {order}: it takes nothing over.", f"`ha undrain {contender}` ends it."
            )
        else:
            yield ok(CHECK, f"{contender} may lead.")
