"""Preconditions: why a job cannot move now: it has moved lately, or no rename would reach where its outputs lie."""

import uuid
from urllib.parse import urlsplit

from leader.layout.names import OUT
from store.bounded import BoundedFiles
from store.errors import NotFound
from store.files import Files

REST_S = 30 * 60.0  # a job that has moved stays for so long, by the clock of the NameNode to which it came
CALL_TIMEOUT_S = 20.0


def time_of(files: BoundedFiles) -> int:
    """Return the time of a root's own clock, in milliseconds since 1970: that of a directory that is made for that."""
    folder = f".time-{uuid.uuid4().hex}"

    def ask(driver: Files) -> int:
        driver.make_directory(folder)
        try:
            driver.make_directory(f"{folder}/now")
            (found,) = driver.list(folder)
        finally:
            driver.delete(folder, recursive=True)
        return found.modified_ms

    return files.call("move", ask, CALL_TIMEOUT_S)


def rest(arrived_ms: int, now_ms: int) -> str:
    """Return how long a job stays that came at that time; empty if it may move."""
    left = REST_S - (now_ms - arrived_ms) / 1000
    return f"it has moved lately, and stays for {left / 60:.0f} min more" if left > 0 else ""


def outputs(files: BoundedFiles, job: str, leader: str) -> list[str]:
    """Return the outputs of a job that publish batches by renames out of its leader directory."""
    try:
        found = files.call("move", lambda driver: driver.list(f"{job}/{leader}/{OUT}"), CALL_TIMEOUT_S)
    except NotFound:
        return []
    return sorted(each.name for each in found if each.is_directory)


def bound(outputs: list[str], source: str, target: str) -> str:
    """Return which output keeps a job on its file system; empty if none does."""
    here, there = (urlsplit(root)[:2] for root in (source, target))
    if not outputs or here == there:
        return ""
    there_is = f"its output {outputs[0]!r} is published by renames on {here[0]}://{here[1]}"
    return f"{there_is}, and none leads there from outside"
