"""The drivers of all file systems, for tests of the one contract that they keep."""

import uuid
from pathlib import Path

import pytest

from store.files import Files

ON_HDFS = [pytest.param("hdfs", marks=pytest.mark.hdfs), pytest.param("webhdfs", marks=pytest.mark.hdfs)]


def root_on(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "local":
        folder: Path = request.getfixturevalue("tmp_path")
        return (folder / "root").as_uri()
    return f"{request.getfixturevalue(f'{kind}_uri')}/{uuid.uuid4().hex}"


def names(files: Files, path: str) -> set[str]:
    return {entry.name for entry in files.list(path)}


def tree(files: Files, path: str = "") -> set[str]:
    found = set()
    for entry in files.list(path):
        below = f"{path}/{entry.name}" if path else entry.name
        found |= {below} | (tree(files, below) if entry.is_directory else set())
    return found
