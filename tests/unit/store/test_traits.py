"""Traits: each store that can be opened has a row."""

import pytest

from store.open import _DRIVERS
from store.traits import BY_SCHEME, Traits, traits


def test_each_driver_has_a_row() -> None:
    assert set(_DRIVERS) <= set(BY_SCHEME)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("/home/ha", Traits(local=True)),
        ("file:///home/ha", Traits(local=True)),
        ("hdfs://ns/ha,hdfs://ns2/ha", Traits(address="rpc-address")),
        ("swebhdfs://ns/ha", Traits(address="http-address", encrypted=True)),
        ("s3a://bucket/in", Traits()),
        ("hdfs://[/x", Traits(address="rpc-address")),
        ("/a:b", Traits(local=True)),
        ("", Traits(local=True)),
    ],
)
def test_a_uri_says_what_its_store_is_like(uri: str, expected: Traits) -> None:
    assert traits(uri) == expected
