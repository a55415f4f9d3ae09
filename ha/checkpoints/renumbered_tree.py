"""RenumberedTree: a checkpoint as it would be if its program had numbered its operators in another way.

Nothing is written: whoever copies from it gets the new paths, and the few small files that say numbers rewritten.
"""

from collections.abc import Callable

from ha.checkpoints.changes import changes
from ha.checkpoints.layouts import Layouts, layouts
from ha.checkpoints.names import CheckpointFiles
from ha.checkpoints.reading import CheckpointReader
from ha.checkpoints.renumbering import Numbers, is_rewritten, renumbered_path, rewritten
from ha.checkpoints.trees import Tree
from store.errors import Invalid, NotFound


class RenumberedTree(Tree):
    """A view of another tree."""

    def __init__(self, tree: Tree, numbers: Numbers) -> None:
        """Read the files that say numbers.

        Raises:
            NotFound: there is no such directory, or a file disappeared.
            StoreError: the store did not answer.
            Unreadable: a file has another form.
        """
        super().__init__(tree.files, tree.path)
        self._numbers = numbers
        self._old: dict[str, str] = {}
        """By its new path, the path of each file that was listed."""
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
        """Return the size of every file in bytes, by its new path; otherwise as a tree does.

        Raises:
            Invalid: only the whole tree can be listed.
        """
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

    def read_into(self, path: str, target: Tree, name: str, told: Callable[[int], None]) -> int:
        """Copy the content of one file, by its new path; otherwise as a tree does."""
        if path not in self._rewritten:
            return super().read_into(self._old.get(path, path), target, name, told)
        data = self._rewritten[path]
        target.store(name, data)
        told(len(data))
        return len(data)


def check_plan(tree: Tree, before: Layouts) -> None:
    """Check that a checkpoint has the operators that a plan was made for.

    Raises:
        Invalid: it has others.
        NotFound: there is no such directory.
        StoreError: the store did not answer.
    """
    reader = CheckpointReader(tree)
    files: CheckpointFiles = reader.files()
    newest = files.batches[-1] if files.batches else -1
    if found := changes(reader.run(layouts(files, newest)), before):
        raise Invalid(
            f"{tree.uri} has other operators than the checkpoint that the plan was made for: {found[0].text} Run "
            "`ha preflight --json` again."
        )
