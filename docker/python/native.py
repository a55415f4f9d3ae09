#!/usr/bin/env python3
"""Native libraries of Spark's jars as files of the image: a JVM that finds them there unpacks none into /tmp.

Platforms mount /tmp without the right to execute (noexec), and there is no other place to write in a read-only image.
"""

import platform
import zipfile
from pathlib import Path

MACHINE = platform.machine()
LINUX, JAVA = {"x86_64": ("linux64", "amd64"), "aarch64": ("linux-aarch64", "aarch64")}[MACHINE]
WANTED = {
    "rocksdbjni-*.jar": f"librocksdbjni-{LINUX}.so",
    "zstd-jni-*.jar": f"linux/{JAVA}/libzstd-jni-*.so",
    "lz4-java-*.jar": f"net/jpountz/util/linux/{JAVA}/liblz4-java.so",
    "snappy-java-*.jar": f"org/xerial/snappy/native/Linux/{MACHINE}/libsnappyjava.so",
}
JARS = Path("/usr/local/lib/python3.11/dist-packages/pyspark/jars")
PLACE = Path("/usr/local/lib/spark")
"""In LD_LIBRARY_PATH, by which a JVM finds libraries."""


def main() -> None:
    """Unpack them."""
    PLACE.mkdir()
    for jar, name in WANTED.items():
        (found,) = JARS.glob(jar)
        with zipfile.ZipFile(found) as archive:
            (library,) = (each for each in archive.namelist() if Path(each).match(name))
            (PLACE / Path(library).name).write_bytes(archive.read(library))
    # Snappy looks nowhere by itself.
    told = f"org.xerial.snappy.lib.path={PLACE}\norg.xerial.snappy.lib.name=libsnappyjava.so\n"
    with zipfile.ZipFile(JARS / "snappy-place.jar", "w") as archive:
        archive.writestr("org-xerial-snappy.properties", told)


main()
