"""Logs: what the command of a job has written on the host of this process, for holders of a token."""

import os
import socket

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ha.api.operations import PREFIX, Operation
from ha.program import output_log
from leader.layout.names import check_job

MOST = 256 << 10  # bytes of an answer: the end of the log


class JobLog(msgspec.Struct, frozen=True):
    """The end of the newest run's log on a host."""

    host: str
    path: str
    text: str


def operations(*, shown: bool) -> list[Operation]:
    """Return what can be asked; without any tokens it is refused: programs print secrets."""

    def newest(request: Request) -> JobLog:
        job, host = check_job(request.path_params["job"]), socket.gethostname()
        if not shown:
            raise HTTPException(403, "A program's output may hold secrets: set http_read_tokens, and send a token.")
        if not (runs := output_log.runs(job)):
            raise HTTPException(404, f"No run of job {job!r} is kept on {host}, the host of this process.")
        with runs[-1].open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - MOST))
            return JobLog(host, str(runs[-1]), file.read(MOST).decode(errors="replace"))

    path, summary = f"{PREFIX}/jobs/{{job}}/logs", "The newest output of its command on the host of this process."
    return [Operation(path, newest, summary, JobLog, refusals=(400, 403, 404))]
