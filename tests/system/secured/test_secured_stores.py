"""Kerberized HDFS with two NameNodes and privacy, a Kerberized ZooKeeper behind TLS: jobs go on, strangers do not."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sandbox import Sandbox, realm
from ha.sandbox.secured import STRANGER, USER
from store.kerberos import read_life
from tests.limits import HANGS_S, joined, killed
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper]

ASKED_S = 60
CLI = [sys.executable, "-m", "ha.cli"]

# In processes of their own, because a ticket is found by the environment.
LOGIN = """
import os, sys
from ha.config.sources import load
from ha.config.stores import Stores
from store.errors import StoreError
stores = Stores(load({}))
def attempt(what):
    try:
        return repr(what())
    except StoreError as error:
        return type(error).__name__
"""

OWNER_OF_FILES = """
from store.open import driver_of
driver = driver_of(sys.argv[1], ca=os.environ["HA_WEBHDFS_CA"], directory_mode=0o700)()
driver.make_root()
driver.make_directory("a")
driver.write("f", b"hello")
print(driver.read("f", 100))
driver.rename("a", "b")
print([entry.name for entry in driver.list("")])
print(attempt(lambda: driver_of(sys.argv[1])().list("")))
"""

STRANGER_OF_FILES = """
from store.open import driver_of
driver = driver_of(sys.argv[1], ca=os.environ["HA_WEBHDFS_CA"])()
for what in (lambda: driver.list(""), lambda: driver.make_directory("c"), lambda: driver.rename("b", "c"),
             lambda: driver.write("f", b"forged"), lambda: driver.delete("b")):
    print(attempt(what))
"""

STRANGER_OF_NODES = """
from store.zookeeper import Children, Connection, Create, Delete, Get, Set, ZooKeeper
zookeeper = stores.zookeeper
zookeeper.start()
assert zookeeper.wait(30) is Connection.CONNECTED
for what in (Children("/sessions"), Get("/jobs/orders/leader"), Set("/jobs/orders/leader", b"forged", -1),
             Delete("/jobs/orders/leader", -1), Create("/sessions/forged"), Create("/jobs/forged")):
    print(attempt(lambda: zookeeper.call(what, 30)))
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    if reason := realm.missing():
        pytest.skip(reason)
    if not all(importlib.util.find_spec(name) for name in ("puresasl", "kerberos", "requests_kerberos")):
        pytest.skip("Libraries for Kerberos are missing: pip install 'hybrid-ha[kerberos]'.")
    borrowed = os.environ.get("HA_TEST_SECURED_SANDBOX")
    made = Sandbox(borrowed or tmp_path_factory.mktemp("secured"))
    try:
        if not borrowed:
            made.up(namenodes=2, secure=True)
        yield made
    finally:
        if not borrowed:
            made.down(wipe=True)


