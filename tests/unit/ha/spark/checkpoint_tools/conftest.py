"""A checkpoint directory as Spark leaves it, and a job, on each of the stores."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.bounded import BoundedFiles
from store.open import driver_of, open_files
from tests.unit.ha.spark.checkpoint_tools.place import Place

STORES = ["local", pytest.param("hdfs", marks=pytest.mark.hdfs), pytest.param("webhdfs", marks=pytest.mark.hdfs)]
"""All of them; the last costs a second for each file, so what all have in common is tried on the others."""


def placed(kind: str, request: pytest.FixtureRequest) -> Iterator[Place]:
    if kind == "local":
        folder: Path = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").setattr(os, "fsync", lambda _: None)  # the machine stays on
        uri = (folder / "root").as_uri()
    else:
        uri = f"{request.getfixturevalue(f'{kind}_uri')}/{uuid.uuid4().hex}"
    driver = driver_of(uri)()
    driver.make_root()
    files: BoundedFiles = open_files(uri)
    yield Place(driver, files)
    for entry in driver.list(""):
        driver.delete(entry.name, recursive=True)
    driver.close()
    files.close()


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    yield from placed(request.param, request)


@pytest.fixture(params=STORES[:2])
def near(request: pytest.FixtureRequest) -> Iterator[Place]:
    yield from placed(request.param, request)


@pytest.fixture
def local(request: pytest.FixtureRequest) -> Iterator[Place]:
    """The same on this host's own files alone: quick."""
    yield from placed("local", request)
