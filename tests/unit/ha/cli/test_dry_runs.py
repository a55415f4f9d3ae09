"""``--dry-run`` of the verbs that change a job: as nothing is changed, no error says that it may have been."""

from pathlib import Path

import pytest

from ha.cli.commands import exit_code
from store.errors import ConnectionLost

pytestmark = pytest.mark.usefixtures("quick")

BROKEN = {
    "promote": ("attempts", ["orders"]),
    "rescale": ("_done", ["orders", "sums", "--partitions", "8", "--yes"]),
    "rewind": ("_done", ["orders", "sums", "--to", "3", "--outputs", "keep", "--yes"]),
    "sweep": ("_sweep_outside", []),
}


@pytest.mark.parametrize("verb", BROKEN)
def test_only_what_changes_something_says_that_it_may_have(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(*_: object) -> None:
        raise ConnectionLost("The answer is lost.")

    breaks, arguments = BROKEN[verb]
    monkeypatch.setattr(f"ha.cli.{verb}.{breaks}", lost)
    said = []
    for more in ([], ["--dry-run"]):
        assert exit_code([verb, *(arguments or [tmp_path.as_uri()]), *more]) == 4
        said.append(capsys.readouterr().err)
    assert "It is not known whether the last change was made" in said[0]
    assert "The answer is lost." in said[1]
    assert "change" not in said[1]
