"""A dozen programs of the zoo, each killed once."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from ha.sandbox import Sandbox
from tests.system.zoo import results
from tests.system.zoo.__main__ import archived, judged
from tests.system.zoo.declared import BY_NAME
from tests.system.zoo.judge import Found

DOZEN = (
    "files_to_files", "nameless", "own_checkpoint", "name_with_slash", "batch_overwrites", "batch_append",
    "available_now", "deduplicate", "stop_in_finally", "lead_output", "lead_two_writes", "job_two_queries",
)  # fmt: skip


@pytest.fixture(scope="module")
def founds(
    request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Found]]]:
    """The programs of the tests that were chosen, two at a time: each waits for half of its time."""
    chosen = [name for name in DOZEN if any(f"[{name}]" in item.name for item in request.session.items)]
    environment = sandbox.environment()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        for known, value in environment.items():
            patch.setenv(known, value)
        for known, value in archived(environment).items():
            patch.setenv(known, value)
        judge = partial(judged, environment={**os.environ, **environment}, guarded=True, seed=1, kills=1)
        yield {name: pool.submit(judge, BY_NAME[name], folder=tmp_path_factory.mktemp(name)) for name in chosen}
        pool.shutdown(cancel_futures=True)


@pytest.mark.spark
@pytest.mark.hdfs
@pytest.mark.zookeeper
@pytest.mark.slow
@pytest.mark.parametrize("name", DOZEN)
def test_it_does_as_promised(name: str, founds: dict[str, Future[Found]]) -> None:
    found = founds[name].result()
    assert found.verdict in {BY_NAME[name].promised, "exact"}, results.shown(found)
