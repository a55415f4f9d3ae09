"""Hostile settings: each is accepted unchanged, or refused with one printable sentence."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.system.hostile.properties import configuration
from tests.system.hostile.strategies import ANY_TEXT, PRINTABLE, damaged, damaged_bytes, examples

VALUES = st.sampled_from(
    [
        *("6", "1e999", "nan", "-inf", "0x10", "1_000", "true", "host-1", "_any"),
        *("127.0.0.1:8300", "[::1]:0", "localhost:65536", "a:1,b:2/c", "[fe80::1]:2181/ha"),
        *("hdfs://host:8020/ha", "webhdfs://[::1]:9870/", "file:///var/lib/ha", "file:/x", "hdfs://ns/a/b"),
        *("jobmaster=host:6123", "rest=http://[::1]:8081/ä?x=1"),
    ]
)
TOML = st.sampled_from(
    [
        b"short_ttl = 6\nfiles = 'file:///ha'\n",
        b'[files]\na = {b = [1, 0x1F, 1.5e3, 1979-05-27T07:32:00Z, """x""", true, inf]}\n',
        b"zookeeper = 'zk:2181'\nlisten = \"127.0.0.1:0\"\ncontender = 'a'\naudit = 1e3\n",
    ]
)
NAMENODES = "<property><name>dfs.ha.namenodes.ns</name><value>a,b</value></property>"
ADDRESS = "<property><name>dfs.namenode.rpc-address.ns.a</name><value>h:1</value></property>"
XML = st.just(f'<?xml version="1.0" encoding="utf-8"?><configuration>{NAMENODES}{ADDRESS}</configuration>'.encode())


@pytest.mark.parametrize("holds", configuration.TEXTS, ids=lambda each: each.__name__)
def test_no_text_is_more_than_one_sentence(holds: Callable[[str], None]) -> None:
    @examples(100)
    @given(damaged(VALUES) | ANY_TEXT)
    @example("9" * 5000)
    @example("\0")
    @example("\udcff")
    @example(":" * 3000)
    @example("a\nb\x1b[2J")
    def check(text: str) -> None:
        holds(text)

    check()


@pytest.mark.parametrize("holds", configuration.BYTES, ids=lambda each: each.__name__)
def test_no_file_is_more_than_one_sentence(holds: Callable[[bytes], None]) -> None:
    @examples(80)
    @given(damaged_bytes(TOML) | damaged_bytes(XML) | st.binary(max_size=200))
    @example(b"a = " + b"[" * 20_000)
    @example(b"a = " + b"{a=" * 20_000)
    @example(b"[" + b"a." * 20_000 + b"a]")
    @example(b"<a>" * 20_000)
    def check(data: bytes) -> None:
        holds(data)

    check()


@examples(60)
@given(st.text(PRINTABLE, min_size=1, max_size=60))
def test_every_address_that_is_taken_prints_as_one_line(address: str) -> None:
    configuration.endpoint_option(f"rest={address}")
