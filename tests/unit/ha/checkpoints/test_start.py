"""Start: each file that Spark reads as it starts a query, damaged as in tests/system/checkpoints/damage.py.

The shapes are those with which Spark 4.3 did not start, as that table has recorded them.
"""

from collections.abc import Callable

import pytest

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.state_versions import closure, start
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, HDFS, ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import closed, given_files, names, until_batch

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "halved": lambda data: data[: len(data) // 2],
    "first byte": lambda data: bytes([data[0] ^ 1]) + data[1:],
}
NEWEST = 4


def whole(kind: str) -> dict[str, bytes]:
    return until_batch(kind, NEWEST).files


def begun(kind: str) -> dict[str, bytes]:
    files = whole(kind)
    del files[f"commits/{NEWEST}"]
    return files


def missing(files: dict[str, bytes]) -> str:
    return given_files(start(names(files)), files).missing


def continued(files: dict[str, bytes]) -> str:
    return closed(files, NEWEST).missing


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_whole_starts(kind: str) -> None:
    assert missing(until_batch(kind, NEWEST).files) == ""
    assert missing(begun(kind)) == ""
    assert missing({}) == ""
    assert missing({"metadata": until_batch(kind, 0).files["metadata"]}) == ""


READ = ["metadata", "offsets/3", "offsets/4", "sources/0/4"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("files_of", "asked", "path"),
    [
        *((whole, missing, each) for each in (*READ, "commits/4", "sources/0/2.compact")),
        *((begun, missing, each) for each in (*READ, "commits/3", "sources/0/3")),
        *((whole, continued, each) for each in ("metadata", "sources/0/2.compact", "sources/0/4")),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_what_a_start_reads_is_read(
    files_of: Callable[[str], dict[str, bytes]], asked: Callable[[dict[str, bytes]], str], path: str, damage: str
) -> None:
    files = files_of(HDFS)
    files[path] = DAMAGES[damage](files[path])
    assert asked(files) == path


@pytest.mark.parametrize("kind", FORMATS)
def test_a_commit_between_is_missed_where_it_tells_the_ids_of_the_state(kind: str) -> None:
    files = begun(kind)
    del files[f"commits/{NEWEST - 1}"]
    assert missing(files) == (f"commits/{NEWEST - 1}" if kind == ROCKSDB_IDS else "")


@pytest.mark.parametrize("path", ["metadata", "offsets/3", "sources/0/2.compact", "sources/0/3", "sources/0/4"])
def test_what_is_gone_is_missed(path: str) -> None:
    for files in (until_batch(HDFS, NEWEST).files, begun(HDFS)):
        del files[path]
        assert missing(files) in (path, "sources/0/0")


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_offsets_before_are_rebuilt_if_they_are_damaged(damage: str) -> None:
    """Spark reads them, and takes nothing from them: a copy has others, and the checkpoint itself does not start."""
    files = whole(HDFS)
    files["offsets/3"] = DAMAGES[damage](files["offsets/3"])
    found = closed(files, NEWEST)
    assert (found.missing, found.rebuilt) == ("", {"offsets/3": "offsets/4"})
    assert "offsets/3" not in found.files


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("metadata", b'{"id":"not-an-id"}'),
        ("metadata", b"[" * 100_000),
        ("offsets/4", b'v1\n{"batchWatermarkMs":"x"}\n{"logOffset":4}'),
        ("offsets/4", b'v1\n{"conf":{"spark.sql.shuffle.partitions":"-1"}}\n{"logOffset":4}'),
        ("offsets/4", b'v1\n{"conf":{"a":1}}\n{"logOffset":4}'),
        ("offsets/4", b"v1\n{}\n" + b"[" * 100_000),
        ("offsets/4", b'v1\n{}\n{"logOffsex":4}'),
        ("offsets/4", b"v1\n{}\n"),
        ("offsets/4", b'v1\n{}\n{"logOffset":4}\n{"logOffset":4}'),
        ("sources/0/4", b"v1\n{}"),
        ("sources/0/4", b'v1\n{"path":"file:///a"}'),
    ],
)
def test_other_forms_are_damage(path: str, data: bytes) -> None:
    files = whole(HDFS)
    files[path] = data
    assert missing(files) == path


