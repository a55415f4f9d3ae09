"""Where the leader of a job can be reached, and in which version."""

import re

import msgspec

from leader.answers import Answer
from leader.errors import InvalidName, LeaderError
from leader.retrieval import Source

MAX_PORT = 65535

_ADDRESS = re.compile(
    r"(?:http://)?(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[A-Za-z0-9._-]+))"
    r":(?P<port>[1-9][0-9]{0,4})(?P<prefix>(?:/[!-~]*)?)"
)


class NoEndpoint(LeaderError):
    """The job has a leader, and it publishes no endpoint of that name; the message says which there are."""


class JobMaster(msgspec.Struct, frozen=True):
    """Where the leader of a job can be reached.

    Attributes:
        job: the job's name.
        endpoint: which of its addresses this is.
        address: of that endpoint.
        epoch: orders answers; it never goes back.
        session_id: the leader session's UUID, the version of the answer.
        source: where the answer came from when it was asked for last.
    """

    job: str
    endpoint: str
    address: str
    epoch: int
    session_id: str
    source: Source


def master_of(answer: Answer, endpoint: str) -> JobMaster:
    """Return where an answer says that the leader is.

    Raises:
        NoEndpoint: it publishes no such endpoint.
    """
    address = answer.endpoints.get(endpoint)
    if address is None:
        there = ", ".join(sorted(answer.endpoints)) or "none at all"
        raise NoEndpoint(
            f"Job {answer.job!r} publishes no endpoint {endpoint!r} (there is: {there}): "
            f"give it to `ha run --endpoint {endpoint}=ADDRESS` or to ha.lead."
        )
    return JobMaster(answer.job, endpoint, address, answer.epoch, answer.session_id, answer.source)


def reach(master: JobMaster) -> tuple[str, int, str]:
    """Return host, port and path prefix of an address such as ``host:6123`` or ``http://host:6123/api``.

    Raises:
        InvalidName: it is something else.
    """
    match = _ADDRESS.fullmatch(master.address)
    if match is None or int(match["port"]) > MAX_PORT:
        raise InvalidName(
            f"The endpoint {master.endpoint!r} of job {master.job!r} is {master.address!r} and cannot be called: "
            "publish it as host:port or http://host:port/prefix."
        )
    return match["v6"] or match["host"], int(match["port"]), match["prefix"].rstrip("/")
