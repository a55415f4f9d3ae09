"""Faults that are broken on purpose, one by one, without servers: what is broken, and the command that meets it."""

import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

from ha.doctor.host import FEWEST_DESCRIPTORS, LEAST_SHARED_MEMORY, PROVIDER, ROCKSDB
from ha.hosts.java import find_java
from leader.job.barring import drain
from leader.layout import tree
from leader.layout.bar import Bar
from store.local import LocalFiles

LIST = "job list"
RUN = "run orders -- true"
DOCTOR = "host doctor"


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        broken: what is wrong, as a person would say it.
        command: which meets it.
        variables: of the environment; PLACE is the directory of this fault.
        files: in that directory, with their contents.
        ready: does what else is to be done.
        replaced: names in modules, with what stands for them: a host on which something is wrong.
    """

    broken: str
    command: str = LIST
    variables: dict[str, str] = field(default_factory=dict)
    files: dict[str, str | bytes] = field(default_factory=dict)
    ready: Callable[[Path], object] = lambda _: None
    replaced: dict[str, object] = field(default_factory=dict)


def _core(**properties: str) -> dict[str, str | bytes]:
    rows = "".join(
        f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    return {"hadoop/core-site.xml": f"<configuration>{rows}</configuration>"}


HADOOP = {"HADOOP_CONF_DIR": "PLACE/hadoop"}
SPARK = {"SPARK_CONF_DIR": "PLACE/spark"}


def one_job(place: Path) -> Path:
    """Make a job that has no leader yet; returns its leader directory."""
    tree.create(LocalFiles(place / "jobs", durable=False), "orders")
    (home,) = (place / "jobs/orders").glob("0*")
    return home


def _without_lease(place: Path) -> None:
    (lease,) = one_job(place).glob("record/lease~*")
    lease.rmdir()


def _without_leader_directory(place: Path) -> None:
    home = one_job(place)
    home.rename(home.with_name("gone"))


def _with_stray(place: Path) -> Path:
    home = one_job(place)
    stray = home.with_name(f"9999999999-{'a' * 8}-aaaa-4aaa-8aaa-{'a' * 12}")
    stray.mkdir()
    return stray


def _with_full_stray(place: Path) -> None:
    (_with_stray(place) / "data").touch()


def _with_second_lease(place: Path) -> None:
    (one_job(place) / "record/lease~1").mkdir()


def _drained(place: Path) -> None:
    drain(LocalFiles(place / "jobs", durable=False), Bar("a", 4_102_444_800, "ada", "new disks"))


def _copy(files: LocalFiles, _: str, destination: str) -> None:
    files.make_directory(destination)


@contextmanager
def taken_port() -> Iterator[int]:
    """Yield a port of this host that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _files(uri: str) -> dict[str, str]:
    return {"HA_FILES": uri}


def _zookeeper(**more: str) -> dict[str, str]:
    return {"HA_ZOOKEEPER": "127.0.0.1:1", **{f"HA_ZOOKEEPER_{name.upper()}": value for name, value in more.items()}}


def _toml(text: str | bytes) -> dict[str, str | bytes]:
    return {"ha.toml": text}


