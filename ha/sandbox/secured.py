"""Secured sandbox: a realm, certificates, and the settings of servers that want to know who asks."""

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from ha.sandbox.certificates import Certificate, key_store, make_authority, sign
from ha.sandbox.realm import HOST, REALM, Realm, program
from ha.sandbox.state import Server, State

USER, STRANGER = "alice", "mallory"
"""Who owns the jobs, and somebody of the same realm who does not."""

_PASSWORD = "sandbox"  # noqa: S105  # of key stores that only this user can read
_PREPARE_TIMEOUT_S = 20
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


class Secured:
    """The realm and the certificates of one sandbox, in a folder of their own."""

    def __init__(self, state: State) -> None:
        self.folder = Path(state.secured)
        self.realm = Realm(self.folder / "realm", state.of("kdc")[0].ports["kdc"])
        self._keys = self.folder / "keys"

    def make(self) -> None:
        """Make all that is not there yet.

        Raises:
            SandboxError: a program is missing, or failed.
        """
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

    def environment_of(self, user: str = USER) -> dict[str, str]:
        """Return the variables with which a client of this project is that user."""
        mine = Certificate(self._keys / f"{user}.crt", self._keys / f"{user}.key")
        return {
            "KRB5_CONFIG": str(self.realm.configuration),
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

    def prepare(self, filesystem: str) -> str | None:
        """Make the directories that users need; return why that was not possible, which proves that HDFS takes writes.

        Raises:
            SandboxError: the programs of Kerberos are missing.
        """
        ticket = self.folder / _SUPERUSER
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("HADOOP_", "HA_"))}
        environment |= self.realm.environment | {"KRB5CCNAME": str(ticket)}
        environment["HADOOP_CONF_DIR"] = str(self.folder.parent.parent / "conf")
        keytab = str(self.realm.keytab("namenode"))
        steps = (
            [program("kinit"), "-k", "-t", keytab, "-c", str(ticket), _principal("namenode")],
            [sys.executable, "-c", _PREPARE, filesystem, USER],
        )
        for step in steps:
            try:
                ended = subprocess.run(
                    step, env=environment, capture_output=True, text=True, timeout=_PREPARE_TIMEOUT_S, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return str(error)
            if ended.returncode != 0:
                return (ended.stderr.strip().splitlines() or ["no reason is given"])[-1]
        return None

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
