"""Tests of configuration files: they are replaced, not written in place."""

from pathlib import Path

from ha.sandbox.state import replace_file


def test_who_reads_it_meanwhile_reads_all_of_the_old_one(tmp_path: Path) -> None:
    """Found on a busy machine: a NameNode that was still starting read an empty configuration, and ended itself."""
    path = tmp_path / "core-site.xml"
    replace_file(path, "<configuration>old</configuration>")
    with path.open(encoding="utf-8") as reading:
        replace_file(path, "<configuration>new</configuration>")
        assert reading.read() == "<configuration>old</configuration>"
    assert path.read_text(encoding="utf-8") == "<configuration>new</configuration>"
    assert [each.name for each in tmp_path.iterdir()] == ["core-site.xml"]
