"""Checks of a job's directory: permissions, and names that no leader made; those can be mended."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from ha.config.setting import nearest
from ha.config.stores import Stores
from ha.doctor.file_system import check_contents, sweep
from ha.doctor.finding import Finding, failed, ok, remedy, warning
from ha.outputs.reading import JournalReader
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.layout import tree
from leader.layout.information import Record
from leader.layout.lease import LEASE, lost_lease
from leader.layout.names import RECORD, LeaderDirectory
from leader.layout.running import contradiction, others, runs
from store.bounded import BoundedFiles
from store.errors import HasSnapshots, NotFound, StoreError
from store.files import Files

MAX_ENTRIES = 100  # a directory made by hand with more in it is left to a person
Consent = Callable[[str], bool]  # takes a question, and says whether to do that


class _Look(msgspec.Struct, frozen=True):
    """One look into the job's directory."""

    present: LeaderDirectory  # the leader directory
    directories: frozenset[str]  # other names that look like one
    lease: bool  # whether the record holds a lease that counts
    leases: frozenset[str]  # names that begin like a lease, without the one that counts

    def confirmed(self, later: "_Look") -> "_Look":
        """Keep what both looks have found: a list beside a rename may show either of its names, or both, or none."""
        return _Look(
            later.present,
            self.directories & later.directories,
            self.lease or later.lease,
            self.leases & later.leases if self.present == later.present else frozenset(),
        )


def check_job_directory(
    files: BoundedFiles, job: str, timeout: float, long_ttl_ms: int, consent: Consent | None
) -> Iterator[Finding]:
    """Yield what was found in a job's directory."""
    # `files`: the file system. `timeout`: of each call, in seconds. `long_ttl_ms`: of the leases in this place: no
    # leader believes in a lost one for longer. `consent`: is asked before anything is mended; None if nothing is.
    what = f"job {job}"
    try:
        files.call("probe", lambda driver: tree.check_writable(driver, job), timeout)
        first, second = (files.call("probe", lambda driver: _look(driver, job), timeout) for _ in range(2))
    except NotFound as error:
        yield _not_found(files, job, timeout, error)
        return
    except HasSnapshots as error:
        yield failed(what, f"It cannot be taken over: {error}", "Take snapshots of the job, or of the root, alone.")
        return
    except StoreError as error:
        yield failed(what, f"This process cannot lead it: {error}", remedy(error))
        return
    look = first.confirmed(second)
    fine = ok(what, f"Its leader directory is {look.present.name}, and this user may write there.")
    yield check_contents(files, f"{job}/{look.present.name}", what, timeout) or fine
    # By the time of the leader directory, which was written to just now.
    files.outcome("probe", lambda driver: sweep(driver, job, look.present.name), timeout)
    yield from _others(files, job, look.present, timeout)
    for name in sorted(look.directories):
        found = f"{name} looks like a leader directory, and no leader made it."
        yield _stray(files, job, name, found, timeout, consent)
    for name in sorted(look.leases):
        found = f"{name} lies beside the lease, and does not count: no leader left it there."
        yield _stray(files, job, f"{look.present.name}/{RECORD}/{name}", found, timeout, consent)
    if not look.lease:
        yield _put_lease(files, job, look.present, timeout, long_ttl_ms, consent)


def _others(files: BoundedFiles, job: str, present: LeaderDirectory, timeout: float) -> Iterator[Finding]:
    """Yield a warning for each standby that would run something else than the leader does."""
    with suppress(StoreError):  # a leader has claimed it meanwhile
        names = [
            each.name for each in files.call("probe", lambda driver: driver.list(f"{job}/{present.name}"), timeout)
        ]
        if (runs_now := runs(names)) is not None:
            for contender, would in sorted(others(names).items()):
                what = f"{contradiction(contender, would, runs_now)}."
                yield warning(f"job {job}", what, f"Start the sidecar of {contender} as the others are started.")


