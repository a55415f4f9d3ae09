"""Calls from a Python worker to the master of its task's job, as :class:`ha.jobmaster.Caller` makes them."""

import socket
from collections.abc import Mapping

from ha.jobmaster.caller import TIMEOUT, Caller
from ha.jobmaster.exchange import Reply
from ha.spark.lookups import lookups_of
from ha.spark.task import current_task, job_of


def call(
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    job: str | None = None,
    endpoint: str = "jobmaster",
    timeout: float = TIMEOUT,
    idempotent: bool = False,
) -> Reply:
    """Send an HTTP request to the job's master; see :meth:`ha.jobmaster.Caller.http`.

    Args:
        method: such as ``POST``.
        path: with the query, escaped as in a URL.
        body: empty for none.
        headers: further ones.
        job: the job's name; default: as in :func:`ha.spark.job_master`.
        endpoint: which of the leader's addresses.
        timeout: seconds for all of it.
        idempotent: whether to execute it twice does no harm: then it is sent again when an answer was lost.

    Raises:
        CallRefused: nobody has executed it, and nobody will.
        CallUnknown: somebody may have executed it.
        InvalidName: the job or the leader's address is not one.
        InvalidSettings: no job is named, or a setting is wrong.
        ValueError: the method, path or a header cannot be sent.
    """
    return _caller(job, endpoint).http(method, path, body, headers, timeout=timeout, idempotent=idempotent)


def connect(*, job: str | None = None, endpoint: str = "jobmaster", timeout: float = TIMEOUT) -> socket.socket:
    """Return a TCP connection that the job's master has accepted; see :meth:`ha.jobmaster.Caller.connect`.

    Raises:
        CallRefused: no leader accepted in time.
        InvalidName, InvalidSettings: as in :func:`call`.
    """
    return _caller(job, endpoint).connect(timeout=timeout)


def _caller(job: str | None, endpoint: str) -> Caller:
    task = current_task()
    return Caller(lookups_of(task), job or job_of(task), endpoint)
