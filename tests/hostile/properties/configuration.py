"""What holds of every setting, whoever wrote it: it is taken, or there is one sentence that says what is wrong."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec

from ha.cli.options import A_DAY, Seconds, endpoints, printable
from ha.listening import parse_listen
from ha.restart import INFINITE
from ha.settings import Settings, load
from leader.errors import InvalidName, InvalidSettings
from leader.information import LeaderInformation, check_endpoints, decode, encode
from leader.names import check_word
from leader.timing import LONGEST
from leader.whereabouts import MAX_PORT
from store import hadoop, opening
from store.errors import Invalid
from store.opening import driver_of
from store.zookeeper.address import parse
from tests.hostile.properties.names import OWNER
from tests.hostile.properties.scratch import empty, file_of, scratch

TYPICAL = ("files", "contender", "short_ttl", "stop_grace")
"""The other texts are taken as they are, to be looked at later, and the other numbers are checked as these are."""

NAMES = tuple(field.name for field in msgspec.structs.fields(Settings))


def _loaded(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    try:
        settings = load(arguments, {"XDG_STATE_HOME": str(scratch()), **environment})
    except (InvalidSettings, InvalidName) as error:
        _one_sentence(error)
        return
    for name in NAMES:
        value = getattr(settings, name)
        most = INFINITE if isinstance(value, int) else LONGEST  # a number of times, or of seconds
        assert isinstance(value, str) or 0 <= value <= most
    assert check_word(settings.contender, "a contender") == settings.contender
    given = msgspec.structs.asdict(settings)
    assert load(given, {}) == settings, "what was read can be given again"


def _one_sentence(error: Exception) -> None:
    assert str(error).isprintable(), "one line, and nothing that commands a terminal"


def toml(data: bytes) -> None:
    """The content of ``ha.toml``."""
    _loaded({}, {"HA_CONFIG": str(file_of("ha.toml", data))})


def environment(text: str) -> None:
    """The value of a variable."""
    for name in TYPICAL:
        _loaded({}, {f"HA_{name.upper()}": text, "HA_CONFIG": str(empty())})


def config_path(text: str) -> None:
    """The path of the file."""
    if not text.startswith("/"):
        _loaded({}, {"HA_CONFIG": f"{scratch()}/none/{text}"})


def argument(text: str) -> None:
    """An argument: a name that is no setting, and a value of one."""
    _loaded({text: text}, {})
    for name in TYPICAL:
        _loaded({name: text}, {})


def listen(text: str) -> None:
    """The address of the HTTP API."""
    try:
        host, port = parse_listen(text)
    except InvalidSettings:
        return
    assert host.isascii()
    assert 0 <= port <= MAX_PORT
    assert parse_listen(f"[{host}]:{port}" if ":" in host else f"{host}:{port}") == (host, port)


def files_uri(text: str) -> None:
    """The root's URI: what is taken has one form, which is taken as well and means the same."""
    try:
        driver_of(text)
    except Invalid:
        return
    normal = opening._normal(text)
    assert opening._normal(normal) == normal
    assert "\n" not in normal
    if normal.startswith("file:"):
        assert driver_of(normal)().uri == normal


def zookeeper_address(text: str) -> None:
    """The ensemble's address: what is taken is printed so that it is taken again, and means the same."""
    try:
        address = parse(text, "/default")
    except Invalid:
        return
    # A host in brackets that has no colon is printed without them and may be refused then: see test_regressions.
    if all(":" in host or f"[{host}]" not in text for host, _ in address.servers):
        assert parse(f"{address}" if address.chroot else f"{address}/", "/other") == address


def endpoint_option(text: str) -> None:
    """``--endpoint NAME=ADDRESS``: what is taken reaches a reader over ZooKeeper, and prints as one line."""
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
    """``--timeout``: more than nothing and at most a day."""
    try:
        found = Seconds().convert(text, None, None)
    except click.BadParameter:
        return
    assert 0 < found <= A_DAY
    assert math.isfinite(found)


def hadoop_xml(data: bytes) -> None:
    """``core-site.xml``."""
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
    environment,
    config_path,
    argument,
    listen,
    files_uri,
    zookeeper_address,
    endpoint_option,
    seconds,
)
