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


def test_another_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "HOME", tmp_path)
    monkeypatch.setattr(installation, "LOADED", {"1.9"})
    assert installation.replaced() == "", "it is being replaced, or these are sources"
    old, new = (tmp_path / f"hybrid_ha-{each}.dist-info" for each in ("1.9", "1.10.0rc1"))
    old.mkdir()
    assert installation.replaced() == ""
    new.mkdir()
    assert installation.replaced() == "", "pip has not removed the old one yet"
    old.rmdir()
    assert "runs version 1.9 of hybrid-ha, and 1.10.0rc1 is installed" in installation.replaced()
    monkeypatch.setattr(installation, "LOADED", set())
    assert installation.replaced() == "", "it was started from sources"
