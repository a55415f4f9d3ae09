"""Hadoop's configuration: the files that every client reads, and the settings of each server."""

from pathlib import Path
from xml.sax.saxutils import escape

from ha.sandbox.launcher import LaunchedProgram
from ha.sandbox.ports import LOOPBACK
from ha.sandbox.secured import Secured
from ha.sandbox.state import Server, State, replace_file

NAMESERVICE = "sandbox"

_PACKAGE = "org.apache.hadoop.hdfs"
_MAIN = {
    "namenode": f"{_PACKAGE}.server.namenode.NameNode",
    "datanode": f"{_PACKAGE}.server.datanode.DataNode",
    "journalnode": f"{_PACKAGE}.qjournal.server.JournalNode",
}


def filesystem(state: State) -> str:
    """Return the URI of the file system, without a path."""
    namenodes = state.of("namenode")
    return f"hdfs://{NAMESERVICE}" if len(namenodes) > 1 else address(namenodes[0], state)


def web_filesystem(state: State) -> str:
    """Return the URI of the same file system over WebHDFS, without a path."""
    namenodes = state.of("namenode")
    where = NAMESERVICE if len(namenodes) > 1 else f"{state.host}:{namenodes[0].ports[namenodes[0].web]}"
    return f"{'swebhdfs' if state.secured else 'webhdfs'}://{where}"


def address(namenode: Server, state: State) -> str:
    """Return the URI of one NameNode, whether or not it is the active one."""
    return f"hdfs://{state.host}:{namenode.ports['rpc']}"


def namenode_id(server: Server) -> str:
    return f"nn{server.number}"


def write(state: State, conf: Path) -> None:
    """Write ``core-site.xml`` and ``hdfs-site.xml``: what ``HADOOP_CONF_DIR`` points clients to."""
    _write_site(conf / "core-site.xml", _core_site(state))
    _write_site(conf / "hdfs-site.xml", _hdfs_site(state))
    if state.secured:
        _write_site(conf / "ssl-server.xml", Secured(state).ssl_server())
        _write_site(conf / "ssl-client.xml", Secured(state).ssl_client())


def program(server: Server, state: State, data: Path, temporary: Path, *extra: str) -> LaunchedProgram:
    """Return how to run a server: its own settings are given on its command line, not in the clients' files."""
    # ``data`` has a folder for each server, ``temporary`` is thrown away, and ``extra`` are arguments such as
    # ``-format``.
    home = data / server.name
    settings = {"hadoop.tmp.dir": str(temporary / server.name), **_SETTINGS[server.kind](server, state, home)}
    return LaunchedProgram(_MAIN[server.kind], (*(f"-D{key}={value}" for key, value in settings.items()), *extra))


def administration(tool: str, *arguments: str) -> LaunchedProgram:
    """Return how to run ``DFSHAAdmin`` or ``DFSAdmin``."""
    return LaunchedProgram(main=f"{_PACKAGE}.tools.{tool}", arguments=arguments)


def name_directory(server: Server, data: Path) -> Path:
    """Return where a NameNode keeps its namespace."""
    return data / server.name / "name"


def _core_site(state: State) -> dict[str, str]:
    return {
        **(Secured(state).core_site() if state.secured else {}),
        "fs.defaultFS": filesystem(state),
        # Errors shall show in seconds: by default a client tries 10 times a second apart, and 45 times on timeouts.
        "ipc.client.connect.timeout": "2000",
        "ipc.client.connect.max.retries": "2",
        "ipc.client.connect.max.retries.on.timeouts": "1",
        "ipc.client.connect.retry.interval": "200",
        "ipc.client.rpc-timeout.ms": "5000",
        "ha.failover-controller.cli-check.rpc-timeout.ms": "3000",
        "ha.failover-controller.graceful-fence.rpc-timeout.ms": "2000",
        "ha.failover-controller.graceful-fence.connection.retries": "1",
        # Its superuser may act for others, as a gateway does that is put before it.
        **{f"hadoop.proxyuser.{state.user}.{each}": "*" for each in ("hosts", "groups")},
    }


