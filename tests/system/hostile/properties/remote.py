"""Properties of every answer of a NameNode, or of a server in its place: only our own errors are raised."""

import io
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from typing import Any

import pytest
import requests
from requests.adapters import BaseAdapter
from urllib3 import HTTPResponse

from store import hadoop_errors as hadoop
from store.errors import Refused, StoreError, Unknown
from store.files import Files
from store.hdfs import _classify
from store.webhdfs import WebHdfsFiles

REFUSED = (401, 404)
READ, WRITE = 4, 5
"""The two operations that follow a NameNode's redirect."""

OPERATIONS: tuple[Callable[[Files], object], ...] = (
    lambda files: files.list("a"),
    lambda files: files.make_directory("a"),
    lambda files: files.make_root(),
    lambda files: files.rename("a", "b"),
    lambda files: files.read("a", 10),
    lambda files: files.write("a", b"1"),
    lambda files: files.delete("a"),
)


class Canned(BaseAdapter):
    """Gives every request the same answer, without a network."""

    def __init__(self) -> None:
        super().__init__()
        self.status = HTTPStatus.OK.value
        self.data = b""
        self.headers: dict[str, str] = {}

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        response = requests.Response()
        response.status_code = self.status
        response.headers.update(self.headers)
        response.url = request.url or ""
        response.raw = HTTPResponse(
            io.BytesIO(self.data), headers=self.headers, status=self.status, preload_content=False
        )
        return response

    def close(self) -> None:
        """There is nothing to close."""


@cache
def _opened() -> tuple[WebHdfsFiles, Canned]:
    files, canned = WebHdfsFiles("namenode:9870", "/ha", user="me"), Canned()
    files._session.mount("http://", canned)
    return files, canned


def answering(status: int, data: bytes, **headers: str) -> WebHdfsFiles:
    files, canned = _opened()
    canned.status, canned.data, canned.headers = status, data, headers
    return files


def webhdfs_body(data: bytes) -> None:
    """The body of a successful answer: whatever it is, only our own errors are raised."""
    files = answering(HTTPStatus.OK, data)
    for operation in OPERATIONS:
        with suppress(StoreError):
            operation(files)


def webhdfs_refusal(data: bytes) -> None:
    """The body of any other answer: it is never taken for success, however long it is."""
    for status in REFUSED:
        with pytest.raises(StoreError):
            answering(status, data).rename("a", "b")


def webhdfs_listing(data: bytes) -> None:
    """A listing: the result has names, sizes and times, and no internal entries of the drivers."""
    with suppress(StoreError):
        for entry in answering(HTTPStatus.OK, data).list("a"):
            assert isinstance(entry.name, str)
            assert isinstance(entry.size, int)
            assert isinstance(entry.modified_ms, int)
            assert not entry.name.startswith(".staging")


def webhdfs_location(text: str) -> None:
    """A NameNode's redirect; HTTP itself has no line breaks in a header."""
    if "\r" in text or "\n" in text or not text.isascii():
        return
    for status in (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.FOUND):
        for operation in (OPERATIONS[READ], OPERATIONS[WRITE]):
            with pytest.raises(StoreError):
                operation(answering(status, b"", Location=text))


def name_node_says(text: str) -> None:
    """An exception's class and message: at most the first line is shown, and only a known class is a refusal."""
    for exception, message in ((text, ""), ("IOException", text), ("FileNotFoundException", text), (text, text)):
        found = hadoop.refusal(exception, message)
        assert found is None or isinstance(found, Refused)
        assert found is None or "\n" not in f"{found}".removeprefix(exception)
        assert len(f"{found}") <= 3 * hadoop.MAX_LINE


def hdfs_native_says(text: str) -> None:
    for kind in (RuntimeError, OSError, FileNotFoundError, FileExistsError, ValueError):
        assert isinstance(_classify(kind(text)), StoreError)
    assert isinstance(_classify(RuntimeError(f'RPCError("{text}", "{text}")')), StoreError)
    assert isinstance(_classify(RuntimeError(f'RPCError("x", "{text}')), StoreError)


def rust_debug(text: str) -> None:
    """A message that hdfs-native quotes in Rust's way is read back exactly as the NameNode wrote it."""
    error = _classify(RuntimeError(f'RPCError("java.io.IOException", "{quoted(text)}")'))
    if isinstance(error, Unknown):
        assert str(error) == f"java.io.IOException: {text.partition(chr(10))[0]}"
    else:
        assert type(error) is type(hadoop.refusal("java.io.IOException", text))


def quoted(text: str) -> str:
    r"""Write a text as Rust's ``{:?}`` does, without the quotes: with ``\u{...}`` for what cannot be printed."""
    letters = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0", "\\": "\\\\", '"': '\\"'}
    return "".join(
        letters.get(each, each if each.isprintable() or "\ud800" <= each < "\ue000" else f"\\u{{{ord(each):x}}}")
        for each in text
    )


BYTES: tuple[Callable[[bytes], None], ...] = (webhdfs_body, webhdfs_refusal, webhdfs_listing)
TEXTS: tuple[Callable[[str], None], ...] = (webhdfs_location, name_node_says, hdfs_native_says, rust_debug)
