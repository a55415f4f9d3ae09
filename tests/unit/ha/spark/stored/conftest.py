from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.ha.spark.stored.ledger_job import Job


@pytest.fixture
def ledger_job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for each in made.opened:
        each.close()
