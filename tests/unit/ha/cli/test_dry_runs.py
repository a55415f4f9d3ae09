"""``--dry-run`` of the verbs that change a job: as nothing is changed, no error says that it may have been."""

from pathlib import Path

import pytest

from store.errors import ConnectionLost
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")

BROKEN = {
    "promote": ("replication.promotion.attempts", ["orders", "--yes"]),
    "rescale": ("checkpoint_tools.rescaling.Rescaling", ["orders", "sums", "--partitions", "8", "--yes"]),
    "rewind": ("checkpoint_tools.rewinding.Rewinding", ["orders", "sums", "--to", "3", "--outputs", "keep", "--yes"]),
    "seek": ("checkpoint_tools.seeking.Seeking", ["orders", "sums", "--to", "latest", "--kafka", "a:1", "--yes"]),
    "sweep": ("checkpoint_tools.swept.find", []),
}

GROUP = {"promote": "replica"}


@pytest.mark.parametrize("verb", BROKEN)
def test_only_what_changes_something_says_that_it_may_have(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    def lost(*_: object) -> None:
        raise ConnectionLost("The answer is lost.")

    breaks, arguments = BROKEN[verb]
    monkeypatch.setattr(f"ha.spark.{breaks}", lost)
    said = []
    (tmp_path / "offsets").mkdir()
    for more in ([], ["--dry-run"]):
        given = arguments or [tmp_path.as_uri()]
        said.append(cli(GROUP.get(verb, "checkpoint"), verb, *given, *more, code=4).err)
    assert "It is not known whether the last change was made" in said[0]
    assert "The answer is lost." in said[1]
    assert "change was made" not in said[1]
