"""Restart after restart, and a server that is cut off from its ensemble."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ha.sandbox.ports import free_ports
from store import errors
from store.zookeeper import Create, Get, Sync
from tests.limits import killed
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until
from tests.unit.store.zookeeper.helpers import (
    ASKED_S,
    CONNECTED,
    LOST,
    READ_ONLY,
    Heard,
    Server,
    connected,
    submit,
)

# A process of its own, because other tests' threads and descriptors come and go. Each line of input says that there was
# another restart. Select's own descriptor is left out: kazoo makes it for each wait, so it is there or not.
_COUNTING = """
import json, sys, threading
from contextlib import suppress
from pathlib import Path
from store.clock import now
from store.zookeeper import Connection, Get, ZooKeeper

def resources():
    kinds = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = str(each.readlink())
            if target != "anon_inode:[eventpoll]":
                kinds.append(target if target.startswith("anon_inode") else target.partition("[")[0])
    return [sorted(kinds), sorted(thread.name for thread in threading.enumerate())]

heard = []
zookeeper = ZooKeeper(sys.argv[1], session_timeout=float(sys.argv[2]))
zookeeper.start()
assert zookeeper.wait(30) is Connection.CONNECTED
zookeeper.add_listener(heard.append)
zookeeper.call(Get("/"), 5)
print(json.dumps(resources()), flush=True)
for number, _ in enumerate(sys.stdin, 1):
    end = now() + 30
    while heard.count(Connection.CONNECTED) < number:
        assert now() < end, heard
        threading.Event().wait(0.01)
    zookeeper.call(Get("/"), 5)
    while zookeeper._here().calls._outstanding:
        assert now() < end, zookeeper._here().calls._outstanding
        threading.Event().wait(0.01)
    print(json.dumps([*resources(), heard.count(Connection.CONNECTED)]), flush=True)
"""


@pytest.mark.zookeeper
@pytest.mark.slow
def test_twenty_restarts_leave_no_thread_and_no_descriptor(server: Server) -> None:
    command = [sys.executable, "-c", _COUNTING, server.hosts, str(ASKED_S)]
    with killed(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        before = json.loads(child.stdout.readline())
        for number in range(1, 21):
            server.kill()
            server.up()
            print(file=child.stdin, flush=True)
            *present, connected_again = json.loads(child.stdout.readline())
            assert connected_again == number
        child.stdin.close()
    assert present == before


@pytest.mark.zookeeper
@pytest.mark.slow
def test_read_only_server(tmp_path: Path) -> None:
    free = free_ports(9)
    ports = list(zip(free[:3], free[3:6], free[6:], strict=True))
    # Without local sessions a read-only server takes nobody at all.
    options = ("localSessionsEnabled=true", "localSessionsUpgradingEnabled=true")
    servers = [Server(tmp_path / str(number), ports, number, *options) for number in (1, 2, 3)]
    hosts = ",".join(each.hosts for each in servers)
    try:
        for each in servers:
            each.up()
        with connected(hosts, read_only=True) as zookeeper:
            # The first connection may well be a read-only one, while the servers are still voting.
            assert zookeeper.wait(PATIENCE_S, CONNECTED) is CONNECTED
            first = zookeeper.session
            wait_until(lambda: submit(zookeeper, Create("/x", b"data"), 1).done)
            with connected(servers[2].hosts) as last:  # a write is done once two of the three have it
                wait_until(lambda: submit(last, Sync("/x"), 5).done)
            heard = Heard()
            zookeeper.add_listener(heard)
            servers[0].kill()
            servers[1].kill()
            assert zookeeper.wait(PATIENCE_S, READ_ONLY) is READ_ONLY
            second = zookeeper.session
            assert second is None
            with pytest.raises(errors.NotWritable):
                zookeeper.call(Create("/y"), 5)
            assert zookeeper.call(Get("/x"), 5)[0] == b"data"
            with pytest.raises(errors.NotWritable):
                zookeeper.call(Sync("/"), 5)
            servers[0].up()
            assert zookeeper.wait(PATIENCE_S, CONNECTED) is CONNECTED
            third = zookeeper.session
            assert first is not None
            assert third is not None
            assert third.id != first.id
            wait_until(lambda: heard.all[-1] is CONNECTED)
            changes = heard.all
            assert changes.index(LOST) < changes.index(READ_ONLY) < changes.index(CONNECTED, changes.index(READ_ONLY))
            zookeeper.call(Create("/y"), 5)
    finally:
        for each in servers:
            each.kill()
