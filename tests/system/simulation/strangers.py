"""Strangers: what anybody can do to the nodes of sessions in an open ZooKeeper, and say on the way between processes.

They write to files only where a plan says so: then they make names, and take none away.
"""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from leader.layout.contact import ReleaseNotice
from leader.layout.lease import Lease, Mode
from leader.layout.names import MAX_EPOCH, RECORD, LeaderDirectory, newest
from leader.layout.znodes import session_path
from tests.system.simulation.host import Host
from tests.system.simulation.plan import Step
from tests.system.simulation.sidecar import JOB

if TYPE_CHECKING:
    from tests.system.simulation.system import System

FORGED_SESSION = "f0f0f0f0-f0f0-f0f0-f0f0-f0f0f0f0f0f0"

LOOKS_EVERY = 0.002
"""Seconds after which a stranger looks again whether a name is free."""


def take(system: "System", step: Step) -> None:
    """Carry out a step: to the node that attests the lease, if there is one."""
    match step.how[0]:
        case "word":
            _forge_release(system)
            return
        case "lease" | "directory":
            _forge_name(system, step.how[0])
            return
    lease = system.lease
    if system.ensemble is None or lease is None or not lease.attestation:
        return
    path = session_path(lease.attestation)
    match step.how[0]:
        case "delete":
            _write(system, path, None, f"a stranger deletes {path}")
        case "replace":
            _write(system, path, None, f"a stranger deletes {path}")
            _write(system, path, b"x", f"a stranger makes {path}")
        case "contact":
            _forge_contact(system, path, lease.contender, step.seconds)


def squat(system: "System", token: str, seconds: float) -> None:
    """Make a node under the name of a session's as soon as that one is gone, before any standby can see that."""
    path, ends = session_path(token), system.world.now + seconds

    def look() -> None:
        if system.zookeeper.up and path not in system.zookeeper.nodes:
            _write(system, path, b"x", f"a stranger makes {path}")
        elif system.world.now < ends:
            system.world.after(LOOKS_EVERY, look)

    look()


def _forge_contact(system: "System", path: str, contender: str, seconds: float) -> None:
    """Name a stranger's process as the leader's. It greets everybody who calls, and ends a while later."""
    if system.wires is None:
        return
    host = Host(system.world, "x", system.files, None, system.plan.timing, system.wires)
    where = system.wires.listen(host)
    data = f"{contender} {where.host} {where.port} {where.process}".encode()
    _write(system, path, data, f"a stranger says in {path} that the leader listens at {where.host}")
    system.world.after(seconds, host.crash)


def _forge_release(system: "System") -> None:
    """Say in the leader's place that it has released its lease: under a name that is not there, and as it stands."""
    lease = system.lease
    leader = next((host for host in system.hosts.values() if lease and host.name == lease.contender), None)
    if lease is None or leader is None or system.wires is None:
        return
    system.note(f"a stranger says that {lease.contender} has released its lease", "stranger")
    released = replace(lease, sequence=lease.sequence + 1, mode=Mode.RELEASED, ttl_ms=0, attestation="")
    for each in (released, lease, replace(lease, sequence=lease.sequence + 1)):
        system.wires.tell(leader, ReleaseNotice("orders", each))


def _forge_name(system: "System", what: str) -> None:
    """Make a lease beside the lease, or a whole leader directory, of a number that no leader ever reaches."""
    directory = newest(system.files.list(JOB)) if JOB in system.files.root.entries else None
    if directory is None or system.files.safe_mode:
        return
    lease = Lease(MAX_EPOCH, Mode.HDFS, 1000, FORGED_SESSION, "", "x").name
    home = f"{JOB}/{directory.name}"
    if what == "directory":
        home = f"{JOB}/{LeaderDirectory(MAX_EPOCH, FORGED_SESSION).name}"
        system.files.make(home)
        system.files.make(f"{home}/{RECORD}")
    system.note(f"a stranger makes a {what} of the highest number", "stranger")
    system.files.make(f"{home}/{RECORD}/{lease}")


def _write(system: "System", path: str, data: bytes | None, what: str) -> None:
    def write() -> None:
        if system.zookeeper.up:  # nobody can write to a store that is down
            system.note(what, "stranger")
            system.zookeeper.tamper(path, data)

    system.zookeeper.arrive(write)
