"""HttpFS itself, before a NameNode that runs."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ha.hosts.java import FLAGS, find_java
from ha.sandbox.jars import Bundle
from ha.sandbox.polling import until
from ha.sandbox.ports import LOOPBACK, free_ports, listens
from tests.limits import HANGS_S
from tests.system.integration.gateway import Gateway
from tests.system.integration.jars import had

HADOOP = "3.4.2"
"""The newest whose HttpFS the registry has."""

JERSEY, JETTY, SLF4J = "1.19.4", "9.4.57.v20241219", "1.7.36"

HTTPFS = Bundle(
    f"hadoop-httpfs-{HADOOP}",
    (
        *(
            ("org.apache.hadoop", f"hadoop-{name}", HADOOP)
            for name in ("hdfs-httpfs", "common", "hdfs", "hdfs-client", "auth", "annotations")
        ),
        ("org.apache.hadoop.thirdparty", "hadoop-shaded-guava", "1.4.0"),
        ("org.apache.hadoop.thirdparty", "hadoop-shaded-protobuf_3_25", "1.4.0"),
        *(("com.sun.jersey", f"jersey-{name}", JERSEY) for name in ("core", "server", "servlet")),
        ("com.github.pjfanning", "jersey-json", "1.22.0"),
        *(
            ("org.eclipse.jetty", f"jetty-{name}", JETTY)
            for name in ("http", "io", "security", "server", "servlet", "util", "webapp", "xml")
        ),
        ("javax.servlet", "javax.servlet-api", "3.1.0"),
        ("javax.ws.rs", "jsr311-api", "1.1.1"),
        ("javax.xml.bind", "jaxb-api", "2.2.11"),
        ("com.sun.xml.bind", "jaxb-impl", "2.2.3-1"),
        ("jakarta.activation", "jakarta.activation-api", "1.2.1"),
        ("org.codehaus.jettison", "jettison", "1.5.4"),
        ("com.googlecode.json-simple", "json-simple", "1.1.1"),
        ("com.fasterxml.woodstox", "woodstox-core", "5.4.0"),
        ("org.codehaus.woodstox", "stax2-api", "4.2.1"),
        ("org.apache.commons", "commons-configuration2", "2.10.1"),
        *(("org.slf4j", f"slf4j-{name}", SLF4J) for name in ("api", "reload4j")),
        ("ch.qos.reload4j", "reload4j", "1.2.22"),
    ),
    transitive=False,
    digest="49209dffac82c777285a3e3cfa10423edcfbd55f52335fa7556abe55e115466a",
    megabytes=28,
)

FROM_SPARK = (
    *("commons-*", "jackson-annotations", "jackson-core", "jackson-databind", "jcl-over-slf4j"),
    *("curator-*", "httpc*", "zookeeper*"),
)
"""The other jars that it needs."""

MAIN = "org.apache.hadoop.fs.http.server.HttpFSServerWebServer"
OPENS = "java.base/java.lang=ALL-UNNAMED"
"""As Hadoop's own script for Java 17: JAXB defines classes."""

_LOG = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%p %c{1}: %m%n
"""
_REQUEST = re.compile(r'"[A-Z]+ (/webhdfs/v1/[^?\s]*)')
WITHIN_S = 60.0


@contextmanager
def httpfs(folder: Path, hadoop_conf: Path) -> Iterator[Gateway]:
    """Run HttpFS in the block, with its configuration and its log in a folder. Without its jars the test is skipped.

    Whoever calls is one whom the NameNode lets act for others; its address is in ``hadoop_conf``.

    Raises:
        SandboxError: it does not serve.
    """
    java, jars = find_java(), had(HTTPFS, *FROM_SPARK)
    (port,) = free_ports(1)
    settings = {
        "httpfs.http.hostname": LOOPBACK,
        "httpfs.http.port": str(port),
        "httpfs.hadoop.config.dir": str(hadoop_conf),
        "hadoop.tmp.dir": str(folder / "temp"),
    }
    for name in ("conf", "log", "temp"):
        (folder / name).mkdir(parents=True)
    entries = "".join(
        f"<property><name>{name}</name><value>{each}</value></property>" for name, each in settings.items()
    )
    (folder / "conf" / "httpfs-site.xml").write_text(f"<configuration>{entries}</configuration>")
    (folder / "conf" / "httpfs-log4j.properties").write_text(_LOG)
    command = [
        *(str(java.path), *FLAGS, "--add-opens", OPENS, f"-Dhttpfs.home.dir={folder}"),
        *(f"-Dhttpfs.{name}.dir={folder / at}" for name, at in (("config", "conf"), ("log", "log"), ("temp", "temp"))),
        *("-cp", os.pathsep.join(map(str, [folder / "conf", *jars]))),
        MAIN,
    ]
    written = folder / "httpfs.log"
    with written.open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        # It listens once it is ready for requests.
        until(
            lambda: None if listens(port, 1.0) else "it does not listen", WITHIN_S, f"HttpFS does not serve: {written}"
        )
        yield Gateway(f"{LOOPBACK}:{port}", lambda: _REQUEST.findall(written.read_text()))
    finally:
        process.kill()
        process.wait(HANGS_S)
