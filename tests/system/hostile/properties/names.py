"""Properties of every name in HDFS or in an argument. Each function takes any text.

A name that is accepted is written back in exactly the same way. Otherwise it could be seen, but never renamed. It is
also a path that every driver accepts, and the copy in ZooKeeper can carry its content.
"""

import ipaddress
from contextlib import suppress

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.closure import Closure
from ha.checkpoints.state_versions import closure
from ha.spark.stored.commit_log import newest_batch
from leader.errors import InvalidName
from leader.job.grants import PastGrant
from leader.job.status import Status, StatusEntry, pick
from leader.layout import names
from leader.layout.checkpoint import Checkpoint, CheckpointEntry, Metadata, fit
from leader.layout.contact import MAX_PORT, ContactEntry, greeted_by
from leader.layout.information import EndpointEntry, LeaderInformation, Record, check_endpoints, decode, encode
from leader.layout.lease import Lease, Mode, check_contender
from leader.layout.names import MAX_EPOCH, LeaderDirectory
from store import paths
from store.errors import Invalid
from store.files import MAX_COMPONENT_BYTES

OWNER = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
LONGEST = 512
"""Greatest length of the texts: enough for names that are too long for a file system."""


def leader_directory(text: str) -> None:
    found = LeaderDirectory.parse(text)
    if found is not None:
        assert found.name == text
        assert 0 <= found.epoch <= MAX_EPOCH
        assert names.is_session_id(found.session_id)
        assert paths.check(text) == text
        assert names.newest([text, "spark"]) == found


def lease(text: str) -> None:
    found = Lease.parse(text)
    if found is not None:
        assert found.name == text
        assert names.is_session_id(found.owner)
        assert check_contender(found.contender) == found.contender
        assert paths.check(text) == text


def endpoint(text: str) -> None:
    found = EndpointEntry.parse(text)
    if found is None:
        return
    assert found.name == text
    assert paths.check(text) == text
    if found.count:
        assert check_endpoints({found.endpoint: found.address})
    if found.count <= 1:
        published = Record.parse([text]).published("orders", LeaderDirectory(found.epoch, OWNER))
        assert published == LeaderInformation(
            "orders", found.epoch, OWNER, {found.endpoint: found.address} if found.count else {}, found.version
        )
        assert found.epoch == 0 or decode(encode(published), "orders") == published


def contact(text: str) -> None:
    """A contact's name: an accepted address can be connected to without a name server."""
    found = ContactEntry.parse(text)
    if found is None:
        return
    assert found.name == text
    assert paths.check(text) == text
    ipaddress.ip_address(found.contact.host)
    assert 0 < found.contact.port <= MAX_PORT
    assert greeted_by(found.contact.greeting) == found.contact.process


def escaped(text: str) -> None:
    with suppress(InvalidName):
        assert names.escape(names.unescape(text)) == text
    with suppress(InvalidName):
        written = names.escape(text)
        assert names.unescape(written) == text
        if 0 < len(written) <= MAX_COMPONENT_BYTES and not written.startswith("."):
            assert paths.check(written) == written


def history(text: str) -> None:
    found = PastGrant.parse(text, 0)
    if found is not None:
        directory = LeaderDirectory(found.epoch, found.session_id)
        words = (found.reason, f"end.{found.ended}", f"by.{found.by}")
        assert text in {f"{directory.name}~{word}~{found.contender}" for word in words}


def query(text: str) -> None:
    """The name of a query's entry, and the name of any query."""
    found = CheckpointEntry.parse(text)
    if found is not None:
        assert found.name == text
        assert fit(found.checkpoint) == found.checkpoint
        assert paths.check(text) == text
    for checkpoint in (Checkpoint(text, 7, 3, Metadata(rows=0)), Checkpoint("daily", 7, 3, Metadata(offsets=text))):
        with suppress(InvalidName):
            entry = CheckpointEntry(fit(checkpoint), names.MAX_WRITING)
            assert CheckpointEntry.parse(entry.name) == entry
            assert paths.check(entry.name) == entry.name
            assert not paths.hidden(entry.name)


def job(text: str) -> None:
    """A job's name: one component of a path, and one of ZooKeeper's too."""
    with suppress(InvalidName):
        accepted = names.check_job(text)
        assert accepted == text
        assert paths.check(text) == text
        assert text.isascii()
        assert not set(text) & set("/~=:%")


def contender(text: str) -> None:
    """A contender's name: it is read back from a lease, as a holder's and as a successor's."""
    with suppress(InvalidName):
        accepted = check_contender(text)
        assert accepted == text
        written = Lease(1, Mode.HDFS, 6000, OWNER, "", text, text)
        assert Lease.parse(written.name) == written


def record(text: str) -> None:
    """A listing of the record directory: one entry a line, in any order."""
    entries = text.split("\n")
    found = Record.parse(entries)
    assert Record.parse(reversed(entries)) == found
    for epoch in {entry.epoch for entry in found.entries} - {0}:
        published = found.published("orders", LeaderDirectory(epoch, OWNER))
        assert published is None or decode(encode(published), "orders") == published


def path(text: str) -> None:
    """A path: every driver accepts it unchanged, or refuses it."""
    with suppress(Invalid):
        assert paths.check(text) == text
        for component in text.split("/"):
            assert component not in {"", ".", ".."}
            assert len(component.encode()) <= MAX_COMPONENT_BYTES
            assert ":" not in component
            assert component.isprintable() or not component.isascii()
            assert not paths.hidden(component)
        assert paths.sibling(text, "x").rpartition("/")[0] == paths.parent(text)


def status(text: str) -> None:
    """The name of a job's status: of several, one counts whatever their order is."""
    found = StatusEntry.parse(text)
    if found is not None:
        assert found.name == text
        assert paths.check(text) == text
        assert found.sequence <= names.MAX_SEQUENCE
        other = StatusEntry(Status.RUNNING, sequence=3).name
        assert pick([text, other]) == pick([other, text])


def checkpoint_file(text: str) -> None:
    """A path in a checkpoint: whatever its name is, a closure takes it or leaves it, or says what is missing."""
    listing = {text: 1}
    newest = newest_batch([text])
    try:
        next(closure(CheckpointFiles(listing), 3))
    except StopIteration as end:
        found: Closure = end.value
    assert found.missing
    assert found.missing != text
    assert found.files.keys() <= listing.keys()
    assert newest is None or newest >= 0


ALL = (
    *(leader_directory, lease, endpoint, contact, escaped, history, query, job, contender, record, path),
    *(status, checkpoint_file),
)