def environment(box: Sandbox, user: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HADOOP_", "HA_", "KRB5"))}
    return {**kept, **box.environment(user), "HA_SNAPSHOTS": "off"}


def said(box: Sandbox, user: str, script: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", LOGIN + script, *arguments]
    ended = subprocess.run(
        command, env=environment(box, user), capture_output=True, text=True, timeout=ASKED_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def leader(box: Sandbox, user: str) -> subprocess.CompletedProcess[str]:
    command = [*CLI, "job", "leader", "orders", "--json"]
    return subprocess.run(
        command, env=environment(box, user), capture_output=True, text=True, timeout=ASKED_S, check=False
    )


def test_a_job_is_led_and_found_and_a_stranger_of_the_realm_has_no_effect(box: Sandbox, tmp_path: Path) -> None:
    command = [*CLI, "run", "orders", "--endpoint", "jobmaster=h:1", "--", "sleep", "600"]
    with (
        (tmp_path / "log").open("w") as log,
        killed(subprocess.Popen(command, env=environment(box, USER), stderr=log, cwd=tmp_path)) as sidecar,
    ):
        try:
            wait_until(lambda: leader(box, USER).returncode == 0)
            wait_until(lambda: json.loads(leader(box, USER).stdout)["source"] == "zookeeper")
            found = json.loads(leader(box, USER).stdout)
            assert said(box, STRANGER, STRANGER_OF_NODES) == ["PermissionDenied"] * 6
            for seed in (1, 2):
                tried = [sys.executable, "-m", "ha.drill.stranger", "orders", "--denied", "--seed", str(seed)]
                vandal = subprocess.run(
                    [*tried, "--seconds", "8"],
                    env=environment(box, STRANGER),
                    capture_output=True,
                    text=True,
                    timeout=ASKED_S,
                    check=False,
                )
                assert vandal.returncode == 0, vandal.stdout + vandal.stderr
            denied = leader(box, STRANGER)
            assert denied.returncode == 4
            assert "Permission denied: user=mallory" in denied.stderr
            again = json.loads(leader(box, USER).stdout)
            assert (again["epoch"], again["session_id"]) == (found["epoch"], found["session_id"])
        finally:
            sidecar.terminate()
            sidecar.wait(HANGS_S)


def test_encrypted_webhdfs_reads_and_writes_with_a_ticket_and_believes_only_its_authority(box: Sandbox) -> None:
    root = box.environment()["HA_SANDBOX_WEBHDFS"] + "/web"
    assert said(box, USER, OWNER_OF_FILES, root) == ["b'hello'", "['b', 'f']", "NotSent"]
    assert said(box, STRANGER, STRANGER_OF_FILES, root) == ["PermissionDenied"] * 5


CHECKPOINT = """
from store.open import driver_of
driver = driver_of(sys.argv[1], ca=os.environ["HA_WEBHDFS_CA"])()
driver.make_root()
for folder in ("", "/offsets", "/commits"):
    driver.make_directory(f"checkpoint{folder}")
for file, line in (("metadata", '{"id":"b0-b0-b0-b0-b0"}'), ("offsets/0", "v1\\n{}\\n0"), ("commits/0", "v1\\n{}")):
    driver.write(f"checkpoint/{file}", line.encode())
"""


def test_checkpoints_are_adopted_and_exported_with_a_ticket_but_not_over_encrypted_webhdfs(box: Sandbox) -> None:
    web = box.environment()["HA_SANDBOX_WEBHDFS"] + "/outside"
    root = box.environment()["HA_FILES"] + "/outside"
    said(box, USER, CHECKPOINT, root)
    for verb, place in (
        ("import", f"{root}/checkpoint"),
        ("export", f"{root}/exported"),
        ("import", f"{web}/checkpoint"),
    ):
        copied = subprocess.run(
            [*CLI, "checkpoint", verb, "copies", "counts", place],
            env=environment(box, USER),
            capture_output=True,
            text=True,
            timeout=ASKED_S,
            check=False,
        )
        if place.startswith(root):
            assert copied.returncode == 0, copied.stderr
        else:
            assert "is encrypted WebHDFS, which a bulk copy cannot use: write hdfs:// instead." in copied.stderr


LEASE = """
from leader.layout.names import LeaderDirectory
def names(path):
    return sorted(entry.name for entry in stores.files.call("test", lambda files: files.list(path), 30))
directory = max(name for name in names(sys.argv[1]) if name[:10].isdigit())
print(directory)
print(*names(f"{sys.argv[1]}/{directory}/record"))
"""


def lease(box: Sandbox, job: str = "long") -> list[str]:
    return said(box, USER, LEASE, job)


def tickets(box: Sandbox) -> int:
    log = (box.directory / "logs" / "kdc-1.log").read_text(errors="replace")
    return len(re.findall(rf"AS_REQ .*ISSUE: .* {USER}@", log))


DOCTOR = """
from ha.doctor.servers import check_namenodes
for ca in (os.environ["HA_WEBHDFS_CA"], ""):
    for each in check_namenodes(stores.files.uri, ca):
        print(each.level.value, each.found)
"""


def test_the_doctor_asks_namenodes_over_https_with_a_ticket(box: Sandbox) -> None:
    good, distrusted = said(box, USER, DOCTOR)
    assert good.startswith("ok ")
    assert (good.count(" active"), good.count(" standby")) == (1, 1)
    assert distrusted.startswith("warning ")
    assert distrusted.count("unknown (SSLError)") == 2, "it believes nobody whose authority it does not know"


def test_a_namenode_that_was_just_restarted_is_ready_when_it_can_take_over(box: Sandbox) -> None:
    """Found by an hour of switches: it listened, and was refused as the active one because it knew too few blocks."""
    for _ in range(2):
        active, other = in_their_roles(box)
        box.kill(active)
        box.failover(other)
        assert roles(box) == {active: None, other: "active"}
        box.start(active)
        box.wait_ready(active)
        assert roles(box) == {active: "standby", other: "active"}, "a start moves no role"


def roles(box: Sandbox) -> dict[str, str | None]:
    """The role of each NameNode, None of one that is down: asked until all that run have answered."""

    def answered() -> dict[str, str | None]:
        found = [server for server in box.status() if server.kind == "namenode"]
        all_have = all(server.role for server in found if server.state == "up")
        return {server.name: server.role for server in found} if all_have else {}

    return wait_until(answered, HANGS_S)


def in_their_roles(box: Sandbox) -> tuple[str, str]:
    found = {role: name for name, role in roles(box).items()}
    return found["active"], found["standby"]


def test_a_leader_outlives_its_ticket_and_every_switch_of_the_namenode(box: Sandbox, tmp_path: Path) -> None:
    centre = realm.Realm(box.directory / "data" / "secured" / "realm", 0)
    change = ["-q", f"modprinc -maxlife 12seconds {USER}"]
    subprocess.run(
        [realm.program("kadmin.local"), *change], env={**os.environ, **centre.environment}, check=True, timeout=ASKED_S
    )
    command = [*CLI, "run", "long", "--", "sleep", "600"]
    settings = {**environment(box, USER), "HA_LONG_TTL": "30"}
    with (
        (tmp_path / "log").open("w") as log,
        killed(subprocess.Popen(command, env=settings, stderr=log, cwd=tmp_path)) as sidecar,
    ):
        try:
            wait_until(lambda: "granted at epoch 1" in (tmp_path / "log").read_text())
            before, given = lease(box), tickets(box)
            wait_until(lambda: tickets(box) >= given + 2)  # at 80 % of its life each: the first one has ended
            for disturb in (box.kill, box.pause, lambda _: None):
                active, other = in_their_roles(box)
                disturb(active)
                box.failover(other)
                assert box.active_namenode() == other
                box.up()  # starts again what was killed, and what has ended because it was replaced
                renewed = lease(box)
                wait_until(lambda renewed=renewed: lease(box) != renewed)  # type: ignore[misc]
                assert lease(box)[0] == before[0], "the leader is the same, and it renews its lease"
            assert "revoked" not in (tmp_path / "log").read_text()
        finally:
            sidecar.terminate()
            sidecar.wait(HANGS_S)


TICKET_S = 30
"""Long enough for a sidecar that starts on a busy machine."""


@pytest.mark.timed
def test_without_a_keytab_a_leader_lives_as_long_as_somebody_renews_its_ticket(box: Sandbox, tmp_path: Path) -> None:
    """It says when the ticket ends. Once it has ended, the next new connection fails, and the leader ends in order."""
    keytab, cache, log = environment(box, USER)["HA_KERBEROS_KEYTAB"], tmp_path / "ticket", tmp_path / "log"
    without = ("HA_KERBEROS_KEYTAB", "HA_KERBEROS_PRINCIPAL")
    own = {key: value for key, value in environment(box, USER).items() if key not in without}
    own |= {"KRB5CCNAME": f"FILE:{cache}", "HA_LONG_TTL": "30", "HA_CONTENDER": "first"}

    def renew() -> float:
        """Log in; return when the ticket ends."""
        command = [realm.program("kinit"), "-l", f"{TICKET_S}s", "-k", "-t", keytab, "-c", str(cache), USER]
        subprocess.run(command, env=own, check=True, timeout=ASKED_S)
        life = read_life(cache)
        assert life is not None
        return life.ends

    def said_of_the_command(what: str) -> list[str]:
        return [each for each in log.read_text().splitlines() if what in each]

    stopped = threading.Event()

    def cron() -> None:
        while not stopped.wait(TICKET_S / 3):
            renew()

    first = renew()
    renewing = threading.Thread(target=cron, name="cron", daemon=True)
    renewing.start()
    command = [*CLI, "run", "cached", "--", "sh", "-c", "echo its cache is $KRB5CCNAME; exec sleep 600"]
    with log.open("w") as file, killed(subprocess.Popen(command, env=own, stdout=file, stderr=file)) as sidecar:
        wait_until(lambda: said_of_the_command(f"its cache is FILE:{cache}"))
        wait_until(lambda: time.time() > first)
        active, other = in_their_roles(box)
        box.failover(other)  # what follows needs a new connection, and so a ticket
        renewed = lease(box, "cached")
        wait_until(lambda: lease(box, "cached") != renewed)
        assert not said_of_the_command("revoked")
        stopped.set()
        joined(renewing)
        wait_until(lambda: said_of_the_command("the ticket of this process has ended"))
        assert re.search(r"the ticket of this process ends in \d+ s, and then every new connection", log.read_text())
        assert lease(box, "cached")[0] == renewed[0], "it leads on by the connections that it has"
        box.kill(active)  # else its connection there is still open
        box.start(active)
        box.wait_ready(active)
        box.failover(active)
        wait_until(lambda: said_of_the_command("revoked"))
        wait_until(lambda: said_of_the_command("the command has ended with 143"))  # by SIGTERM, within the lease
        assert sidecar.poll() is None, "it stands by"
        sidecar.terminate()
        sidecar.wait(HANGS_S)
