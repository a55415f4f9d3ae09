"""Sample values that many tests need, and strategies that generate more."""

import uuid
from collections.abc import Callable

from hypothesis import strategies as st

from store.errors import StoreError
from store.outcome import Outcome

A = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
B = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
C = "cccccccc-cccc-cccc-cccc-cccccccccccc"

SESSION_IDS = st.uuids().map(str)
WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)
# Not st.text() alone: the interesting texts are those that look like what the protocol itself writes.
TEXTS = st.text() | st.text(alphabet="~=_/%:,.\0 -aA0\u0663é\U0001f600")


def done(value: object = None, at: float = 0.0) -> Outcome[object]:
    return Outcome(value, None, at, at)


def failed(error: StoreError, at: float = 0.0) -> Outcome[object]:
    return Outcome(None, error, at, at)


def numbered() -> Callable[[], str]:
    numbers = iter(range(1, 1_000_000))
    return lambda: str(uuid.UUID(int=next(numbers)))
