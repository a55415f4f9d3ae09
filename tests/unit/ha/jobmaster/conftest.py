"""Job masters in this process: a leadership over a local directory, and a server on loopback."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ha
from ha.client import Client
from ha.jobmaster import GuardedApplication
from tests.patience import PATIENCE_S
from tests.unit.ha.jobmaster.serving import Master, serving


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"file://{tmp_path}/jobs"


@pytest.fixture
def job() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def client(root: str) -> Iterator[Client]:
    with ha.connect(files=root, zookeeper="") as client:
        yield client


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    with ExitStack() as stack:
        yield lambda application: stack.enter_context(serving(application))


Lead = Callable[..., Master]


@pytest.fixture
def lead(root: str, job: str, serve: Callable[[Any], str]) -> Iterator[Lead]:
    """Lead the job as the next leader, and serve behind the guard; the earlier leader keeps its port."""
    blocks: list[Any] = []

    def begin() -> Master:
        if blocks:
            blocks.pop().__exit__(None, None, None)
        block = ha.lead(job, timeout=PATIENCE_S, files=root, zookeeper="")
        blocks.append(block)
        master = Master(block.__enter__())
        address = serve(GuardedApplication(master, master.leadership))
        master.leadership.confirm({"jobmaster": address})
        return master

    yield begin
    for block in blocks:
        block.__exit__(None, None, None)
