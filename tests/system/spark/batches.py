"""Batches without a Spark: they write files as Spark does, and look at what an output has made of them."""

from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame

from ha.leadership.leadership import Leadership


class Batch:
    """Writes as Spark does: with all parent directories, and a directory for each partition."""

    def __init__(self, content: str | dict[str, str]) -> None:
        self.content = {"": content} if isinstance(content, str) else content
        self.written: list[Path] = []
        self.beside = False

    @property
    def write(self) -> "Batch":
        return self

    def repartition(self, *_: object) -> "Batch":
        return self

    def format(self, _: str) -> "Batch":
        return self

    def options(self, **_: str) -> "Batch":
        return self

    def partitionBy(self, *_: str) -> "Batch":  # noqa: N802
        return self

    def mode(self, mode: str) -> "Batch":
        assert mode == "append"
        self.beside = True
        return self

    def save(self, uri: str) -> None:
        path = Path(uri.removeprefix("file://"))
        path.mkdir(parents=True, exist_ok=self.beside)
        for partition, content in self.content.items():
            (path / partition).mkdir(parents=True, exist_ok=True)
            (path / partition / "part-0").write_text(content)
        self.written.append(path)


def batch(content: str | dict[str, str]) -> DataFrame:
    return cast("DataFrame", Batch(content))


def found(tmp_path: Path, name: str = "") -> dict[str, str]:
    out = tmp_path / "out" / name
    return {str(path.parent.relative_to(out)): path.read_text() for path in out.rglob("part-*")}


def own_folder(leadership: Leadership, name: str = "output") -> Path:
    (found,) = Path(leadership.directory.removeprefix("file://"), "out").glob(f"{name}-*")
    return found


def left(leadership: Leadership, name: str = "output") -> list[str]:
    """Return what is on its way in an output's journal; nothing once all batches are complete."""
    own = own_folder(leadership, name)
    return sorted(str(path.relative_to(own)) for place in ("staged", "ready") for path in own.glob(f"{place}/**/*"))