def _hdfs_site(state: State) -> dict[str, str]:
    site = {
        "dfs.replication": "1",
        "dfs.permissions.enabled": "true",
        "dfs.webhdfs.enabled": "true",
        "dfs.client.failover.sleep.base.millis": "50",
        "dfs.client.failover.sleep.max.millis": "500",
        "dfs.client.block.write.replace-datanode-on-failure.enable": "false",
    }
    namenodes = state.of("namenode")
    if state.secured:
        site |= Secured(state).hdfs_site()
    if len(namenodes) == 1:
        return site | _addresses(namenodes[0], "", state.host)
    site |= {
        "dfs.nameservices": NAMESERVICE,
        f"dfs.ha.namenodes.{NAMESERVICE}": ",".join(map(namenode_id, namenodes)),
        f"dfs.client.failover.proxy.provider.{NAMESERVICE}": (
            f"{_PACKAGE}.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
        # The journal itself refuses a NameNode that was replaced; there is no machine to switch off.
        "dfs.ha.fencing.methods": "shell(/bin/true)",
    }
    for server in namenodes:
        site |= _addresses(server, f".{NAMESERVICE}.{namenode_id(server)}", state.host)
    return site


def _addresses(server: Server, suffix: str, host: str) -> dict[str, str]:
    return {
        f"dfs.namenode.rpc-address{suffix}": f"{host}:{server.ports['rpc']}",
        f"dfs.namenode.{server.web}-address{suffix}": f"{host}:{server.ports[server.web]}",
    }


def _of_namenode(server: Server, state: State, home: Path) -> dict[str, str]:
    settings = {
        "dfs.namenode.name.dir": f"file://{home / 'name'}",
        "dfs.namenode.safemode.extension": "0",
        # A DataNode that is gone is known to be dead after 14 s: twice the first, ten times the second.
        "dfs.namenode.heartbeat.recheck-interval": "2000",
        "dfs.heartbeat.interval": "1",
    }
    journals = state.of("journalnode")
    if journals:
        quorum = ";".join(f"{state.host}:{each.ports['rpc']}" for each in journals)
        settings |= {
            "dfs.ha.namenode.id": namenode_id(server),  # both live on one address: Hadoop cannot tell by itself
            "dfs.namenode.shared.edits.dir": f"qjournal://{quorum}/{NAMESERVICE}",
            "dfs.ha.tail-edits.period": "1",
            # A restarted NameNode waits for blocks that were deleted in the open segment, until that is closed. By
            # default that takes two minutes, all in safe mode.
            "dfs.ha.log-roll.period": "30",
        }
    return settings


def _of_datanode(server: Server, state: State, home: Path) -> dict[str, str]:
    return {
        "dfs.datanode.data.dir": f"file://{home / 'blocks'}",
        "dfs.datanode.hostname": state.host,
        "dfs.datanode.address": f"{LOOPBACK}:{server.ports['data']}",
        f"dfs.datanode.{server.web}.address": f"{LOOPBACK}:{server.ports[server.web]}",
        "dfs.datanode.ipc.address": f"{LOOPBACK}:{server.ports['ipc']}",
        "dfs.heartbeat.interval": "1",
        # It may be started before its NameNode: it knocks until that opens, for a minute.
        "ipc.client.connect.max.retries": "600",
        "ipc.client.connect.retry.interval": "100",
    }


def _of_journalnode(server: Server, _state: State, home: Path) -> dict[str, str]:
    return {
        "dfs.journalnode.edits.dir": str(home / "edits"),
        "dfs.journalnode.rpc-address": f"{LOOPBACK}:{server.ports['rpc']}",
        f"dfs.journalnode.{server.web}-address": f"{LOOPBACK}:{server.ports[server.web]}",
    }


_SETTINGS = {"namenode": _of_namenode, "datanode": _of_datanode, "journalnode": _of_journalnode}


def _write_site(path: Path, settings: dict[str, str]) -> None:
    pairs = [(escape(name), escape(value)) for name, value in settings.items()]
    lines = [f"  <property><name>{name}</name><value>{value}</value></property>" for name, value in pairs]
    replace_file(path, "\n".join(["<configuration>", *lines, "</configuration>", ""]))  # a server may be reading it
