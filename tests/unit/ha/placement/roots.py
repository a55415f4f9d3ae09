"""Groups of roots for tests: directories of this host that can be taken away, and that count what they are asked."""

import threading
from collections.abc import Sequence
from pathlib import Path

from ha.placement.group_files import Choose, GroupFiles
from ha.placement.place import home_of
from store.bounded import BoundedFiles
from store.errors import NotSent
from store.files import Entry
from store.local import LocalFiles
from tests.patience import PATIENCE_S


class Root(LocalFiles):
    def __init__(self, path: Path) -> None:
        super().__init__(path, durable=False)
        self.path = path
        self.down = False
        self.hangs: threading.Event | None = None
        self.lists: list[str] = []

    def list(self, path: str) -> list[Entry]:
        self.lists.append(path)
        self._answers()
        return super().list(path)

    def rename(self, source: str, destination: str) -> None:
        self._answers()
        super().rename(source, destination)

    def _answers(self) -> None:
        if self.hangs is not None:
            self.hangs.wait(PATIENCE_S)
        if self.down:
            raise NotSent("The NameNode is away.")


class Roots:
    """Three roots; each group that is opened is a process of its own."""

    def __init__(self, path: Path) -> None:
        self.drivers = {f"file://{path}/{name}": Root(path / name) for name in "abc"}
        self.uris = list(self.drivers)
        self.opened: list[GroupFiles] = []

    def group(self, choose: Choose | None = None, uris: Sequence[str] = ()) -> GroupFiles:
        roots = [BoundedFiles(lambda uri=uri: self.drivers[uri], uri=uri) for uri in uris or self.uris]  # type: ignore[misc]
        made = GroupFiles(roots, choose or (lambda them, job: home_of([each.uri for each in them], job)))
        self.opened.append(made)
        return made

    def at(self, uri: str) -> Choose:
        del self
        return lambda _, __: uri

    def home(self, job: str) -> str:
        return home_of(self.uris, job)

    def others(self, job: str) -> list[str]:
        return [each for each in self.uris if each != self.home(job)]

    def lists(self) -> int:
        return sum(len(each.lists) for each in self.drivers.values())

    def forget_lists(self) -> None:
        for each in self.drivers.values():
            each.lists.clear()

    def close(self) -> None:
        for driver in self.drivers.values():
            if driver.hangs is not None:
                driver.hangs.set()
        for each in self.opened:
            each.close()