STORES = [
    Fault("`files` is no URI", variables=_files("orders")),
    Fault("`files` has a scheme that is not known", variables=_files("s3://bucket/ha")),
    Fault("`files` has a comma in its path", variables=_files("file:///a,b")),
    Fault("no NameNode listens at that port", variables=_files("hdfs://127.0.0.1:1/ha")),
    Fault("no NameNode listens at that port, in IPv6", variables=_files("hdfs://[::1]:1/ha")),
    Fault("the NameNode's host is not known", variables=_files("hdfs://no-such-host.invalid:8020/ha")),
    Fault("a nameservice, and no configuration of Hadoop", variables=_files("hdfs://ns1/ha")),
    Fault("`hdfs:///`, and no `fs.defaultFS`", variables=_files("hdfs:///ha")),
    Fault("no NameNode listens at that port of WebHDFS", variables=_files("webhdfs://127.0.0.1:1/ha")),
    Fault("no NameNode listens at that port of HTTPS", variables=_files("swebhdfs://127.0.0.1:1/ha")),
    Fault("`webhdfs_ca` is not there", variables={**_files("swebhdfs://127.0.0.1:1/ha"), "HA_WEBHDFS_CA": "PLACE/ca"}),
    Fault("`file://` with a host", variables=_files("file://host/ha")),
    Fault("`files` is a file", variables=_files("file://PLACE/ha"), files={"ha": ""}),
    Fault("`files` is below a file", variables=_files("file://PLACE/ha/jobs"), files={"ha": ""}),
    Fault("no directory can be made at `files`", "job submit orders -- true", _files("file:///proc/ha")),
    Fault("no directory can be made at `files`", DOCTOR, _files("file:///proc")),
    Fault("there is nothing at `files` yet", DOCTOR, _files("file://PLACE/none")),
    Fault("`files` is below a file", DOCTOR, _files("file://PLACE/ha/jobs"), {"ha": ""}),
    Fault("no NameNode listens at that port", DOCTOR, _files("hdfs://127.0.0.1:1/ha")),
    Fault("the NameNode's host has an underscore", DOCTOR, _files("hdfs://name_node.invalid:8020/ha")),
    Fault("the NameNode is slow", DOCTOR, replaced={"ha.doctor.file_system.SLOW_S": 0.0}),
    Fault("a file system that copies where it is to rename", DOCTOR, replaced={"store.local.LocalFiles.rename": _copy}),
    Fault("`directory_mode` leaves the owner without rights", variables={"HA_DIRECTORY_MODE": "0123"}),
    Fault("`placement` is not one", variables={"HA_PLACEMENT": "random"}),
]

NS1, DEFAULT_FS = ({**_files(uri), **HADOOP} for uri in ("hdfs://ns1/ha", "hdfs:///ha"))

HADOOP_FAULTS = [
    Fault("HADOOP_CONF_DIR is not there", variables=NS1),
    Fault("`core-site.xml` is no XML", LIST, NS1, {"hadoop/core-site.xml": "<configuration>"}),
    Fault(
        "`fs.defaultFS` names a property that is not there", LIST, DEFAULT_FS, _core(fs_defaultFS="hdfs://${nn.host}")
    ),
    Fault("`fs.defaultFS` is not HDFS", LIST, DEFAULT_FS, _core(fs_defaultFS="s3a://bucket")),
    Fault("a NameNode of the nameservice has no address", LIST, NS1, _core(dfs_nameservices="ns1")),
    Fault("a keytab without a principal", variables={"HA_KERBEROS_KEYTAB": "PLACE/keytab"}),
    Fault(
        "the keytab is not there",
        variables={"HA_KERBEROS_KEYTAB": "PLACE/keytab", "HA_KERBEROS_PRINCIPAL": "ha@EXAMPLE.ORG"},
    ),
]

SECRET: dict[str, str | bytes] = {"secret": "ann:pw"}
LOGIN, TLS = _zookeeper(auth="digest", credentials="PLACE/secret"), _zookeeper(tls_ca="PLACE/ca.pem")

