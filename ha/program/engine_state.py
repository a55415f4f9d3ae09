"""EngineState: what an engine tells its sidecar of its program, in a small file that is replaced as a whole."""

from pathlib import Path

import msgspec

from ha.program.files import read


class EngineState(msgspec.Struct, frozen=True):
    """The state of an engine's program."""

    starts: int = 0  # how often it was started
    failures: int = 0  # how often it has ended with another exit code than 0
    code: int = 0  # the last such exit code
    delay: float = 0.0  # seconds from that end to the next start
    gave_up: bool = False  # whether the restart strategy allows no further start, so that the engine ends


def newest(path: Path) -> EngineState:
    """Return the newest state; an empty one if there is none."""
    return read(path, EngineState) or EngineState()
