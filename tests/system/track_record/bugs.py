"""The bugs of the track record: what each one broke, its mend, and the test that fails without it."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.system.mutants.copies import ROOT

TABLE = Path(__file__).with_name("bugs.toml")
_ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \|", re.MULTILINE)
_LINK = re.compile(r" \(\[[^]]*\]\([^)]*\)\)")


@dataclass(frozen=True)
class Bug:
    """A bug that was found once.

    Attributes:
        number: its row in docs/reliability.md.
        test: fails with the mend taken out.
        mend: triples of a file, a part of its text that occurs once, and what stands there with the mend taken out.
        why_not: why it is not reproduced; then it has neither mend nor test.
    """

    number: int
    test: str = ""
    mend: tuple[tuple[str, str, str], ...] = ()
    why_not: str = ""

    def take_out(self, tree: Path) -> dict[Path, str]:
        """Take the mend out of a tree; return the texts of the files as they were."""
        were: dict[Path, str] = {}
        for name, now, without in self.mend:
            text = (tree / name).read_text(encoding="utf-8")
            assert text.count(now) == 1, f"Bug {self.number}: {name} has its mend {text.count(now)} times."
            were.setdefault(tree / name, text)
            (tree / name).write_text(text.replace(now, without), encoding="utf-8")
        return were


BUGS = {each["number"]: Bug(**each) for each in tomllib.loads(TABLE.read_text(encoding="utf-8"))["bug"]}


def rows() -> list[tuple[int, str, str]]:
    """Return the rows of the track record: number, bug, and what it broke."""
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    return [(int(number), _LINK.sub("", bug), broke) for number, bug, broke in _ROW.findall(page)]
