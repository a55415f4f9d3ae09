"""Files by which a sidecar and its program tell each other something: each is replaced as a whole."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

STAGED = ".staged"  # ends the name of a file that is being written


def beside(path: Path, ending: str) -> Path:
    """Return the file beside another one whose name ends so."""
    return path.with_name(f"{path.name}{ending}")


def write(path: Path, value: Any) -> None:
    """Write a file that is complete at once."""
    replace(path, msgspec.json.encode(value))


def replace(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    staged = beside(path, STAGED)
    staged.write_bytes(content)
    staged.replace(path)


def read(path: Path, kind: type[T]) -> T | None:
    """Return what was written; None if there is nothing, or nothing of that kind."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
