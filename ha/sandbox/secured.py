"""Secured sandbox: a realm, certificates, and the settings of servers that want to know who asks."""

import os
import secrets
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ha.sandbox.polling import SandboxError, ran, run_well
from ha.sandbox.realm import HOST, REALM, Realm, program
from ha.sandbox.state import Server, State

USER, STRANGER = "alice", "mallory"  # the owner of the jobs, and somebody of the same realm who owns none

_PASSWORD = "sandbox"  # noqa: S105  # of key stores that only this user can read
_PREPARE_TIMEOUT_S = 20
_LOOK_TIMEOUT_S = 5  # A NameNode that is paused listens, and answers nothing
_SUPERUSER = "superuser"
_SERVERS = {"namenode": "nn", "datanode": "dn", "web": "HTTP", "zookeeper": "zookeeper"}

_JAAS = """\
Server {{
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true useTicketCache=false keyTab="{keytab}" principal="{principal}";
}};
"""

# In a process of its own, because a ticket is found by the environment.
_PREPARE = """
import sys
from hdfs_native import Client, WriteOptions
client = Client(sys.argv[1])
client.mkdirs("/tmp", permission=0o777, create_parent=True)
client.set_permission("/tmp", 0o1777)
for path in ("/ha", "/ha-tests"):
    client.mkdirs(path, permission=0o755, create_parent=True)
    client.set_owner(path, sys.argv[2])
with client.create("/tmp/.sandbox-probe", WriteOptions(overwrite=True)) as file:
    file.write(b"written")
client.delete("/tmp/.sandbox-probe")
"""

_LOOK = """
import sys
from hdfs_native import Client
Client(sys.argv[1], {"dfs.client.failover.max.attempts": "0"}).get_file_info("/")
"""


class Secured:
    """The realm and the certificates of one sandbox, in a folder of their own."""

    def __init__(self, state: State) -> None:
        self.folder = Path(state.secured)
        self.realm = Realm(self.folder / "realm", state.of("kdc")[0].ports["kdc"], f"{state.ticket_life}m")
        self._keys = self.folder / "keys"

    def make(self) -> None:
        keytabs = {name: [f"{first}/{HOST}"] for name, first in _SERVERS.items()}
        self.realm.make({**keytabs, USER: [USER], STRANGER: [STRANGER]})
        if not (self._keys / "server.p12").exists():
            authority = make_authority(self._keys)
            for user in (USER, STRANGER):
                sign(authority, self._keys, user)
            key_store(sign(authority, self._keys, "server"), _PASSWORD)
            # Java tells the kinds of key stores by their names.
            shutil.copy(authority.certificate, self._keys / "authority.pem")
        secret = self.folder / "signature"
        if not secret.exists():
            secret.touch(mode=0o600)
            secret.write_text(secrets.token_hex(16), encoding="ascii")
        keytab, principal = self.realm.keytab("zookeeper"), _principal("zookeeper")
        (self.folder / "jaas.conf").write_text(_JAAS.format(keytab=keytab, principal=principal), encoding="utf-8")

    @property
    def properties(self) -> dict[str, str]:
        """The system properties that every Java program needs."""
        return {"java.security.krb5.conf": str(self.realm.configuration)}

    def environment_of(self, user: str) -> dict[str, str]:
        """Return the variables with which a client of this project is that user."""
        mine = Certificate(self._keys / f"{user}.crt", self._keys / f"{user}.key")
        return {
            "KRB5_CONFIG": str(self.realm.configuration),
            # Java looks for Kerberos' configuration elsewhere, and Spark's driver logs in by itself.
            "SPARK_SUBMIT_OPTS": f"-Djava.security.krb5.conf={self.realm.configuration}",
            "PYSPARK_SUBMIT_ARGS": (f"--principal {user}@{REALM} --keytab {self.realm.keytab(user)} pyspark-shell"),
            "HA_KERBEROS_KEYTAB": str(self.realm.keytab(user)),
            "HA_KERBEROS_PRINCIPAL": user,
            "HA_WEBHDFS_CA": str(self.authority),
            "HA_ZOOKEEPER_AUTH": "kerberos",
            "HA_ZOOKEEPER_TLS_CA": str(self.authority),
            "HA_ZOOKEEPER_TLS_CERTIFICATE": str(mine.certificate),
            "HA_ZOOKEEPER_TLS_KEY": str(mine.key),
        }

    @property
    def authority(self) -> Path:
        """The file with the certificate of the authority that signed all others."""
        return self._keys / "authority.crt"

    # --- HDFS

    def core_site(self) -> dict[str, str]:
        """Return what ``core-site.xml`` has in addition."""
        return {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.rpc.protection": "privacy",
            # A minute by default: with tickets that last two, a server would be without one.
            "hadoop.kerberos.min.seconds.before.relogin": "5",
            # WebHDFS follows these; with "simple" everybody is who ?user.name= says.
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": _principal("web"),
            "hadoop.http.authentication.kerberos.keytab": str(self.realm.keytab("web")),
            "hadoop.http.authentication.signature.secret.file": str(self.folder / "signature"),
        }

    def hdfs_site(self) -> dict[str, str]:
        """Return what ``hdfs-site.xml`` has in addition."""
        return {
            "dfs.block.access.token.enable": "true",
            "dfs.data.transfer.protection": "privacy",
            "dfs.http.policy": "HTTPS_ONLY",  # else a DataNode without a privileged port refuses to start
            "dfs.namenode.kerberos.principal": _principal("namenode"),
            "dfs.namenode.keytab.file": str(self.realm.keytab("namenode")),
            "dfs.datanode.kerberos.principal": _principal("datanode"),
            "dfs.datanode.keytab.file": str(self.realm.keytab("datanode")),
            # JournalNodes show their journals to those with a name like their own, as on clusters where all are "hdfs".
            "dfs.journalnode.kerberos.principal": _principal("namenode"),
            "dfs.journalnode.keytab.file": str(self.realm.keytab("namenode")),
            "dfs.web.authentication.kerberos.principal": _principal("web"),
            "dfs.web.authentication.kerberos.keytab": str(self.realm.keytab("web")),
        }

    def ssl_server(self) -> dict[str, str]:
        """Return what is in ``ssl-server.xml``."""
        return {
            "ssl.server.keystore.location": str(self._keys / "server.p12"),
            "ssl.server.keystore.type": "pkcs12",
            "ssl.server.keystore.password": _PASSWORD,
            "ssl.server.keystore.keypassword": _PASSWORD,
        }

    def ssl_client(self) -> dict[str, str]:
        """Return what is in ``ssl-client.xml``, by which NameNodes believe JournalNodes and each other."""
        return {
            "ssl.client.truststore.location": str(self._keys / "server.p12"),  # all servers share the one certificate
            "ssl.client.truststore.type": "pkcs12",
            "ssl.client.truststore.password": _PASSWORD,
        }

    def prepare(self, filesystem: str) -> str | None:
        """Make the directories that users need; return why that failed. If it did not, HDFS takes writes."""
        return self._as_superuser(_PREPARE, filesystem, USER)

    def refuses_reads(self, namenode: str) -> str | None:
        """Return why a NameNode, with this URI, answers no reads as an active one does; None if it does."""
        return self._as_superuser(_LOOK, namenode, timeout_s=_LOOK_TIMEOUT_S)

    def superuser(self) -> dict[str, str]:
        """Log in as HDFS's superuser; return the variables with which programs are that user."""
        ticket = self.folder / f"{_SUPERUSER}-{os.getpid()}-{threading.get_native_id()}"
        found = {**self.realm.environment, "KRB5CCNAME": str(ticket)}
        keytab = str(self.realm.keytab("namenode"))
        command = [program("kinit"), "-k", "-t", keytab, "-c", str(ticket), _principal("namenode")]
        if reason := _ended_badly(command, {**os.environ, **found}, _PREPARE_TIMEOUT_S):
            raise SandboxError(f"Kerberos gives {_principal('namenode')} no ticket: {reason}.")
        return found

    def _as_superuser(self, script: str, *arguments: str, timeout_s: float = _PREPARE_TIMEOUT_S) -> str | None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("HADOOP_", "HA_"))}
        environment["HADOOP_CONF_DIR"] = str(self.folder.parent.parent / "conf")
        try:
            environment |= self.superuser()
        except SandboxError as error:
            return str(error)
        return _ended_badly([sys.executable, "-c", script, *arguments], environment, timeout_s)

    # --- ZooKeeper

    def zookeeper_lines(self, server: Server) -> list[str]:
        """Return what a ZooKeeper server's configuration has in addition."""
        return [
            f"secureClientPort={server.ports['secure']}",
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            f"ssl.keyStore.location={self._keys / 'server.p12'}",
            "ssl.keyStore.type=PKCS12",
            f"ssl.keyStore.password={_PASSWORD}",
            f"ssl.trustStore.location={self._keys / 'authority.pem'}",
            "ssl.trustStore.type=PEM",
            "ssl.clientAuth=need",
            "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "sessionRequireClientSASLAuth=true",
            "kerberos.removeHostFromPrincipal=true",
            "kerberos.removeRealmFromPrincipal=true",
        ]

    def zookeeper_properties(self) -> dict[str, str]:
        """Return the system properties of a ZooKeeper server."""
        return {
            "java.security.auth.login.config": str(self.folder / "jaas.conf"),
            "zookeeper.kerberos.removeHostFromPrincipal": "true",
            "zookeeper.kerberos.removeRealmFromPrincipal": "true",
        }


