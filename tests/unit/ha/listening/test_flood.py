"""A flood of connections that are idle or half open, on every port of a leader with the usual limit of descriptors."""

import http.client
import json
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ha
from ha.jobmaster import Caller
from leader.layout.contact import GREETING_BYTES, greeted_by
from tests.limits import killed
from tests.patience import PATIENCE_S
from tests.unit.ha.programs import HA, Program, Workplace
from tests.unit.ha.waiting import wait_until

LIMIT = 1024
"""The usual `ulimit -n`."""

CONNECTIONS = 5000
"""To each port."""

LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
os.execv(sys.argv[2], sys.argv[2:])
"""

ATTACKS = """
import select, socket, sys
held = []
for _ in range(int(sys.argv[2])):
    each = socket.socket()
    each.setblocking(False)
    each.connect_ex(("127.0.0.1", int(sys.argv[1])))
    held.append(each)
waits = select.poll()
half_open = {each.fileno(): each for each in held[::2]}
for each in half_open:
    waits.register(each, select.POLLOUT)
while half_open and (ready := waits.poll(300)):
    for number, _ in ready:
        waits.unregister(number)
        try:
            half_open.pop(number).send(b"GET /api/v1/jobs HTTP/1.1\\r\\nHost: loc")
        except OSError:
            pass
print("attacks", flush=True)
sys.stdin.read()
"""


DRIVER = """
import signal
import ha, ha.jobmaster
def application(environ, start_response):
    start_response("200 OK", [])
    return [b"done"]
with ha.lead("called") as leadership, ha.jobmaster.serve(application, leadership, "127.0.0.1:0") as server:
    leadership.confirm({"jobmaster": server.address})
    print("serves", server.address.partition(":")[2], flush=True)
    signal.pause()
"""


def ports_of(process: Program) -> set[int]:
    own = set()
    for each in Path(f"/proc/{process.pid}/fd").iterdir():
        if each.is_symlink() and (match := re.fullmatch(r"socket:\[(\d+)\]", str(each.readlink()))):
            own.add(match[1])
    lines = [line.split() for line in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]]
    return {int(line[1].partition(":")[2], 16) for line in lines if line[3] == "0A" and line[9] in own}


def limited(most: int) -> tuple[str, ...]:
    return (sys.executable, "-c", LIMITED, str(most))


@contextmanager
def flood(port: int) -> Iterator[None]:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = CONNECTIONS + 100 if most == resource.RLIM_INFINITY else min(most, CONNECTIONS + 100)
    rounds = -(-CONNECTIONS // (most - 100))  # an attacker has a limit, too
    with ExitStack() as stack:
        attackers = [
            stack.enter_context(
                killed(
                    subprocess.Popen(
                        [*limited(most), sys.executable, "-c", ATTACKS, str(port), str(CONNECTIONS // rounds)],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                    )
                )
            )
            for _ in range(rounds)
        ]
        for each in attackers:
            assert each.stdout is not None
            assert each.stdout.readline() == b"attacks\n"
        yield


def lease_of(workplace: Workplace, job: str) -> tuple[str, int]:
    """Return the leader directory's name, and the sequence of the lease; of two while it is renewed the later one."""
    found = [lease.parts[-3:] for lease in workplace.jobs.glob(f"{job}/*/record/lease~*")]
    return max((directory, int(lease.split("~")[1])) for directory, _, lease in found)


def asked(port: int) -> int:
    """Look up the leader over HTTP; returns its epoch."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", "/api/v1/jobs/orders/leader")
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    assert answer.status == 200, said
    return int(said["leader"]["epoch"])


def test_a_flood_on_every_port_moves_no_leader_and_fails_no_lookup(workplace: Workplace) -> None:
    """With 5,000 connections to each port. The attackers come from the address of those who ask."""
    driver = workplace.start(*limited(LIMIT), sys.executable, "-c", DRIVER)
    leader = workplace.start(
        *limited(LIMIT), *HA, "host", "daemon", "orders", "--listen", "127.0.0.1:0",
        HA_ZOOKEEPER="127.0.0.1:1", HA_SUSPICION_ADDRESS="127.0.0.1:0",
    )  # fmt: skip
    leader.until_said("The HTTP API answers")
    api = int(leader.said.partition("http://127.0.0.1:")[2].split(".")[0])
    (liveness,) = ports_of(leader) - {api}
    master = int(wait_until(driver.output.read_text, what="it serves").split()[1])
    wait_until(lambda: list(workplace.jobs.glob("orders/*/record/lease~*")), what="it leads")
    wait_until(lambda: asked(api) == 1, what="it can be found")
    with flood(api), flood(liveness), flood(master), ha.connect(files=workplace.jobs.as_uri(), zookeeper="") as client:
        before = {job: lease_of(workplace, job) for job in ("orders", "called")}
        rounds = 0
        # More than one short ttl: both leases are renewed.
        while any(lease_of(workplace, job)[1] < before[job][1] + 5 for job in before):
            assert asked(api) == 1
            assert Caller(client, "called").http("POST", "/", timeout=PATIENCE_S).body == b"done"
            with socket.create_connection(("127.0.0.1", liveness), PATIENCE_S) as standby:
                assert greeted_by(standby.recv(GREETING_BYTES, socket.MSG_WAITALL)) is not None
            rounds += 1
        assert {job: lease_of(workplace, job)[0] for job in before} == {job: before[job][0] for job in before}
    assert asked(api) == 1
    assert rounds
    for each in (leader, driver):
        assert len(each.said) < 10_000, each.said


LEAKS = """
import os, resource, signal
import ha
with ha.lead("orders") as leadership:
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    try:
        while True:
            os.open("/dev/null", os.O_RDONLY)
    except OSError:
        os.write(1, b"leaked")
    signal.pause()
"""


def test_a_program_that_has_leaked_all_descriptors_still_leads(workplace: Workplace) -> None:
    """For longer than a short ttl, after which a standby would lead."""
    driver = workplace.start(sys.executable, "-c", LEAKS)
    wait_until(driver.output.read_text, what="it has leaked")
    directory, sequence = lease_of(workplace, "orders")
    wait_until(lambda: lease_of(workplace, "orders")[1] >= sequence + 5)
    assert lease_of(workplace, "orders")[0] == directory
    assert "revoked" not in driver.said