ZOOKEEPER = [
    Fault("`zookeeper` has a port that cannot be", variables={"HA_ZOOKEEPER": "zk1:99999"}),
    Fault("`zookeeper` has a scheme", variables={"HA_ZOOKEEPER": "zk://zk1:2181"}),
    Fault("no ZooKeeper listens there", DOCTOR, _zookeeper()),
    Fault("no ZooKeeper listens there, in IPv6", DOCTOR, {"HA_ZOOKEEPER": "[::1]:1"}),
    Fault("ZooKeeper's host is not known", DOCTOR, {"HA_ZOOKEEPER": "no-such-host.invalid:2181"}),
    Fault("`zookeeper_auth` is not one", variables=_zookeeper(auth="password")),
    Fault("`digest` without credentials", variables=_zookeeper(auth="digest")),
    Fault("the file of credentials is not there", DOCTOR, LOGIN),
    Fault("the file of credentials has another form", DOCTOR, LOGIN, {"secret": "no colon"}),
    Fault("`zookeeper_tls_ca` is not there", DOCTOR, TLS),
    Fault("`zookeeper_tls_ca` is no certificate", DOCTOR, TLS, {"ca.pem": "no certificate"}),
    Fault("others may read the file of credentials", DOCTOR, LOGIN, SECRET, lambda at: (at / "secret").chmod(0o644)),
    Fault("a certificate without `zookeeper_tls_ca`", variables=_zookeeper(tls_certificate="PLACE/own.pem")),
    Fault("`zookeeper_acl` is creator, without a login", variables=_zookeeper(acl="creator")),
]

GROUP = "[groups.west]\nfiles=['hdfs://a:1/x'"
HTTP = {"HA_LISTEN": "127.0.0.1:0"}

SETTINGS = [
    Fault("HA_FILES is misspelt", variables={"HA_FLIES": "hdfs://ns1/ha"}),
    Fault("HA_CONFIG names no file", variables={"HA_CONFIG": "PLACE/none.toml"}),
    Fault("`ha.toml` is a directory", files={"ha.toml/x": ""}),
    Fault("`ha.toml` is no TOML", files=_toml("files = hdfs://ns1/ha")),
    Fault("`ha.toml` is in Latin-1", files=_toml(b"# caf\xe9\n")),
    Fault("`ha.toml` has a name that is no setting", files=_toml("file = 'hdfs://ns1/ha'")),
    Fault("`ha.toml` has a number that is none", files=_toml("short_ttl = 'soon'")),
    Fault("`ha.toml` has more than a megabyte", files=_toml("#" * 1_000_001)),
    Fault("a group that is not in `ha.toml`", LIST, _files("main"), _toml(f"{GROUP},'hdfs://b:1/x']")),
    Fault("a group of one root", files=_toml(f"{GROUP}]")),
    Fault("a duration in a unit that is not known", variables={"HA_SHORT_TTL": "10 parsecs"}),
    Fault("a duration that is no number", variables={"HA_SHORT_TTL": "nan"}),
    Fault("`long_ttl` is shorter than `short_ttl`", variables={"HA_SHORT_TTL": "60", "HA_LONG_TTL": "5"}),
    Fault("`contender` has a space", command=RUN, variables={"HA_CONTENDER": "host a"}),
    Fault("`restart_strategy` is not one", command=RUN, variables={"HA_RESTART_STRATEGY": "always"}),
    Fault("`liveness_probe` is not one", command=RUN, variables={"HA_LIVENESS_PROBE": "ping"}),
    Fault("`standby` is neither cold nor warm", command=RUN, variables={"HA_STANDBY": "hot"}),
    Fault("`listen` has no host", command=RUN, variables={"HA_LISTEN": "8300"}),
    Fault("`listen` is in use", command=RUN, variables={"HA_LISTEN": "127.0.0.1:PORT"}),
    Fault("`http_certificate` is not there", RUN, {**HTTP, "HA_HTTP_CERTIFICATE": "PLACE/own.pem"}),
    Fault("`http_read_tokens` is not there", RUN, {**HTTP, "HA_HTTP_READ_TOKENS": "PLACE/tokens"}),
]

