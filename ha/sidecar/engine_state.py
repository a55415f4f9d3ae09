"""EngineState: what an engine tells its sidecar of its program, in a small file that is replaced as a whole."""

from pathlib import Path

import msgspec


class EngineState(msgspec.Struct, frozen=True):
    """The state of an engine's program.

    Attributes:
        starts: how often it was started.
        failures: how often it has ended with another exit code than 0.
        code: the last such exit code.
        delay: seconds from that end to the next start.
        gave_up: whether the restart strategy allows no further start, so that the engine ends.
    """

    starts: int = 0
    failures: int = 0
    code: int = 0
    delay: float = 0.0
    gave_up: bool = False


_decoder = msgspec.json.Decoder(EngineState)


def read(path: Path) -> EngineState:
    """Return the newest state; an empty one if there is none."""
    try:
        return _decoder.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return EngineState()


def write(path: Path, state: EngineState) -> None:
    """Replace the file.

    Raises:
        OSError: it cannot be written.
    """
    staged = path.with_name(f"{path.name}.staged")
    staged.write_bytes(msgspec.json.encode(state))
    staged.replace(path)
