"""A made-up checkpoint below a leadership."""

from pathlib import Path
from urllib.parse import urlsplit

from ha.leadership.leadership import Leadership


def place(leadership: Leadership, files: dict[str, bytes]) -> Path:
    folder = Path(urlsplit(leadership.path("spark/daily")).path)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder
