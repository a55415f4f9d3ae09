"""A Kerberos realm for the sandbox: its key distribution centre, principals and keytabs, by the programs of MIT."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ha.sandbox.polling import SandboxError, run_well

REALM = "HA.SANDBOX"
HOST = "localhost"  # principals of servers bear a name, and addresses have none

_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_TIMEOUT_S = 30

_CLIENTS = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
"""

_CENTRE = """\
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
  max_life = {life}
  max_renewable_life = {life}
 }}
[logging]
 default = STDERR
"""


class Realm:
    """One realm, in a folder of its own, with its centre on loopback; ``life`` of a ticket is as Kerberos writes it."""

    def __init__(self, folder: Path, port: int, life: str = "1d") -> None:
        self.folder = folder
        self.configuration = folder / "krb5.conf"
        self._port = port
        self._life = life

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make Kerberos' programs and libraries use this realm."""
        return {"KRB5_CONFIG": str(self.configuration), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}

    def keytab(self, name: str) -> Path:
        """Return the file with the keys of a principal or of a server."""
        return self.folder / f"{name}.keytab"

    def make(self, keytabs: Mapping[str, list[str]]) -> None:
        """Make the realm, and a keytab of each name with the keys of its principals; fine if that was done."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        values = {"realm": REALM, "port": self._port, "folder": self.folder, "life": self._life}
        self.configuration.write_text(_CLIENTS.format(**values), encoding="utf-8")
        (self.folder / "kdc.conf").write_text(_CENTRE.format(**values), encoding="utf-8")
        if (self.folder / "made").exists():
            return
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "sandbox")
        for name, principals in keytabs.items():
            for principal in principals:
                self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
                self._run("kadmin.local", "-q", f"ktadd -norandkey -k {self.keytab(name)} {principal}")
        (self.folder / "made").touch()

    def command(self) -> list[str]:
        return [program("krb5kdc"), "-n", "-r", REALM, "-P", str(self.folder / "pid")]

    def _run(self, name: str, *arguments: str) -> None:
        run_well(name, [program(name), *arguments], _TIMEOUT_S, {**os.environ, **self.environment})


def program(name: str) -> str:
    """Return the path of one of Kerberos' programs, which may be where only administrators look."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise SandboxError(
            f"There is no {name}: install Kerberos (Debian: apt-get install krb5-kdc krb5-admin-server krb5-user)."
        )
    return found


def missing() -> str | None:
    """Return in one sentence what has to be installed for a realm; None if nothing has."""
    try:
        for name in _PROGRAMS:
            program(name)
    except SandboxError as error:
        return str(error)
    return None