def _not_found(files: BoundedFiles, job: str, timeout: float, error: NotFound) -> Finding:
    try:
        files.call("probe", lambda driver: driver.list(job), timeout)
    except StoreError:
        names: list[str] = []
        with suppress(StoreError):
            names = files.call("probe", lambda driver: [each.name for each in driver.list("")], timeout)
        wait = "If the name is right, leave it out until the first contender has created it."
        close = nearest(job, names, 3)
        what = f"Did you mean {' or '.join(close)}?" if close else wait
        return failed(f"job {job}", f"There is no such job under {files.uri}.", what)
    back = "Restore it from a snapshot of HDFS, or delete the job's directory to start at epoch 1."
    return failed(f"job {job}", f"{error}", back)


def _look(driver: Files, job: str) -> _Look:
    present = tree.find(driver, job)
    listed = {entry.name for entry in driver.list(job)}
    inside = {entry.name for entry in driver.list(f"{job}/{present.name}/{RECORD}")}
    lease = Record.parse(sorted(inside)).lease
    return _Look(
        present,
        frozenset(name for name in listed if LeaderDirectory.parse(name) not in (None, present)),
        lease is not None,
        frozenset(name for name in inside if name.startswith(LEASE) and (lease is None or name != lease.name)),
    )


def check_outputs(stores: Stores, job: str, timeout: float) -> Iterator[Finding]:
    """Yield what hinders new files in the directories in which the job's batches appear; nothing if none does."""
    admin = JobAdmin(stores.files, None, timeout)
    with suppress(LeaderError, StoreError):  # which the check of the job's directory reports
        directory = admin.directory(job)
        root = stores.directory_uri(job, directory.leader).partition(f"/{job}/")[0]
        for path in sorted({each.target for each in JournalReader(lambda: directory).outputs() if not each.place}):
            with stores.open_root(urlsplit(root)._replace(path=path).geturl()) as files:
                found = check_contents(files, "", f"job {job}", timeout)
            yield from () if found is None else (found,)


# --- what no leader made


def _stray(files: BoundedFiles, job: str, name: str, found: str, timeout: float, consent: Consent | None) -> Finding:
    what, path = f"job {job}", f"{job}/{name}"
    by_hand = f"Find out who may write there. Then remove it: hdfs dfs -rm -r {files.uri}/{path}"
    try:
        if not files.call("probe", lambda driver: _is_empty(driver, path), timeout):
            return warning(what, f"{found} It holds files, or a lease.", by_hand)
        if consent is None or not consent(f"{found} Remove {path}?"):
            return warning(what, found, f"`ha host doctor --mend {job}` removes it. Find out who may write there.")
        files.call("probe", lambda driver: driver.delete(path, recursive=True), timeout)
    except NotFound:
        return ok(what, f"{found} It is gone now.")
    except StoreError as error:
        return failed(what, f"{found} It cannot be removed: {error}", by_hand)
    return ok(what, f"{found} It was removed.")


def _is_empty(driver: Files, path: str) -> bool:
    """Whether a tree consists of some directories only, and holds no lease."""
    waiting, seen = [path], 0
    while waiting:
        folder = waiting.pop()
        for entry in driver.list(folder):
            seen += 1
            if not entry.is_directory or seen > MAX_ENTRIES or entry.name.startswith(LEASE):
                return False
            waiting.append(f"{folder}/{entry.name}")
    return True


def _put_lease(
    files: BoundedFiles, job: str, present: LeaderDirectory, timeout: float, long_ttl_ms: int, consent: Consent | None
) -> Finding:
    what, found = f"job {job}", f"The record in {present.name} holds no lease, so the job cannot be led."
    lease = lost_lease(str(uuid.uuid4()), long_ttl_ms)
    after = f"a contender leads {lease.ttl:g} s later"
    if consent is None or not consent(f"{found} Put a lease there? Then {after}."):
        return failed(
            what, found, f"`ha host doctor --mend {job}` puts one there, and {after}. Find out who took it away."
        )
    path = f"{job}/{present.name}/{RECORD}/{lease.name}"
    try:
        files.call("probe", lambda driver: driver.make_directory(path), timeout)
    except StoreError as error:
        return failed(what, f"{found} None could be put there: {error}", remedy(error))
    return ok(what, f"{found} One was put there: {after}.")
