"""Fixtures of the tests of stores."""

from collections.abc import Iterator

import pytest

from store.files import Files
from store.open import driver_of
from tests.unit.store.drivers import ON_HDFS, root_on


@pytest.fixture(params=["local", *ON_HDFS])
def files(request: pytest.FixtureRequest) -> Iterator[Files]:
    driver = driver_of(root_on(request.param, request))()
    driver.make_root()
    yield driver
    for entry in driver.list(""):
        driver.delete(entry.name, recursive=True)
    driver.close()
