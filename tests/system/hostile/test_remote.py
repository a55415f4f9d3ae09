"""Hostile answers: whatever answers in a NameNode's place, only our own errors are raised."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.system.hostile.properties import remote
from tests.system.hostile.strategies import ANY_TEXT, damaged, damaged_bytes, examples

STATUS: dict[str, Any] = {"pathSuffix": "a", "type": "DIRECTORY", "length": 0, "modificationTime": 1_600_000_000_000}
LISTING = {"FileStatuses": {"FileStatus": [STATUS, {**STATUS, "pathSuffix": ".staging"}]}}
BODIES = st.sampled_from(
    [
        json.dumps(LISTING).encode(),
        b'{"boolean": true}',
        b'{"RemoteException": {"exception": "FileNotFoundException", "message": "File does not exist: /ha/a"}}',
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["FileStatuses", "FileStatus", "boolean", "RemoteException", *STATUS]), inner)
    ),
).map(lambda value: json.dumps(value).encode())
SAYINGS = st.sampled_from(
    [
        "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
        "Source /a and destination /b must both be directories",
        'RPCError("java.io.FileNotFoundException", "rename source /a is not found.\\n\\tat x")',
        "Connection refused (os error 111)",
        "http://[::1]:9864/webhdfs/v1/a?op=OPEN",
    ]
)


@pytest.mark.parametrize("holds", remote.BYTES, ids=lambda each: each.__name__)
def test_no_body_is_more_than_an_error_of_ours(holds: Callable[[bytes], None]) -> None:
    @examples(60)
    @given(damaged_bytes(BODIES) | JSON | st.binary(max_size=50))
    @example(b"[" * 100_000)
    @example(b'{"RemoteException":' + b"[" * 900 + b"]" * 900 + b"}")
    @example(b"9" * 5000)
    def check(data: bytes) -> None:
        holds(data)

    check()


@pytest.mark.parametrize("holds", remote.TEXTS, ids=lambda each: each.__name__)
def test_no_saying_is_more_than_an_error_of_ours(holds: Callable[[str], None]) -> None:
    @examples(60)
    @given(damaged(SAYINGS) | ANY_TEXT)
    @example("Source " + " and destination " * 20_000)
    @example("\\" * 5001)
    @example('\\"' * 5000)
    @example("http://[::1")
    def check(text: str) -> None:
        holds(text)

    check()
