"""The job master: where the leader of a job can be reached, and which leader that is."""

import re

import msgspec

from leader.errors import InvalidName, LeaderError
from leader.lookup.answers import Answer, Source

MAX_PORT = 65535

MASTER_TIMEOUT_S = 10.0  # seconds for a call, with all attempts and lookups; enough for a failover after a crash

_ADDRESS = re.compile(
    r"(?:https?://)?(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[A-Za-z0-9._-]+))"
    r":(?P<port>[1-9][0-9]{0,4})(?P<prefix>(?:/[!-~]*)?)"
)


class NoEndpoint(LeaderError):
    """The job's leader publishes no endpoint of that name; the message lists its endpoints."""


class JobMaster(msgspec.Struct, frozen=True):
    """Where the leader of a job can be reached.

    Attributes:
        job: the job's name.
        endpoint: the name of the endpoint.
        address: its address.
        epoch: the number of this leadership. It orders answers and never goes back.
        session_id: the UUID of the leader's session.
        source: where the answer came from when it was last asked for.
    """

    job: str
    endpoint: str
    address: str
    epoch: int
    session_id: str
    source: Source


def master_of(answer: Answer, endpoint: str) -> JobMaster:
    """Return where the leader of an answer can be reached; ``NoEndpoint`` if it publishes no such endpoint."""
    address = answer.endpoints.get(endpoint)
    if address is None:
        there = ", ".join(sorted(answer.endpoints)) or "none at all"
        raise NoEndpoint(
            f"Job {answer.job!r} publishes no endpoint {endpoint!r} (there is: {there}): "
            f"give `--endpoint {endpoint}=ADDRESS` to `ha run`, or the endpoint to ha.lead."
        )
    return JobMaster(answer.job, endpoint, address, answer.epoch, answer.session_id, answer.source)


def reach(master: JobMaster) -> tuple[str, int, str]:
    """Return host, port and path prefix of an address such as ``host:6123`` or ``http://host:6123/api``, else raise."""
    match = _ADDRESS.fullmatch(master.address)
    if match is None or int(match["port"]) > MAX_PORT:
        raise InvalidName(
            f"The endpoint {master.endpoint!r} of job {master.job!r} is {master.address!r} and cannot be called: "
            "publish it as host:port, http://host:port/prefix or https://host:port/prefix."
        )
    return match["v6"] or match["host"], int(match["port"]), match["prefix"].rstrip("/")
