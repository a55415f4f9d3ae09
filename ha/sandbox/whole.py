"""Files that others read while they are written: whoever opens one finds all of the old text, or all of the new."""

import os
import threading
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Replace a file.

    Raises:
        OSError: it cannot be written.
    """
    staged = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}")
    staged.write_text(text, encoding="utf-8")
    staged.replace(path)
