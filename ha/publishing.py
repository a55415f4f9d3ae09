"""What a leader has staged is published: see :meth:`ha.leadership.Leadership.publish`."""

from contextlib import suppress

from ha.moves import Directory, Moves
from leader.errors import InvalidName
from leader.names import BLOBS, CHECKPOINTS, GRAPH, HISTORY, OUT, RECORD, RESULTS, SPARK, STAGED, STATUS, TRASH
from store.errors import NotEmpty, NotFound, StoreError, Unknown

_PROTOCOL = {BLOBS, CHECKPOINTS, GRAPH, HISTORY, OUT, RECORD, RESULTS, SPARK, STAGED, TRASH}


def staged_path(leadership: Directory, staged: str) -> str:
    """Return the path, relative to the leader directory, of what a program has staged there.

    Raises:
        InvalidName: it is not there, or it is the protocol's own.
    """
    relative = staged.removeprefix(f"{leadership.directory}/")
    parts = relative.split("/")
    if relative == staged or {"", ".", ".."} & set(parts) or parts[0] in _PROTOCOL or parts[0].startswith(STATUS):
        raise InvalidName(
            f"{staged!r} cannot be published: stage it at leadership.path('work/...') and give that URI; "
            f"{', '.join(sorted(_PROTOCOL))} are the protocol's own folders."
        )
    return relative


def publish(moves: Moves, staged: str, folder: str) -> bool:
    """Move something out of the leader directory for good; returns False, and drops it, if the target was there.

    Args:
        moves: its outside is where to.
        staged: what to move, relative to the leader directory.
        folder: a path that nobody has used, likewise; what a crash leaves there is for the next leader to sweep.

    Raises:
        Fenced, NotFound, StoreError: as :meth:`Moves.move`.
    """
    folder = f"{moves.inside}/{folder}"
    moves.make_folders(folder)
    moves.move(f"{moves.inside}/{staged}", f"{folder}/it")
    if not moves.move(f"{folder}/it", moves.outside):
        with suppress(StoreError):
            moves.remove(folder)
        return False
    try:
        # A NameNode may show what its successor has never heard of: an empty folder deleted proves the move.
        moves.do(lambda files: files.delete(folder))
    except NotFound:
        moves.check()
    except NotEmpty as error:
        raise Unknown(f"{moves.outside!r} was seen, and is not there any more: publish it again.") from error
    return True
