"""Batches without a Spark: they write files as Spark does, and look at what an output has made of them.

Who imports this module has outputs take them, beside the frames of a real Spark.
"""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pyspark.sql import DataFrame

from ha.checkpoints import contents
from ha.hook.guarding import EVERY
from ha.hook.misses import QUERY_ID
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch as Published
from ha.outputs.lines import Line
from ha.outputs.record import Record
from ha.spark.outputs import publisher, regional_output
from ha.spark.outputs.publisher import Origins
from ha.spark.outputs.row_writer import RowWriter, evaluate


@dataclass
class Query:
    identity: str
    called: str | None
    checkpoint: str
    active: bool = True

    def id(self) -> str:
        return self.identity

    def name(self) -> str | None:
        return self.called

    def isActive(self) -> bool:  # noqa: N802
        return self.active

    def resolvedCheckpointRoot(self) -> str:  # noqa: N802
        return self.checkpoint


@dataclass
class Session:
    """The session of a batch; ``query`` runs it, and ``others`` run as well."""

    query: Query | None = None
    others: list[Query] = field(default_factory=list)
    zone: str = "UTC"

    @property
    def conf(self) -> dict[str, str]:
        return {"spark.sql.session.timeZone": self.zone}

    @property
    def sparkContext(self) -> Any:  # noqa: N802
        said = {QUERY_ID: self.query.identity, EVERY: "true"} if self.query else {}
        return SimpleNamespace(getLocalProperty=said.get)

    @property
    def _jsparkSession(self) -> Any:  # noqa: N802
        running = {each.identity: each for each in [self.query, *self.others] if each is not None and each.active}
        return SimpleNamespace(sharedState=lambda: SimpleNamespace(activeStreamingQueries=lambda: running))


class Batch:
    """Writes as Spark does: with all parent directories, and a directory for each partition."""

    sparkSession: Any = Session()  # noqa: N815

    def __init__(self, content: str | dict[str, str], session: Session | None = None, line: Line | None = None) -> None:
        self.line = line
        self.content = {"": content} if isinstance(content, str) else content
        self.written: list[Path] = []
        self.evaluated = 0
        if session is not None:
            self.sparkSession = session

    def repartition(self, *_: object) -> "Batch":
        return self

    def save(self, uri: str) -> dict[str, dict[str, int]]:
        """Write the files; returns their bytes by partition."""
        path = Path(uri.removeprefix("file://"))
        for partition, content in self.content.items():
            (path / partition).mkdir(parents=True, exist_ok=True)
            (path / partition / "part-0").write_text(content)
        self.written.append(path)
        return {partition: {"part-0": len(content.encode())} for partition, content in self.content.items()}


def batch(content: str | dict[str, str], session: Session | None = None, line: Line | None = None) -> DataFrame:
    return cast("DataFrame", Batch(content, session, line))


def line_of(leadership: Leadership, query: str) -> Line:
    metadata = Path(leadership.directory.removeprefix("file://"), "spark", query, "metadata")
    return Line(contents.query_id(metadata.read_bytes()), query)


_write, _of = RowWriter.write, Origins.of


def _written(writer: RowWriter, frame: Any, folder: str, below: str = "") -> Record:
    if not isinstance(frame, Batch):
        return _write(writer, frame, folder, below)
    found = frame.save(f"{writer._renames.root.rstrip('/')}/{folder}/{below}".rstrip("/"))
    return Record({f"{below}/{each}".strip("/"): files for each, files in sorted(found.items())})


def _origin(origins: Origins, frame: Any, number: int) -> Published:
    if isinstance(frame, Batch) and frame.line is not None:
        return Published(number, frame.line, "the same in each try")
    return _of(origins, frame, number)


def _evaluated(frame: Any) -> None:
    if isinstance(frame, Batch):
        frame.evaluated += 1
    else:
        evaluate(frame)


for _owner, _name, _seam in (
    (RowWriter, "write", _written),
    (Origins, "of", _origin),
    (publisher, "evaluate", _evaluated),
    (regional_output, "evaluate", _evaluated),
):
    setattr(_owner, _name, _seam)


def found(tmp_path: Path, name: str = "") -> dict[str, str]:
    out = tmp_path / "out" / name
    return {str(path.parent.relative_to(out)): path.read_text() for path in out.rglob("part-*")}


def own_folder(leadership: Leadership, name: str = "output") -> Path:
    (found,) = Path(leadership.directory.removeprefix("file://"), "out").glob(f"{name}-*")
    return found


def shifts_in(leader: Path, output: str) -> set[str]:
    """Return from which batches of their queries on the ids of outputs are others than Spark's numbers."""
    names = {each.name.rpartition("~")[0].rpartition("~")[0] for each in leader.glob(f"out/{output}-*/line=*")}
    return names - {"line=0~0~0"}


def left(leadership: Leadership, name: str = "output") -> list[str]:
    """Return what is on its way in an output's journal; nothing once all batches are complete."""
    own = own_folder(leadership, name)
    places = ("staged", "ready", "own=*")
    return sorted(str(path.relative_to(own)) for place in places for path in own.glob(f"{place}/**/*"))