STARTS = [
    Fault("the command is not on the PATH", command="run orders -- spark-submitt orders.py"),
    Fault("the command may not be executed", command="run orders -- PLACE/start.sh", files={"start.sh": "true"}),
    Fault("no COMMAND, and none is stored", command="run orders", ready=one_job),
    Fault("no COMMAND, and there is no such job", command="run orders"),
    Fault("`spark-submit` in cluster mode", command="run orders -- SUBMIT --deploy-mode cluster orders.py"),
    Fault("`--engine` with a shell script", command="run orders --engine -- sh orders.sh"),
    Fault("`--spark` together with `--engine`", command="run orders --spark --engine -- python orders.py"),
    Fault("the job's name is misspelt", command="job leader ordres", ready=one_job),
    Fault("the job's name is misspelt", "host doctor ordres", ready=one_job),
    Fault("the record of the job holds no lease", "host doctor orders", ready=_without_lease),
    Fault("the leader directory has gone", "host doctor orders", ready=_without_leader_directory),
    Fault("somebody has made a leader directory", "host doctor orders", ready=_with_stray),
    Fault("somebody has made one, with a file in it", "host doctor orders", ready=_with_full_stray),
    Fault("somebody has made a lease", "host doctor orders", ready=_with_second_lease),
]


def _free(temporary: int, shared: int = 2**30, flag: int = 0) -> dict[str, object]:
    room = SimpleNamespace(f_bavail=temporary, f_frsize=1, f_flag=flag)
    return {
        "os.statvfs": Mock(return_value=room),
        "shutil.disk_usage": Mock(return_value=SimpleNamespace(free=shared)),
    }


TICKET = {**HADOOP, "KRB5CCNAME": "FILE:PLACE/none"}
SHARED = {"HA_ZOOKEEPER": "127.0.0.1:1", "HA_ZOOKEEPER_SESSION": "host", "HA_SNAPSHOTS": "PLACE/snapshots"}
KERBEROS = _core(hadoop_security_authentication="kerberos")
BAD_DEFAULTS: dict[str, str | bytes] = {"spark/spark-defaults.conf": f"{PROVIDER} {ROCKSDB}\n"}
FEW = FEWEST_DESCRIPTORS - 1, resource.RLIM_INFINITY
SMALL = LEAST_SHARED_MEMORY - 1

HOSTS = [
    Fault("the host is drained", DOCTOR, {"HA_CONTENDER": "a"}, ready=_drained),
    Fault("no agent lends its session", DOCTOR, SHARED),
    Fault("RocksDB without a bound on its memory", DOCTOR, SPARK, BAD_DEFAULTS),
    Fault("a driver's pages are open to all", DOCTOR, {"SPARK_LOCAL_IP": ""}),
    Fault(
        "there is no Java",
        DOCTOR,
        {"JAVA_HOME": "PLACE", "PATH": "PLACE"},
        replaced={"ha.doctor.host.find_java": find_java},
    ),
    Fault("there is no PySpark", DOCTOR, replaced={"ha.doctor.host.version": Mock(side_effect=PackageNotFoundError)}),
    Fault("a process may open few files", DOCTOR, replaced={"resource.getrlimit": Mock(return_value=FEW)}),
    Fault("there is no shared memory", DOCTOR, replaced={"ha.doctor.host.SHARED_MEMORY": Path("/proc/none")}),
    Fault("shared memory is full", DOCTOR, replaced=_free(2**30, SMALL)),
    Fault("the temporary directory is gone", DOCTOR, replaced={"tempfile.tempdir": "/proc/none"}),
    Fault("the temporary directory is full", DOCTOR, replaced=_free(SMALL)),
    Fault("the temporary directory is mounted noexec", DOCTOR, replaced=_free(2**30, flag=os.ST_NOEXEC)),
    Fault("the clock runs too fast", DOCTOR, replaced={"ha.doctor.host._rate_error": lambda: 0.02}),
    Fault("there is no ticket", DOCTOR, TICKET, KERBEROS),
    Fault(
        "the ticket has expired", DOCTOR, TICKET, KERBEROS, replaced={"ha.doctor.host.ticket": lambda: (-5.0, 600.0)}
    ),
]

FAULTS = {
    "Stores": STORES,
    "Hadoop": HADOOP_FAULTS,
    "ZooKeeper": ZOOKEEPER,
    "Settings": SETTINGS,
    "Starts and jobs": STARTS,
    "Hosts": HOSTS,
}
