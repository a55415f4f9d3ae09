"""Settings of connections: to the stores, to job masters, and to the HTTP API that processes offer."""

import re
from typing import TYPE_CHECKING

import msgspec

from ha.config.setting import check_choice, setting, shown
from ha.placement.place import HASH, LEAST_JOBS, LEAST_RPC
from leader.errors import InvalidSettings
from store.errors import Invalid
from store.zookeeper.security import Security

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

_HOST = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The stores, and the log-in to each."""

    files: str = setting(
        "",
        "URI of the directory that holds all jobs: `hdfs://`, `webhdfs://`, `swebhdfs://` (HTTPS) or `file://`. "
        "`hdfs:///path` is on the file system in `fs.defaultFS` of the Hadoop configuration (`HADOOP_CONF_DIR`). "
        "`viewfs://table/path` is the one that the mount table there has at or above the path. Several URIs with "
        "commas between them are a group of roots. So is the name of a table `[groups.NAME]` of `ha.toml` that has "
        "them in its list `files`.",
        shown="a directory below the user's state directory",
    )
    directory_mode: str = setting(
        "0700",
        "Permissions of the directories that are made for jobs, as `chmod` takes them. `0750` or `0755` lets readers "
        "of other users ask HDFS; the jobs' owner always needs all three.",
    )
    placement: str = setting(
        HASH,
        "Which root of a group a new job gets: `hash` of its name, `least-jobs`, or `least-rpc`, where requests to the "
        "NameNode wait least. A table `[groups.NAME]` may have its own.",
    )
    webhdfs_ca: str = setting(
        "",
        "File with the certificates (PEM) of the authorities that sign those of HDFS, for `swebhdfs://`.",
        shown="the authorities that this host trusts",
    )
    zookeeper: str = setting(
        "",
        "Address of the ZooKeeper ensemble: `host:port,host:port/chroot`. Without ZooKeeper, the file system does all "
        "the work.",
        shown="no ZooKeeper",
    )
    zookeeper_auth: str = setting(
        "none",
        "How processes log in to ZooKeeper: `none`, `digest`, `sasl-digest` (DIGEST-MD5) or `kerberos`. The last two "
        "need `hybrid-ha[kerberos]`.",
    )
    zookeeper_credentials: str = setting(
        "", "File with `user:password` for `digest` and `sasl-digest`. It is read for each connection.", shown="no file"
    )
    zookeeper_tls_ca: str = setting(
        "",
        "File with the certificates (PEM) of the authorities that sign those of the ZooKeeper servers. With it, TLS is "
        "spoken, and the servers' names must be right.",
        shown="no TLS",
    )
    zookeeper_tls_certificate: str = setting(
        "", "File with this process's own certificate (PEM) for ZooKeeper.", shown="none"
    )
    zookeeper_tls_key: str = setting(
        "", "File with the key of that certificate (PEM, without a password).", shown="in the certificate's file"
    )
    zookeeper_acl: str = setting(
        "",
        "`open` or `creator`: who may read and change the nodes that a process makes. `creator` needs a login or a "
        "certificate, the same for all contenders of a chroot. Other readers follow it, as "
        "`creator,sasl:reports,world:anyone`.",
        shown="`creator` with a login or a certificate, else `open`",
    )
    kerberos_keytab: str = setting(
        "",
        "File with the keys of `kerberos_principal`. With it, this process logs in by itself, and again at 80 % of "
        "each ticket's life.",
        shown="the ticket that this process finds",
    )
    kerberos_principal: str = setting("", "This process's principal in Kerberos, if it has a keytab.", shown="none")
    history: str = setting(
        "",
        "Directory on this host into which each process writes the events that `ha lab check` reads.",
        shown="no history",
    )

    @property
    def zookeeper_security(self) -> Security:
        """How to log in to ZooKeeper, and who may do what there."""
        return Security(
            auth=self.zookeeper_auth,
            credentials=self.zookeeper_credentials,
            ca=self.zookeeper_tls_ca,
            certificate=self.zookeeper_tls_certificate,
            key=self.zookeeper_tls_key,
            acl=self.zookeeper_acl,
        )

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        if not re.fullmatch("0?7[0-7]{2}", self.directory_mode):
            raise InvalidSettings(
                f"directory_mode is {shown(self.directory_mode)}: it must be 0700 to 0777, as chmod takes it."
            )
        check_choice("placement", self.placement, (HASH, LEAST_JOBS, LEAST_RPC))
        if bool(self.kerberos_keytab) != bool(self.kerberos_principal):
            raise InvalidSettings("kerberos_keytab and kerberos_principal need each other: set both, or neither.")
        try:
            self.zookeeper_security.check()
        except Invalid as error:
            raise InvalidSettings(str(error)) from error


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of HTTP: whose requests are answered, and which credentials job masters are shown."""

    listen: str = setting(
        "",
        "Address of the HTTP API: `host:port`. Port 0 takes a free port.",
        shown="no HTTP API; for `ha host daemon` and `ha host agent` a free port of 127.0.0.1",
    )
    http_hosts: str = setting(
        "",
        "Further names that requests to the HTTP API may have in their Host header: `a.example.com,b`. `*.example.com` "
        "means all names below it, and `*` all names.",
        shown="this host's own names, and the host in `listen`; IP addresses need no list",
    )
    http_networks: str = setting(
        "",
        "Networks and addresses from which connections to the HTTP API are accepted: `10.1.0.0/16,192.168.7.9`.",
        shown="all",
    )
    http_certificate: str = setting(
        "",
        "File with the certificate of the HTTP API and its chain, in PEM. With it, the API speaks TLS only.",
        shown="no TLS",
    )
    http_key: str = setting(
        "", "File with the key of `http_certificate`, in PEM, without a password.", shown="the certificate's file"
    )
    http_client_ca: str = setting(
        "",
        "File with authorities, in PEM. Clients of the HTTP API must have a certificate of one of them.",
        shown="clients need no certificate",
    )
    http_read_tokens: str = setting(
        "",
        "File with the tokens of clients that may read, one a line. As soon as there is a file of tokens, each request "
        "but those of probes and the page's files needs one.",
        shown="no tokens",
    )
    http_operate_tokens: str = setting(
        "",
        "File with the tokens of clients that may also change something, one a line.",
        shown="no tokens: nothing can be changed over HTTP",
    )
    http_savepoint_roots: str = setting(
        "",
        "Directories below which savepoints that are asked for over HTTP may be: "
        "`hdfs://names/savepoints,hdfs://names/backup`.",
        shown="none: over HTTP, savepoints are the job's own",
    )
    jobmaster_ca: str = setting(
        "",
        "File with the authorities, in PEM, that sign the certificates of job masters. With it, only job masters with "
        "an address of `https://` are called.",
        shown="those of the system",
    )
    jobmaster_token: str = setting(
        "",
        "File with the token that calls to job masters show, over TLS only. With it, only job masters with an address "
        "of `https://` are called.",
        shown="no token",
    )
    jobmaster_certificate: str = setting(
        "", "File with the certificate, in PEM, that callers of job masters show.", shown="no certificate is shown"
    )
    jobmaster_key: str = setting(
        "", "File with the key of `jobmaster_certificate`, in PEM, without a password.", shown="the certificate's file"
    )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names in ``http_hosts``. InvalidSettings: one of them is no name."""
        names = _listed(self.http_hosts)
        for each in names:
            if not _HOST.fullmatch(each):
                raise InvalidSettings(
                    f"http_hosts has {shown(each)}: each must be a host's name, such as a.example.com or *.example.com."
                )
        return names

    @property
    def savepoint_roots(self) -> tuple[str, ...]:
        """The directories in ``http_savepoint_roots``. InvalidSettings: one of them is no URI."""
        roots = _listed(self.http_savepoint_roots)
        for each in roots:
            if "://" not in each or ".." in each.split("/"):
                raise InvalidSettings(
                    f"http_savepoint_roots has {shown(each)}: each must be as hdfs://names/savepoints."
                )
        return roots

    @property
    def networks(self) -> "tuple[IPv4Network | IPv6Network, ...]":
        """The networks in ``http_networks``. InvalidSettings: one of them is no network."""
        if not self.http_networks:
            return ()
        import ipaddress  # noqa: PLC0415  # most processes need none

        try:
            return tuple(ipaddress.ip_network(each) for each in _listed(self.http_networks))
        except ValueError as error:
            raise InvalidSettings(
                f"http_networks is {shown(self.http_networks)}: {error}; write networks such as 10.1.0.0/16."
            ) from error

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        _ = self.hosts, self.networks, self.savepoint_roots  # raises if one is none
        if self.jobmaster_key and not self.jobmaster_certificate:
            raise InvalidSettings(
                "jobmaster_key is of no use without jobmaster_certificate: set it, or leave both out."
            )
        if (self.http_key or self.http_client_ca) and not self.http_certificate:
            raise InvalidSettings(
                "http_key and http_client_ca are of no use without http_certificate: set it, or leave them out."
            )


def _listed(text: str) -> tuple[str, ...]:
    """Read a list with commas."""
    return tuple(each.strip() for each in text.split(",")) if text.strip() else ()
