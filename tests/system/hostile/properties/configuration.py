"""Properties of every setting: it is accepted, or one sentence says what is wrong."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import click

from ha.cli.options import LONGEST_S, Seconds, endpoints, printable
from ha.config.addresses import parse_listen
from ha.config.restart_strategy import INFINITE
from ha.config.settings import reference
from ha.config.sources import load
from leader.errors import InvalidName, InvalidSettings
from leader.layout.contact import MAX_PORT
from leader.layout.information import LeaderInformation, check_endpoints, decode, encode
from leader.layout.names import check_word
from leader.timing import LONGEST
from store import hadoop_errors as hadoop
from store import open as opening
from store.errors import Invalid
from store.open import driver_of
from store.zookeeper.address import parse
from tests.system.hostile.properties.names import OWNER
from tests.system.hostile.properties.scratch import empty, file_of, scratch

TYPICAL = ("files", "contender", "short_ttl", "stop_grace")
"""The other texts are accepted unchanged and checked later; the other numbers are checked in the same way."""

NAMES = tuple(field.name for field in reference())


def _loaded(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    try:
        settings = load(arguments, {"XDG_STATE_HOME": str(scratch()), **environment})
    except (InvalidSettings, InvalidName) as error:
        _one_sentence(error)
        return
    for name in NAMES:
        value = settings.flat()[name]
        most = INFINITE if isinstance(value, int) else LONGEST  # a number of times, or of seconds
        assert isinstance(value, str) or 0 <= value <= most
    assert check_word(settings.leadership.contender, "a contender") == settings.leadership.contender
    given = settings.flat()
    assert load(given, {}) == settings, "what was read can be given again"


def _one_sentence(error: Exception) -> None:
    assert str(error).isprintable(), "one line, and nothing that commands a terminal"


def toml(data: bytes) -> None:
    _loaded({}, {"HA_CONFIG": str(file_of("ha.toml", data))})


def environment(text: str) -> None:
    for name in TYPICAL:
        _loaded({}, {f"HA_{name.upper()}": text, "HA_CONFIG": str(empty())})


def config_path(text: str) -> None:
    if not text.startswith("/"):
        _loaded({}, {"HA_CONFIG": f"{scratch()}/none/{text}"})


def argument(text: str) -> None:
    """An argument: a name that is not a setting, and the value of one."""
    _loaded({text: text}, {})
    for name in TYPICAL:
        _loaded({name: text}, {})


def listen(text: str) -> None:
    try:
        host, port = parse_listen(text)
    except InvalidSettings:
        return
    assert host.isascii()
    assert 0 <= port <= MAX_PORT
    assert parse_listen(f"[{host}]:{port}" if ":" in host else f"{host}:{port}") == (host, port)


def files_uri(text: str) -> None:
    """The root's URI: it has one normal form, which is accepted too and means the same."""
    try:
        driver_of(text)
    except Invalid:
        return
    normal = opening.normal(text)
    assert opening.normal(normal) == normal
    assert "\n" not in normal
    if normal.startswith("file:"):
        assert driver_of(normal)().uri == normal


def zookeeper_address(text: str) -> None:
    """The ensemble's address: it is printed in a form that is accepted again and means the same."""
    try:
        address = parse(text, "/default")
    except Invalid:
        return
    # A host in brackets that has no colon is printed without them and may be refused then: see test_regressions.
    if all(":" in host or f"[{host}]" not in text for host, _ in address.servers):
        assert parse(f"{address}" if address.chroot else f"{address}/", "/other") == address


def endpoint_option(text: str) -> None:
    """``--endpoint NAME=ADDRESS``: it reaches a reader through ZooKeeper, and prints as one line."""
    try:
        given = check_endpoints(endpoints((text,)))
    except (click.BadParameter, InvalidName):
        return
    name, address = next(iter(given.items()))
    assert f"{name}={address}" == text
    published = LeaderInformation("orders", 7, OWNER, given)
    assert decode(encode(published), "orders") == published
    assert printable(address).isprintable()


def seconds(text: str) -> None:
    """``--timeout``: greater than 0 and at most a day."""
    try:
        found = Seconds().convert(text, None, None)
    except click.BadParameter:
        return
    assert 0 < found <= LONGEST_S
    assert math.isfinite(found)


def hadoop_xml(data: bytes) -> None:
    try:
        found = hadoop._read(file_of("core-site.xml", data))
    except Invalid:
        return
    assert all(isinstance(each, str) for pair in found.items() for each in pair)
    try:
        addresses = hadoop.namenodes(found, "ns", "rpc-address")
    except Invalid:
        return
    assert all(addresses)


BYTES: tuple[Callable[[bytes], None], ...] = (toml, hadoop_xml)
TEXTS: tuple[Callable[[str], None], ...] = (
    environment, config_path, argument, listen, files_uri, zookeeper_address, endpoint_option, seconds,
)  # fmt: skip