def _principal(server: str) -> str:
    return f"{_SERVERS[server]}/{HOST}@{REALM}"


def _ended_badly(command: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> str | None:
    """Return the last line of what a program says about its failure; None if there is none."""
    try:
        ended = ran(Path(command[0]).name, command, timeout_s, environment)
    except SandboxError as error:
        return str(error)
    return (ended.stderr.strip().splitlines() or ["no reason is given"])[-1] if ended.returncode else None


# --- certificates: an authority of its own, and what it signs, made by the program openssl

_OPENSSL_TIMEOUT_S = 30
_DAYS = "30"
_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """One key, without a password, with its certificate; both are files in PEM."""

    certificate: Path
    key: Path


def make_authority(folder: Path) -> Certificate:
    """Make an authority that signs certificates."""
    authority = _files(folder, "authority")
    _new_key(authority, "/CN=Hybrid HA sandbox", "-x509", "-days", _DAYS, "-out", str(authority.certificate))
    return authority


def sign(authority: Certificate, folder: Path, name: str) -> Certificate:
    """Make a certificate for this host that the authority has signed, for a server or a client of that name."""
    made = _files(folder, name)
    request = made.key.with_suffix(".request")
    _new_key(made, f"/CN={name}", "-out", str(request))
    names = made.key.with_suffix(".names")
    names.write_text(_NAMES, encoding="ascii")
    _openssl(
        *("x509", "-req", "-in", str(request), "-days", _DAYS, "-CAcreateserial", "-extfile", str(names)),
        *("-CA", str(authority.certificate), "-CAkey", str(authority.key), "-out", str(made.certificate)),
    )
    return made


def key_store(certificate: Certificate, password: str) -> Path:
    """Put a certificate and its key into a key store of Java's."""
    store = certificate.key.with_suffix(".p12")
    _openssl(
        *("pkcs12", "-export", "-in", str(certificate.certificate), "-inkey", str(certificate.key), "-name", "server"),
        *("-passout", f"pass:{password}", "-out", str(store)),
    )
    return store


def _files(folder: Path, name: str) -> Certificate:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Certificate(folder / f"{name}.crt", folder / f"{name}.key")


def _new_key(made: Certificate, subject: str, *arguments: str) -> None:
    _openssl(
        *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", subject, "-keyout", str(made.key), *arguments),
    )


def _openssl(*arguments: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise SandboxError("There is no openssl on the search path: install it (Debian: apt-get install openssl).")
    run_well(f"openssl {arguments[0]}", [program, *arguments], _OPENSSL_TIMEOUT_S)
