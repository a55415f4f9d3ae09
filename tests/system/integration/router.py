"""A real router of HDFS federation, in front of NameNodes that run."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ha.hosts.java import FLAGS, find_java
from ha.sandbox.jars import Bundle
from ha.sandbox.polling import until
from ha.sandbox.ports import LOOPBACK, free_ports
from store.errors import StoreError
from store.open import open_files
from tests.limits import HANGS_S
from tests.system.integration.jars import had

HADOOP = "3.4.1"
"""The newest whose router the registry has; PySpark's client jars, with which the sandbox's servers run, have none."""

ROUTER = Bundle(
    f"hadoop-router-{HADOOP}",
    (
        *(
            ("org.apache.hadoop", f"hadoop-{name}", HADOOP)
            for name in ("hdfs-rbf", "common", "hdfs", "hdfs-client", "auth", "annotations", "federation-balance")
        ),
        ("org.apache.hadoop.thirdparty", "hadoop-shaded-guava", "1.3.0"),
        ("org.apache.hadoop.thirdparty", "hadoop-shaded-protobuf_3_25", "1.3.0"),
        ("com.fasterxml.woodstox", "woodstox-core", "5.4.0"),
        ("org.codehaus.woodstox", "stax2-api", "4.2.1"),
        ("commons-collections", "commons-collections", "3.2.2"),
        ("org.apache.commons", "commons-configuration2", "2.10.1"),
        ("org.codehaus.jettison", "jettison", "1.5.4"),
    ),
    transitive=False,
    digest="2a53fefbe6fd710369aa0517c5c5e13fc493a4446d1490459da3fa8125815d9b",
    megabytes=25,
)

FROM_SPARK = ("commons-*", "jackson-*", "slf4j-api", "log4j-*")
"""The other jars that it needs."""

PACKAGE = "org.apache.hadoop.hdfs"
STORE = f"{PACKAGE}.server.federation.store.driver.impl.StateStoreFileImpl"
WITHIN_S = 60.0


@contextmanager
def routing(
    folder: Path, namenodes: Mapping[str, Sequence[str]], mounts: Mapping[str, tuple[str, str]]
) -> Iterator[str]:
    """Run a router, with its state in files; give its address. Without its jars the test is skipped.

    Args:
        folder: for its configuration, its state and its logs.
        namenodes: addresses of the NameNodes of each nameservice, all of them active.
        mounts: for each path of the router, the nameservice and the path there.

    Raises:
        SandboxError: it does not serve.
    """
    java, jars = find_java(), had(ROUTER, *FROM_SPARK)
    rpc, admin = (f"{LOOPBACK}:{port}" for port in free_ports(2))
    prefix = "dfs.federation.router"
    settings = {
        "dfs.nameservices": ",".join(namenodes),
        **_addresses(namenodes),
        f"{prefix}.monitor.localnamenode.enable": "false",
        f"{prefix}.rpc-address": rpc,
        f"{prefix}.admin-address": admin,
        f"{prefix}.http.enable": "false",
        f"{prefix}.metrics.enable": "false",
        f"{prefix}.safemode.enable": "false",
        f"{prefix}.default.nameservice.enable": "false",
        f"{prefix}.heartbeat.interval": "1000",
        f"{prefix}.cache.ttl": "1000",
        f"{prefix}.store.driver.class": STORE,
        f"{prefix}.store.driver.file.directory": str(folder / "state"),
    }
    conf = folder / "conf"
    conf.mkdir()
    entries = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()
    )
    (conf / "hdfs-rbf-site.xml").write_text(f"<configuration>{entries}</configuration>")
    (conf / "hdfs-site.xml").write_text(f"<configuration>{entries}</configuration>")

    def command(main: str, *arguments: str) -> list[str]:
        path = os.pathsep.join(map(str, [conf, *jars]))
        return [str(java.path), *FLAGS, "-cp", path, f"{PACKAGE}.{main}", *arguments]

    environment = {**os.environ, "HADOOP_CONF_DIR": str(conf)}
    with (folder / "router.log").open("ab") as log:
        process = subprocess.Popen(
            command("server.federation.router.DFSRouter"), env=environment, stdout=log, stderr=log
        )
    try:
        for path, (nameservice, there) in mounts.items():
            until(
                lambda path=path, nameservice=nameservice, there=there: _problem(  # type: ignore[misc]
                    command("tools.federation.RouterAdmin", "-add", path, nameservice, there), environment
                ),
                WITHIN_S,
                f"The router does not mount {path}",
            )
            until(lambda path=path: _unserved(f"hdfs://{rpc}{path}"), WITHIN_S, f"The router does not serve {path}")  # type: ignore[misc]
        yield rpc
    finally:
        process.kill()
        process.wait(HANGS_S)


def _addresses(namenodes: Mapping[str, Sequence[str]]) -> dict[str, str]:
    found = dict[str, str]()
    monitored = list[str]()
    for name, addresses in namenodes.items():
        ids = [f"nn{number}" for number in range(len(addresses))]
        found[f"dfs.ha.namenodes.{name}"] = ",".join(ids)
        found |= {f"dfs.namenode.rpc-address.{name}.{each}": at for each, at in zip(ids, addresses, strict=True)}
        monitored += [f"{name}.{each}" for each in ids]
    return found | {"dfs.federation.router.monitor.namenode": ",".join(monitored)}


def _problem(command: list[str], environment: Mapping[str, str]) -> str | None:
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=WITHIN_S, check=False)
    return None if "Successfully added" in done.stderr + done.stdout else (done.stderr.strip() or "no answer")[-300:]


def _unserved(uri: str) -> str | None:
    try:
        with open_files(uri) as files:
            files.call("make the root", lambda driver: driver.make_root(), WITHIN_S)
    except StoreError as error:
        return f"{error}"
    return None
