"""Strategies for hostile input: what the encoders write, whole or damaged."""

import string
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ha.agent import snapshots as wire
from leader.layout import checkpoint_state, information
from leader.layout.checkpoint import MAX_ID, Checkpoint, CheckpointEntry, Metadata, fit
from leader.layout.checkpoint_state import CheckpointState
from leader.layout.contact import MAX_PORT, ContactAddress, ContactEntry
from leader.layout.information import MAX_VERSION, EndpointEntry, LeaderInformation
from leader.layout.lease import ANYBODY, Lease, Mode
from leader.layout.names import MAX_EPOCH, MAX_REACHED, MAX_WRITING, LeaderDirectory
from leader.lookup.answers import Snapshot
from tests.system.hostile.properties.records import AUDIT, ORIGIN
from tests.unit.leader.samples import SESSION_IDS, TEXTS, WORDS

Test = TypeVar("Test", bound=Callable[..., Any])


def examples(count: int) -> Callable[[Test], Test]:
    """Settings for a number of examples, which are the same in every run."""
    return settings(
        max_examples=count, derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
    )


PRINTABLE = st.characters(exclude_categories=["Cs"])
ANY_TEXT = TEXTS | st.text(string.printable) | st.text(st.characters(), max_size=300)

DIRECTORIES = st.builds(LeaderDirectory, st.integers(0, MAX_EPOCH), SESSION_IDS)
LEASES = st.builds(
    Lease,
    sequence=st.integers(0, MAX_REACHED),
    mode=st.sampled_from(Mode),
    ttl_ms=st.integers(0, 999_999_999),
    owner=SESSION_IDS,
    attestation=st.text("0123456789abcdef-", max_size=40),
    contender=WORDS,
    successor=WORDS | st.sampled_from(["", ANYBODY]),
)
ENDPOINT_ENTRIES = st.builds(
    EndpointEntry,
    st.integers(0, MAX_EPOCH),
    st.integers(1, MAX_VERSION),
    st.integers(1, 64),
    WORDS,
    st.text(PRINTABLE, min_size=1, max_size=20),
) | st.builds(
    EndpointEntry, st.integers(0, MAX_EPOCH), st.integers(1, MAX_VERSION), st.just(0), st.just(""), st.just("")
)
NUMBERS = st.none() | st.integers(0, MAX_ID)
METADATA = st.builds(Metadata, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.text(PRINTABLE))
RETAINED = st.builds(
    Checkpoint,
    st.sampled_from(["next", ".staging-x", "_6eext"]) | st.text(PRINTABLE, min_size=1, max_size=16),
    st.integers(0, MAX_ID),
    st.integers(1, MAX_ID),
    METADATA,
).map(fit)
CHECKPOINT_ENTRIES = st.builds(CheckpointEntry, RETAINED, st.integers(1, MAX_WRITING))
HISTORY = st.tuples(DIRECTORIES, st.text("abcxyz-", min_size=1, max_size=20), WORDS).map(
    lambda parts: f"{parts[0].name}~{parts[1]}~{parts[2]}"
)
WHEREABOUTS = st.builds(
    ContactAddress,
    st.ip_addresses().map(str),
    st.integers(1, MAX_PORT),
    st.text("0123456789abcdef", min_size=32, max_size=32),
)
CONTACTS = st.builds(ContactEntry, st.integers(0, MAX_EPOCH), SESSION_IDS, WHEREABOUTS)
NAMES = (
    DIRECTORIES.map(lambda each: each.name)
    | LEASES.map(lambda each: each.name)
    | ENDPOINT_ENTRIES.map(lambda each: each.name)
    | CHECKPOINT_ENTRIES.map(lambda each: each.name)
    | CONTACTS.map(lambda each: each.name)
    | HISTORY
)
LISTINGS = st.lists(NAMES, max_size=5).map("\n".join)

INFORMATION = st.builds(
    LeaderInformation,
    job=st.just("orders"),
    epoch=st.integers(1, MAX_EPOCH),
    session_id=SESSION_IDS,
    endpoints=st.dictionaries(WORDS, st.text(PRINTABLE, min_size=1, max_size=20), max_size=5),
    version=st.integers(1, MAX_VERSION),
)
CHECKPOINTS = st.builds(
    CheckpointState,
    job=st.just("orders"),
    epoch=st.integers(1, MAX_EPOCH),
    session_id=SESSION_IDS,
    next_id=st.integers(1, MAX_ID),
    latest=st.lists(RETAINED, max_size=5).map(lambda found: {each.query: each for each in found}),
)
TIMES = st.floats(0, 1e9)
SNAPSHOTS = st.builds(
    lambda told, at, fresh, leads, verified: Snapshot(
        "orders", told.epoch, told.session_id, told if leads else None, at, at + fresh, verified
    ),
    INFORMATION,
    TIMES,
    st.floats(0, AUDIT / 2),
    st.booleans(),
    st.booleans(),
) | st.builds(lambda at: Snapshot("orders", 0, "", None, at, at, verified=False), TIMES)
SNAPSHOT_FILES = SNAPSHOTS.map(lambda each: wire.encode(each, ORIGIN, AUDIT))
BEATS = TIMES.map(lambda at: wire.encode_beat(ORIGIN, 42, at, "127.0.0.1:8300"))
RECORDS = INFORMATION.map(information.encode) | CHECKPOINTS.map(lambda state: checkpoint_state.encode(state) or b"")

SPLINTERS = st.sampled_from([*"\n\0~=_0-/\u0663\u2028A.[\ud800é{", '"', "00", "..", "9" * 30])


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[str]) -> str:
    """A text in which a few characters are replaced; sometimes it is whole."""
    text = draw(whole)
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(st.just("") | SPLINTERS | st.text(max_size=3)) + text[at + draw(st.integers(0, 3)) :]


@st.composite
def damaged_bytes(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    data = draw(whole)
    at = draw(st.integers(0, len(data)))
    new = draw(st.just(b"") | st.binary(max_size=3) | SPLINTERS.map(lambda text: text.encode("utf-8", "surrogatepass")))
    return data[:at] + new + data[at + draw(st.integers(0, 3)) :]


HOSTILE_TEXTS = ANY_TEXT | damaged(NAMES)
GREETINGS = WHEREABOUTS.map(lambda each: each.greeting)
HOSTILE_BYTES = st.binary(max_size=300) | damaged_bytes(RECORDS | GREETINGS)
HOSTILE_SNAPSHOTS = damaged_bytes(SNAPSHOT_FILES | BEATS) | damaged_bytes(
    (SNAPSHOT_FILES | BEATS).map(lambda sealed: sealed.partition(b"\n")[2].removesuffix(b"\n"))
)
