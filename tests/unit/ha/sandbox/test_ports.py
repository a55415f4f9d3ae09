"""Tests of ports: a killed server can bind its port again."""

import socket
from pathlib import Path

from ha.sandbox.ports import free_ports, is_free


def test_free_ports_are_distinct_and_free() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert all(is_free(port) for port in ports)


def test_outgoing_connections_never_get_them() -> None:
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(free_ports(50)) < max(first_outgoing, 20_000)


def test_a_port_with_a_listener_is_taken() -> None:
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))  # nobody else gets it
        port = held.getsockname()[1]
        assert is_free(port)
        held.listen()
        assert not is_free(port)
