"""An installation that was replaced below a process."""

from pathlib import Path

import pytest

from ha.hosts import installation


def test_each_file_is_there() -> None:
    assert installation.gone() == ""


def test_what_is_gone_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "guard.py"
    monkeypatch.setattr(installation, "NEEDED", (*installation.NEEDED, missing))
    assert installation.gone() == (
        f"{missing} is gone: this installation was replaced while its processes ran. Start the sidecar anew."
    )
