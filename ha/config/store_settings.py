"""Settings of the stores: where HDFS and ZooKeeper are, and who this process is for them."""

import re

import msgspec

from ha.config.setting import check_choice, setting, shown
from ha.placement.place import HASH, LEAST_JOBS, LEAST_RPC
from leader.errors import InvalidSettings
from store.errors import Invalid
from store.zookeeper.security import Security


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
