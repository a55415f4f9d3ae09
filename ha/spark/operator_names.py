"""Operator names: which number each stateful operator of a query has in its plan, told once in each leadership.

Checkpoints and Spark's errors name operators by numbers only, and a changed program may number them in another way.
"""

import logging
from contextlib import suppress

import msgspec

from ha.checkpoints.contents import Json, Unreadable, operator_stores
from ha.leadership.leadership import Leadership
from leader.layout.names import SPARK
from store.errors import StoreError

_log = logging.getLogger("ha")


def introduce(leadership: Leadership, query: str) -> None:
    """Log the id of a query and its operators with state. Costs two reads, and three calls for each operator.

    Raises:
        Fenced: another leader has taken over.
    """
    with suppress(StoreError, Unreadable, msgspec.DecodeError):  # it is only told
        metadata = leadership.own.read(f"{SPARK}/{query}/metadata")
        query_id = msgspec.json.decode(metadata, type=Json).get("id", "")
        told = ", ".join(f"{number} is {name}" for number, name in sorted(operators(leadership, query).items()))
        _log.info(
            "%s: query %r has the id %s; operators with state: %s.", leadership.job, query, query_id, told or "none"
        )


def operators(leadership: Leadership, query: str) -> dict[int, str]:
    """Return the name of each operator with state, by its number, as the newest metadata say.

    Raises:
        Fenced: another leader has taken over.
        StoreError: the store did not answer.
        Unreadable: the metadata have another form.
    """
    place = f"{SPARK}/{query}/state"
    found = {}
    for number in leadership.names(place):
        if not number.isdecimal():
            continue
        folder = f"{place}/{number}/_metadata"
        there = leadership.names(folder)
        if "v2" in there:
            batches = [int(each) for each in leadership.names(f"{folder}/v2") if each.isdecimal()]
            file = f"v2/{max(batches)}" if batches else ""
        else:
            file = "metadata" if "metadata" in there else ""
        if file:
            found[int(number)] = operator_stores(leadership.own.read(f"{folder}/{file}")).name
    return found
