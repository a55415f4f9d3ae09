"""Checks of the file system: reach, permissions, and whether its rename is the compare-and-swap that all rests on."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeVar

from ha.doctor.finding import DATANODES, Finding, failed, ok, remedy, warning
from store import contract
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import NoSpace, NotFound, PermissionDenied, StoreError
from store.files import Files
from store.traits import traits

T = TypeVar("T")

RACERS = 8
LEFT_OVER_MS = 86_400_000  # age at which the names of a try that was killed are leftovers: it takes seconds
SLOW_S = 0.1  # a call that takes longer than this makes every takeover slow

REACH = "files"
RENAME = "rename"
PERMISSIONS = "permissions"
CONTENTS = "contents"


def check_file_system(files: BoundedFiles, timeout: float) -> Iterator[Finding]:
    """Yield what was found at the root; a probe directory is made there and removed again."""
    started = now()
    try:
        files.call("list", lambda driver: driver.list(""), timeout)
    except NotFound:
        yield warning(REACH, f"{files.uri} does not exist yet.", "The first contender creates it, if it may.")
        return
    except StoreError as error:
        yield failed(REACH, f"{files.uri} cannot be listed: {error}", remedy(error))
        return
    took = now() - started
    found = f"{files.uri} was listed in {took * 1000:.1f} ms."
    slow = "Look at the NameNode's load: takeovers and renewals take a few calls each."
    yield ok(REACH, found) if took < SLOW_S else warning(REACH, found, slow)
    yield from _probe(files, timeout)


def _probe(files: BoundedFiles, timeout: float) -> Iterator[Finding]:
    name = f".doctor-{uuid.uuid4()}"
    try:
        broken = files.call("probe", lambda driver: contract.broken(driver, contract.fresh()), timeout)
        if broken:
            yield failed("replacing", f"{broken}.", "Do not use this file system: no process contends there.")
            return
        files.call("probe", lambda driver: driver.make_directory(name), timeout)
    except StoreError as error:
        yield failed(PERMISSIONS, f"Nothing can be created in {files.uri}: {error}", remedy(error))
        return
    yield ok(PERMISSIONS, f"This user may create and rename in {files.uri}.")
    yield ok("replacing", "A rename is done once, and onto an existing directory it is refused.")
    try:
        yield _race(files, name, timeout)
        files.call("probe", lambda driver: sweep(driver, "", name), timeout)
        hindered = check_contents(files, "", CONTENTS, timeout)
        yield hindered or ok(CONTENTS, "A file with a byte in it can be written there.")
    except StoreError as error:
        yield failed(RENAME, f"A rename could not be tried: {error}", remedy(error))
    finally:
        files.outcome("probe", lambda driver: driver.delete(name, recursive=True), timeout)


def check_contents(files: BoundedFiles, folder: str, check: str, timeout: float) -> Finding | None:
    """Write a file with a byte in it, and remove it again; returns what hinders that: a quota, a disk, a DataNode."""
    path = f"{folder}/.doctor-{uuid.uuid4()}".lstrip("/")
    hindered = files.outcome("probe", lambda driver: driver.write(path, b"x"), timeout).error
    files.outcome("probe", lambda driver: driver.delete(path), timeout)
    if hindered is None or isinstance(hindered, NotFound):  # a leader has claimed the job, or nothing is there yet
        return None
    step = f"Names can be made there: {DATANODES}"
    if isinstance(hindered, (PermissionDenied, NoSpace)) or traits(files.uri).local:
        step = remedy(hindered)
    return failed(check, f"No file can be written in {files.at(folder)}: {hindered}", step)


def _race(files: BoundedFiles, name: str, timeout: float) -> Finding:
    """Let some threads rename one directory: exactly one may win."""
    files.call("probe", lambda driver: driver.make_directory(f"{name}/source"), timeout)
    won: list[int] = []

    def rename(number: int) -> None:
        target = f"{name}/target-{number}"
        outcome = files.outcome("probe", lambda driver: driver.rename(f"{name}/source", target), timeout)
        if outcome.done:
            won.append(number)

    threads = [threading.Thread(target=rename, args=(number,)) for number in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = files.call("probe", lambda driver: [entry.name for entry in driver.list(name)], timeout)
    if len(won) == 1 and left == [f"target-{won[0]}"]:
        return ok(RENAME, f"Of {RACERS} renames of one directory exactly one won.")
    return failed(
        RENAME,
        f"Of {RACERS} renames of one directory {len(won)} won, and {len(left)} directories are left.",
        "Do not use this file system: its rename is no compare-and-swap, and two contenders could lead.",
    )


def sweep(driver: Files, folder: str, present: str) -> None:
    """Delete what tries of the contract have left there that were killed, by the store's clock at ``present``."""
    there = {each.name: each.modified_ms for each in driver.list(folder)}
    for name, modified_ms in there.items():
        if name.startswith(contract.TRIED) and modified_ms < there.get(present, 0) - LEFT_OVER_MS:
            with suppress(NotFound):
                driver.delete(f"{folder}/{name}".lstrip("/"), recursive=True)
