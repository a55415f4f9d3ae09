"""The page of faults: each is broken, and what its command says first is written down."""

import contextlib
import functools
import io
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from ha.cli.commands import exit_code
from ha.hosts.java import Java
from tests.unit.ha.faults.catalogue import DOCTOR, FAULTS, Fault, one_job, taken_port

PAGE = Path(__file__).with_name("FAULTS.md")

HEAD = """# What it says when something is wrong

Made by `python -m tests.unit.ha.faults.page`, which breaks one thing at a time and runs the command. Do not edit it.
`PLACE` is a directory. Of `ha host doctor` each line is shown that it does not say of a host on which all is well,
but for those that are ok; of other commands the first sentence.
"""

TABLE = "\n## {}\n\n| broken | command | what it says |\n|---|---|---|\n"

# Each costs time, or depends on the host; those of which a fault is meant replace it.
ALWAYS: dict[str, object] = {
    "tempfile.tempdir": None,
    "ha.doctor.file_system.SLOW_S": 1000.0,
    "ha.doctor.servers.SLOW_S": 1000.0,
    "ha.doctor.examination.PATIENCE": 20,
    "ha.doctor.host._rate_error": lambda: 0.0,
    "ha.doctor.host.find_java": lambda: Java(Path("/usr/bin/java"), "", 17),
}


def said(fault: Fault, place: Path) -> str:
    """Break it, run the command, and return its sentence; of the doctor all lines that a healthy host does not have."""
    output, errors = outcome(fault, place)
    if not fault.command.startswith(DOCTOR):
        return first(errors)
    found = [each for each in bad(output) if _anywhere(each) not in _healthy()]
    return "<br>".join(found) if found else f"nothing: {output[-300:]}"


@functools.cache
def _healthy() -> list[str]:
    """Return what the doctor says of a host on which all is well: tests have one file system, and no ZooKeeper."""
    with tempfile.TemporaryDirectory() as folder:
        well = Fault("nothing", f"{DOCTOR} orders", ready=one_job)
        return [_anywhere(each) for each in bad(outcome(well, Path(folder))[0])]


def _anywhere(line: str) -> str:
    return re.sub(r"file:\S+", "URI", line)


def bad(output: str) -> list[str]:
    """Return each line of the doctor that is not ok."""
    rows = [" ".join(each.split()) for each in re.split(r"\n(?=\S)", output.strip())]
    return [each for each in rows if not each.startswith("ok ")]


def outcome(
    fault: Fault, place: Path, servers: Mapping[str, str] = MappingProxyType({}), **named: str
) -> tuple[str, str]:
    """Break it, run the command, and return what it prints, without what differs each time."""
    # servers: variables that say where they are. named: names of what differs, and how it is called now.
    for name, text in fault.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(0o600)
    if DOCTOR in fault.command:
        (place / "jobs").mkdir(exist_ok=True)
    fault.ready(place)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HA_", "HADOOP", "SPARK"))}
    environment |= {"HA_FILES": f"file://{place}/jobs", "HA_SNAPSHOTS": "off", "HA_SESSION_TIMEOUT": "2"}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", **servers}
    output, errors = io.StringIO(), io.StringIO()
    with taken_port() as port, contextlib.chdir(place), contextlib.ExitStack() as stack:
        named |= {"PLACE": str(place), "PORT": str(port), "SUBMIT": _submit(place)}
        given = {name: _filled(value, named) for name, value in fault.variables.items()}
        stack.enter_context(patch.dict(os.environ, environment | given, clear=True))
        for name, value in (ALWAYS | fault.replaced).items():
            stack.enter_context(patch(name, value))
        stack.enter_context(contextlib.redirect_stdout(output))
        stack.enter_context(contextlib.redirect_stderr(errors))
        stack.enter_context(contextlib.suppress(SystemExit))
        exit_code(_filled(fault.command, named).split())
    return _alike(output.getvalue(), named), _alike(errors.getvalue(), named)


def _alike(told: str, named: Mapping[str, str]) -> str:
    for name, value in named.items():
        told = told.replace(value, name)
    told = re.sub(r"\d+\.\d+ (m?s)\b", r"N \1", told)
    told = re.sub(r"\btmp\w{8}\b|\b[0-9a-f]{16}\b", "ANY", told.replace(f"{tempfile.gettempdir()} ", "TMPDIR "))
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", told)


def _submit(place: Path) -> str:
    path = place / "spark-submit"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def _filled(text: str, named: dict[str, str]) -> str:
    for name, value in named.items():
        text = text.replace(name, value)
    return text


def first(errors: str) -> str:
    """Return the first sentence of a command that has failed."""
    for line in errors.splitlines():
        if line.startswith(("ha: ", "Error: ")):
            return line.partition(": ")[2]
    return f"nothing: {errors[-300:]}"


def rows() -> Iterator[tuple[str, Fault, str]]:
    """Yield each fault with what was said."""
    for group, faults in FAULTS.items():
        for fault in faults:
            with tempfile.TemporaryDirectory() as folder:
                yield group, fault, said(fault, Path(folder))


def made() -> str:
    text, before = HEAD, ""
    for group, fault, told in rows():
        text += TABLE.format(group) if group != before else ""
        text, before = text + row(fault.broken, fault.command, told), group
    return text


def row(broken: str, command: str, told: str) -> str:
    """Return a row of the table."""
    cell = told.replace("|", "\\|").replace("<", "&lt;").replace("&lt;br>", "<br>")
    return f"| {broken} | `ha {command.replace('|', '/')}` | {cell} |\n"


if __name__ == "__main__":
    PAGE.write_text(made())