@pytest.mark.parametrize(
    ("count", "path"),
    [(2_000_000_000, "offsets/4"), (100_000, "state/0/2/left/5.delta"), (3, "state/0/2/left/5.delta")],
)
def test_a_number_of_partitions_that_cannot_be_fills_no_memory(count: int, path: str) -> None:
    files = whole(HDFS)
    said = b'v1\n{"conf":{"spark.sql.shuffle.partitions":"%d"}}\n{"logOffset":4}' % count
    files["offsets/4"] = said
    assert closed(files, NEWEST).missing in (path, path.replace("/5.", "/1."))


def test_a_batch_whose_number_cannot_be_fills_no_memory() -> None:
    files = whole(HDFS)
    huge = 10**15
    files |= {f"{log}/{huge}": files[f"{log}/4"] for log in ("offsets", "commits")}
    assert closed(files, huge).missing


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"v1\n1764090000000", ""),
        (b"", "It is damaged. It is empty."),
        (b"v1\n", "It is damaged. It does not say when the source began."),
        (b"v1\n17640", "It is altered. It says that the source began in another century."),  # Spark takes it
        (b"w1\n1764090000000", "It is damaged. It does not say when the source began."),
    ],
)
def test_a_rate_source_reads_when_it_began(data: bytes, fault: str) -> None:
    files = {"metadata": until_batch(HDFS, 0).files["metadata"], "sources/0/0": data}
    files |= {"offsets/0": b"v1\n{}\n7", "commits/0": b"v1\n{}"}
    found = given_files(closure(names(files), 0), files)
    assert (missing(files), found.reason) == ("sources/0/0" if fault else "", fault)
    assert found.altered == ("altered" in fault)


def test_a_source_whose_offset_is_a_number_has_lost_its_log_if_it_has_a_directory() -> None:
    """The rate source makes one; another one has none, and cannot lose anything."""
    files = {"metadata": until_batch(HDFS, 0).files["metadata"], "offsets/0": b"v1\n{}\n7", "commits/0": b"v1\n{}"}
    for folders, lost in (([], ""), (["sources", "sources/0"], "sources/0/0")):
        there = CheckpointFiles({path: len(data) for path, data in files.items()}, folders=folders)
        assert given_files(start(there), files).missing == lost
        assert given_files(closure(there, 0), files).missing == lost


def test_sums_that_are_left_of_offsets_keep_spark_from_writing_them() -> None:
    files = whole(HDFS)
    files["offsets/.4.crc"] = b"of a file that is there"
    assert missing(files) == ""
    for log in ("offsets", "commits"):
        assert missing({**files, f"{log}/.5.crc": b"?"}) == f"{log}/.5.crc"
    files = {**begun(HDFS), f"commits/.{NEWEST - 1}.crc": b"?"}
    del files[f"commits/{NEWEST - 1}"]
    assert missing(files) == "", "Spark writes the one of the batch that was begun"
    assert missing({**files, f"commits/.{NEWEST}.crc": b"?"}) == f"commits/.{NEWEST}.crc"


@pytest.mark.parametrize("path", ["state/0/_metadata/{}metadata{}", "state/0/0/left/_metadata/{}schema{}"])
def test_sums_that_are_left_of_what_each_start_writes_bar_it(path: str) -> None:
    """Spark does without schemas and metadata of operators, and writes them anew."""
    files = whole(HDFS)
    there, sums = path.format("", ""), path.format(".", ".crc")
    files.pop(there, None)
    assert missing(files) == ""
    files[sums] = b"?"
    assert missing(files) == sums


def test_the_log_of_an_unknown_source_may_have_any_form() -> None:
    files = {"metadata": until_batch(HDFS, 0).files["metadata"], "sources/0/0": b"\0v1\n{}"}
    files |= {"offsets/0": b'v1\n{}\n{"topic":{"0":7}}', "commits/0": b"v1\n{}"}
    assert missing(files) == ""
