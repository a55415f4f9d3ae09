"""Znodes: where the protocol's nodes in ZooKeeper are, and the commands on them as plain values.

    <chroot>/sessions                   persistent; its data is the incarnation: a random word made with the node
    <chroot>/sessions/<token>           ephemeral, one per process: attests every lease that names the token
    <chroot>/jobs/<job>/leader          ephemeral: the mirror of the leader information
    <chroot>/jobs/<job>/checkpoints     ephemeral: the mirror of the newest checkpoints
    <chroot>/jobs/<job>/contenders/<contender>   ephemeral: a contender that would take over

One node attests and another one informs, so that damage to the mirror moves no leader. A token holds the incarnation
and the ZooKeeper session id: after a wipe every node is missing, and that does not count as a death.
"""

import msgspec

SESSIONS = "/sessions"


def session_path(token: str) -> str:
    """Path of the node that attests."""
    return f"{SESSIONS}/{token}"


def leader_path(job: str) -> str:
    """Path of the mirror of a job's leader information."""
    return f"/jobs/{job}/leader"


def checkpoints_path(job: str) -> str:
    """Path of the mirror of a job's newest checkpoints."""
    return f"/jobs/{job}/checkpoints"


def contenders_path(job: str) -> str:
    """Path under which the contenders of a job announce themselves."""
    return f"/jobs/{job}/contenders"


def make_token(incarnation: str, session: int, again: int) -> str:
    """Name an ephemeral node after the ensemble's life, the session's id, and how often it was made again."""
    # So no name comes back, even if a stranger has deleted the node: a process that saw it gone may rely on that.
    return f"{incarnation}-{session & 0xFFFFFFFFFFFFFFFF:x}" + (f"-{again:x}" if again else "")


def names_session(token: str, session: int) -> bool:
    """Whether a token was made for the session of that id. A stranger's node under its name belongs to another one."""
    return token.split("-")[1:2] == [f"{session & 0xFFFFFFFFFFFFFFFF:x}"]


def incarnation_of(token: str) -> str:
    """The incarnation a token was made in."""
    return token.partition("-")[0]


class Node(msgspec.Struct, frozen=True):
    """A node as it was read."""

    data: bytes  # its content
    owner: int  # id of the session it ends with; 0 if it is not ephemeral
    version: int  # how often its data was changed


class Sync(msgspec.Struct, frozen=True):
    """Bring the server that we talk to up to date with the ensemble."""

    path: str


class ReadNode(msgspec.Struct, frozen=True):
    """Read a node; with ``watch``, tell once when it changes, comes or goes, or when the connection breaks."""

    path: str
    watch: bool = False


class CreateNode(msgspec.Struct, frozen=True):
    """Create a node, and persistent parents as needed."""

    path: str
    data: bytes
    ephemeral: bool = True


class WriteNode(msgspec.Struct, frozen=True):
    """Replace the data of a node that has this version."""

    path: str
    data: bytes
    version: int


class DeleteNode(msgspec.Struct, frozen=True):
    """Delete a node that has this version."""

    path: str
    version: int


NodeCommand = Sync | ReadNode | CreateNode | WriteNode | DeleteNode
