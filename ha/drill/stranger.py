"""Stranger: a program that deletes, forges and replays a job's nodes in ZooKeeper, or tries to.

    python -m ha.drill.stranger JOB --seconds S --seed N [--denied]

At drawn times it does one of the :data:`ACTS`. It is never a contender: it reads and writes ZooKeeper alone, by
HA_ZOOKEEPER, as the user of the settings. It prints what it could not do, and ends by itself; its last line is an
:class:`Account`. With ``--denied`` it fails if a single act had an effect, or if none was tried.
"""

import argparse
import random
import sys
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from msgspec.structs import replace

from ha.config.sources import load
from leader.layout.information import LeaderInformation, decode, encode
from leader.layout.znodes import SESSIONS, checkpoints_path, contenders_path, leader_path
from store.clock import now
from store.kerberos import keep_logged_in
from store.zookeeper.address import DEFAULT_CHROOT, parse
from store.zookeeper.login import auth_data, sasl_options

ADDRESS = "stranger.invalid:666"  # where its forged records send readers
PAUSE_S = 0.4  # mean seconds between two acts

FLOOD_S = 2.0
CONNECT_S = 20.0


class Account(msgspec.Struct, frozen=True):
    """The outcome of a stranger's acts."""

    done: dict[str, int]  # how often each act had an effect
    denied: int  # how many were refused
    connected: bool = True  # whether ZooKeeper let it in at all

    @property
    def harmless(self) -> bool:
        """Whether it was kept from everything that it tried."""
        return not any(self.done.values()) and (self.denied > 0 or not self.connected)

    @classmethod
    def of(cls, log: str) -> "Account":
        """Read it from the end of a stranger's output; ``ValueError`` if it is not there."""
        return msgspec.json.decode(log.strip().rpartition("\n")[2], type=cls)


class Stranger:
    """One connection to ZooKeeper, and the records that it has seen."""

    def __init__(self, zookeeper: KazooClient, job: str, dice: random.Random) -> None:
        self._zookeeper = zookeeper
        self._job = job
        self._dice = dice
        self._seen: list[bytes] = []

    def look(self) -> None:
        """Remember the job's record, to replay it later."""
        with suppress(NoNodeError, NoAuthError):
            data = self._zookeeper.get(leader_path(self._job))[0]
            if data not in self._seen and ADDRESS.encode() not in data:
                self._seen.append(data)

    def delete_sessions(self) -> None:
        """Delete the nodes that attest leases."""
        for path in self._below(SESSIONS):
            self._zookeeper.delete(path)

    def delete_records(self) -> None:
        """Delete what readers and standbys look at."""
        for path in (leader_path(self._job), checkpoints_path(self._job), *self._below(contenders_path(self._job))):
            with suppress(NoNodeError):
                self._zookeeper.delete(path)

    def squat(self) -> None:
        """Put a lasting node in the place of each that attests, as if its leader never died."""
        for path in self._below(SESSIONS):
            data = self._zookeeper.get(path)[0]
            self._zookeeper.delete(path)
            self._zookeeper.create(path, data)

    def forge_contacts(self) -> None:
        """Write an address into the nodes that attest, where a stranger's process would listen."""
        for path in self._below(SESSIONS):
            self._zookeeper.set(path, f"stranger 127.0.0.1 9 {uuid.uuid4().hex}".encode())

    def rename_incarnation(self) -> None:
        """Make the ensemble look as if it had been wiped."""
        self._zookeeper.set(SESSIONS, f"{self._dice.getrandbits(32):08x}".encode())

    def forge_record(self) -> None:
        """Send readers elsewhere: by another address, another session, or a later epoch."""
        self._write(self._forged())

    def replay(self) -> None:
        self._write(self._dice.choice(self._seen) if self._seen else self._forged())

    def flood(self) -> None:
        """Forge records as fast as ZooKeeper takes them."""
        end = now() + FLOOD_S
        while now() < end:
            self._write(self._forged())

    def _forged(self) -> bytes:
        known = decode(self._seen[-1], self._job) if self._seen else None
        true = known or LeaderInformation(self._job, 1, str(uuid.uuid4()), {}, 1)
        lie = replace(true, endpoints={"jobmaster": ADDRESS}, version=true.version + self._dice.randrange(3))
        if self._dice.random() < 2 / 3:
            lie = replace(lie, session_id=str(uuid.uuid4()), epoch=true.epoch + self._dice.randrange(3))
        return encode(lie)

    def _write(self, data: bytes) -> None:
        path = leader_path(self._job)
        try:
            self._zookeeper.set(path, data)
        except NoNodeError:
            with suppress(NodeExistsError):
                self._zookeeper.create(path, data, ephemeral=self._dice.random() < 1 / 2, makepath=True)

    def _below(self, path: str) -> list[str]:
        try:
            return [f"{path}/{each}" for each in self._zookeeper.get_children(path)]
        except NoNodeError:
            return []


ACTS: tuple[Callable[[Stranger], None], ...] = (
    Stranger.delete_sessions,
    Stranger.delete_records,
    Stranger.squat,
    Stranger.forge_contacts,
    Stranger.rename_incarnation,
    Stranger.forge_record,
    Stranger.replay,
    Stranger.flood,
)


def disturb(zookeeper: KazooClient, job: str, seconds: float, dice: random.Random) -> Account:
    """Act for so many seconds."""
    stranger, pause, end = Stranger(zookeeper, job, dice), threading.Event(), now() + seconds
    done, denied = {act.__name__: 0 for act in ACTS}, 0
    while now() < end:
        act = dice.choice(ACTS)
        try:
            stranger.look()
            act(stranger)
            done[act.__name__] += 1
        except NoAuthError:
            denied += 1
        except KazooException as error:  # another process was faster
            print(f"{act.__name__}: {type(error).__name__}", flush=True)  # noqa: T201
        pause.wait(dice.expovariate(1 / PAUSE_S))
    return Account(done, denied)


def connect() -> KazooClient:
    """Return a connection that logs in as the settings say."""
    settings = load()
    security = settings.stores.zookeeper_security
    if settings.stores.kerberos_keytab:
        keep_logged_in(settings.stores.kerberos_keytab, settings.stores.kerberos_principal)
    files = {"ca": security.ca, "certfile": security.certificate or None, "keyfile": security.key or None}
    return KazooClient(
        str(parse(settings.stores.zookeeper, DEFAULT_CHROOT)),
        sasl_options=sasl_options(security),
        auth_data=auth_data(security),
        **({"use_ssl": True, **files} if security.ca else {}),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Damage a job's nodes in ZooKeeper.")
    parser.add_argument("job")
    parser.add_argument("--seconds", type=float, default=40.0, metavar="S")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--denied", action="store_true", help="fail if a single act has an effect")
    options = parser.parse_args()
    zookeeper = connect()
    try:
        with suppress(NoAuthError):  # it is connected, and may not even ask whether the chroot exists
            zookeeper.start(CONNECT_S)
        account = disturb(zookeeper, options.job, options.seconds, random.Random(options.seed))  # noqa: S311
    except KazooTimeoutError:
        account = Account({}, 0, connected=False)
    zookeeper.stop()
    print(msgspec.json.encode(account).decode(), flush=True)  # noqa: T201
    if options.denied and not account.harmless:
        sys.exit(1)


if __name__ == "__main__":
    main()
