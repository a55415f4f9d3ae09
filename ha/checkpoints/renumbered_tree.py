"""RenumberedTree: a checkpoint as it would be if its program had numbered its operators in another way.

Nothing is written: a copy of it gets the new paths, and the few small files with numbers rewritten.
"""

from collections.abc import Callable

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.layouts import Layouts, changes, layouts
from ha.checkpoints.renumbering import Numbers, is_rewritten, renumbered_path, rewritten
from ha.checkpoints.trees import Tree
from store.errors import Invalid, NotFound


class RenumberedTree(Tree):
    """A view of another tree. The files that say numbers are read at once: ``Unreadable`` if one has another form."""

    def __init__(self, tree: Tree, numbers: Numbers) -> None:
        super().__init__(tree.files, tree.path)
        self._numbers = numbers
        self._old: dict[str, str] = {}  # by its new path, the path of each file that was listed
        names = {path for path in tree.listing() if is_rewritten(path)}
        said = CheckpointReader(tree).contents(names)
        self._rewritten: dict[str, bytes] = {}
        for path in names:
            data = said[path]
            if data is None:
                raise NotFound(f"{path} does not exist.")
            self._rewritten[renumbered_path(path, numbers)] = rewritten(data, numbers)

    @property
    def uri(self) -> str:
        """URI of the directory, and the numbers: two views of one directory are not the same."""
        return f"{super().uri}#{','.join(f'{old}-{new}' for old, new in sorted(self._numbers.items()))}"

    def listing(self, below: str = "") -> dict[str, int]:
        """Return the size of every file in bytes, by its new path; only the whole tree can be listed."""
        if below:
            raise Invalid("A renumbered checkpoint is listed as a whole.")
        found = {}
        for path, size in super().listing().items():
            new = renumbered_path(path, self._numbers)
            sums_of_rewritten = new.endswith(".crc") and new.removesuffix(".crc") in self._rewritten
            if not sums_of_rewritten:
                self._old[new] = path
                found[new] = len(self._rewritten[new]) if new in self._rewritten else size
        return found

    def read_into(self, path: str, size: int, target: Tree, name: str, told: Callable[[bytes], object]) -> int:
        """Copy the content of one file, by its new path; otherwise as a tree does."""
        if path not in self._rewritten:
            return super().read_into(self._old.get(path, path), size, target, name, told)
        data = self._rewritten[path]
        target.store(name, data)
        told(data)
        return len(data)


def check_plan(tree: Tree, before: Layouts) -> None:
    """Raise ``Invalid`` if a checkpoint has other operators than a plan was made for."""
    reader = CheckpointReader(tree)
    files: CheckpointFiles = reader.files()
    newest = files.batches[-1] if files.batches else -1
    if found := changes(reader.run(layouts(files, newest)), before):
        raise Invalid(
            f"{tree.uri} has other operators than the checkpoint that the plan was made for: {found[0].text} "
            "Make the plan again."
        )
