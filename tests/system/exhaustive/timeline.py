"""Timeline: one path through the model, for people, with nothing renamed and nothing forgotten."""

from collections.abc import Iterator

from leader.election.events import (
    AskProcess,
    CheckAttestation,
    Command,
    Grant,
    ListJob,
    ListRecord,
    Log,
    MakeDirectory,
    Rename,
    Revoke,
    TellReleased,
    Unpublish,
)
from leader.layout.lease import Lease
from leader.layout.names import LeaderDirectory
from tests.system.exhaustive.model import NAMES, TICK, Action, Bounds, State, Store, Violation
from tests.system.exhaustive.search import Found
from tests.system.exhaustive.world import World

_WORDS = {
    "tick": "notices that time has passed",
    "nudge": "is told by ZooKeeper that the other's node is gone",
    "answer": "has its call executed and answered",
    "execute": "has its call executed; the answer is on its way",
    "lose": "gives its call up: nobody knows whether it was, or will be, executed",
    "confirm": "has its session confirmed by ZooKeeper",
    "suspend": "loses ZooKeeper and notices",
    "silent": "is not confirmed by ZooKeeper any more and does not notice",
    "connect": "has ZooKeeper again",
    "expire": "has its session ended by ZooKeeper",
    "check": "asks ZooKeeper for the other's node and is told",
    "look up": "asks ZooKeeper for the other's node; the answer is on its way",
    "told": "is told of the other's node",
    "cannot say": "hears that ZooKeeper cannot say",
    "asleep": "sleeps",
    "end": "ends: its process is gone",
    "gone": "is told that the other's process is gone",
    "delete": "has its session's node deleted by a stranger",
    "greeted": "is greeted by the other's process",
    "not greeted": "is not greeted by the other's process",
    "step down": "steps down",
    "give back": "gives the lease back",
}


def timeline(bounds: Bounds, found: Found) -> str:
    return "\n".join(_lines(World(bounds, exact=True), found))


def _lines(world: World, found: Found) -> Iterator[str]:
    state, seconds = world.starts()[found.start], 0.0
    yield f"{seconds:5.0f} s  {_beliefs(state)}; {_store(state)}"
    for action in found.path:
        before = state
        try:
            state = world.apply(state, action)
        except Violation as violation:
            yield from _step(before, before, action, seconds, world)
            yield f"VIOLATION: {violation}"
            return
        seconds += TICK * (action.kind == "time")
        yield from _step(before, state, action, seconds, world)
    raise AssertionError("nothing happens on this path if nothing is forgotten")


def _step(before: State, state: State, action: Action, seconds: float, world: World) -> Iterator[str]:
    if action.kind in _WORDS:
        yield f"{seconds:5.0f} s  {NAMES[action.side]} {_WORDS[action.kind]}"
    elif action.kind == "time":
        yield f"{seconds:5.0f} s  time has passed"
    elif action.kind == "write":
        yield f"{seconds:5.0f} s  the NameNode writes what it has executed, and tells nobody"
    elif action.kind == "forget":
        yield f"{seconds:5.0f} s  the NameNode FORGETS what is not written"
    elif action.kind == "late":
        yield f"{seconds:5.0f} s  a call that was given up is executed: {_command(before.abandoned[action.which])}"
    if _store(state) != _store(before):
        yield f"           NameNode: {_store(state)}"
    for index, command in world.commands:
        if not isinstance(command, Log | Unpublish | TellReleased):
            yield f"           {NAMES[index]}: {_command(command)}"
    if _beliefs(state) != _beliefs(before):
        yield f"           {_beliefs(state)}"


def _beliefs(state: State) -> str:
    minds = [(name, side.parts.mind) for name, side in zip(NAMES, state.sides, strict=True)]
    words = [f"{name} leads" if mind.leads else f"{name} holds the lease" for name, mind in minds if mind.holds]
    return "belief: " + (", ".join(words) or "nobody leads")


def _store(state: State) -> str:
    shown = _content(state.store)
    return shown if state.durable is state.store else f"{shown}; written: {_content(state.durable)}"


def _content(store: Store) -> str:
    return f"{_directory(store.directory)}, {_lease(store.lease)}"


def _command(command: Command) -> str:
    match command:
        case Rename(source, destination) if directory := LeaderDirectory.parse(destination):
            words = f"claim: {source[:10].lstrip('0')} becomes {_directory(directory)}"
        case Rename(source, destination):
            old, new = (Lease.parse(path.rpartition("/")[2]) for path in (source, destination))
            words = f"rename of {_lease(old)} to {_lease(new)}" if old and new else f"rename of {source}"
        case ListJob():
            words = "list the job"
        case ListRecord(directory):
            words = f"list the record in {_directory(directory)}"
        case MakeDirectory():
            words = "write a line of history"
        case CheckAttestation(token):
            words = f"ask for the node {token}"
        case AskProcess(token):
            words = f"ask the process of the node {token}"
        case Grant():
            words = f"GRANTED {command.epoch}-{_session(command.session_id)} ({command.reason})"
        case Revoke():
            words = f"REVOKED: {command.reason}"
        case _:
            words = f"{command}"
    return words


def _lease(lease: Lease) -> str:
    attested = f" by {lease.attestation}" if lease.attestation else ""
    return f"lease {lease.sequence} ({lease.mode.value}{attested}, {lease.ttl:g} s, {_session(lease.owner)})"


def _directory(directory: LeaderDirectory) -> str:
    return f"epoch {directory.epoch} ({_session(directory.session_id)})"


def _session(session_id: str) -> str:
    serial = int(session_id[-12:], 16)
    return f"{NAMES[int(session_id[:8])]}{serial}" if serial else "nobody"
