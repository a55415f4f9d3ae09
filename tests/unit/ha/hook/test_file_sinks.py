"""When Spark's file sink would drop batches: by the logs of its directory and of the query's checkpoint."""

from types import SimpleNamespace
from typing import Any

import pytest

from ha.hook.file_sinks import FileSinks


class Store:
    """What py4j shows of Hadoop's paths and file systems; the files of each directory by its path."""

    def __init__(self, **files: list[str]) -> None:
        self.files = {f"/{name.replace('__', '/')}": names for name, names in files.items()}
        state = SimpleNamespace(newHadoopConf=lambda: "settings", sqlParser=lambda: self, catalog=lambda: self)
        self.hadoop: Any = lambda: (state, self.path)
        self.provider = "parquet"

    def path(self, first: Any, *more: str) -> Any:
        text = "/".join([str(getattr(first, "text", first)), *more])
        return SimpleNamespace(text=text, getFileSystem=lambda _: self, getName=lambda: text.rpartition("/")[2])

    def makeQualified(self, path: Any) -> Any:  # noqa: N802  # Hadoop's
        return SimpleNamespace(toString=lambda: f"hdfs://names{path.text}")

    def exists(self, path: Any) -> bool:
        return path.text in self.files

    def listStatus(self, path: Any) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(getPath=lambda name=name: self.path(name)) for name in self.files[path.text]]

    def parseTableIdentifier(self, name: str) -> str:  # noqa: N802  # Spark's
        return name

    def tableExists(self, name: str) -> bool:  # noqa: N802
        return f"/{name}/_spark_metadata" in self.files

    def getTableMetadata(self, name: str) -> Any:  # noqa: N802
        return SimpleNamespace(provider=lambda: SimpleNamespace(get=lambda: self.provider), location=lambda: f"/{name}")


def fault(store: Store, path: str = "/out", checkpoint: str = "/c", *, table: str = "", copies: bool = False) -> str:
    return FileSinks().fault(store.hadoop, "q", path, checkpoint, bool, table=table, copies=copies)


@pytest.mark.parametrize(
    ("written", "begun", "dropped"),
    [
        (None, None, None),  # the first start of all
        (None, ["0", "1"], None),  # it has gone over to a new directory
        (["0", "1"], None, "its next batch is 0, and hdfs://names/out has batches up to 1"),
        (["0"], [], "its next batch is 0"),
        (["8", "9.compact", "10", ".10.crc"], ["9"], "its next batch is 10, and hdfs://names/out has batches up to 10"),
        (["9.compact", "10"], ["9", "10", ".11.tmp"], None),  # killed between the sink's commit and its own
        (["9.compact"], ["9", "10"], None),
        ([".0.crc", "tmp"], None, None),
    ],
)
def test_a_query_that_is_behind_what_its_directory_has_would_lose_batches(
    written: list[str] | None, begun: list[str] | None, dropped: str | None
) -> None:
    files = {"out___spark_metadata": written, "c__offsets": begun}
    store = Store(**{name: names for name, names in files.items() if names is not None})
    found = fault(store)
    assert bool(found) == (dropped is not None)
    assert (dropped or "") in found


def test_one_with_a_new_checkpoint_begins_with_batch_0() -> None:
    assert "its next batch is 0" in fault(Store(out___spark_metadata=["4"], c__offsets=["7"]), checkpoint="")


def test_a_copy_may_be_behind_and_only_one_that_begins_anew_is_refused() -> None:
    """Before a change is tried with it the query itself goes on."""
    store = Store(out___spark_metadata=["9"], c__offsets=["7"])
    assert "its next batch is 8" in fault(store)
    assert fault(store, copies=True) == ""
    assert "its next batch is 0" in fault(store, checkpoint="/new", copies=True)


def test_the_directory_of_a_table_is_looked_at_if_it_is_one_of_files() -> None:
    store = Store(t___spark_metadata=["0"])
    assert "hdfs://names/t has batches up to 0" in fault(store, path="", table="t")
    store.provider = "delta"
    assert fault(store, path="", table="t") == ""


def test_a_table_that_is_made_anew_is_looked_for_where_it_will_be() -> None:
    store = Store(t___spark_metadata=["0"], old___spark_metadata=["3"])
    assert "hdfs://names/old has batches up to 3" in fault(store, path="/old", table="another")
    assert "hdfs://names/t has batches up to 0" in fault(store, path="/old", table="t")


def test_queries_without_a_name_are_told_apart() -> None:
    store, sinks, running = Store(), FileSinks(), {"id-1"}

    def ask(query: str, path: str = "/out") -> str:
        return sinks.fault(store.hadoop, query, path, "", running.__contains__)

    assert ask("") == ""
    sinks.begun("id-1")
    assert "the query 'id-1' writes to hdfs://names/out as well" in ask("")
    assert "the query 'id-1' writes" in ask("named")
    assert ask("", "/other") == ""
    running.clear()
    assert ask("") == "", "the first one has ended"


def test_one_that_did_not_start_is_not_taken_for_the_next_one() -> None:
    store, sinks = Store(), FileSinks()
    assert sinks.fault(store.hadoop, "", "/out", "", bool) == ""
    sinks.forget("")  # the next one is asked about: it writes to something else
    sinks.begun("id-2")
    assert sinks.fault(store.hadoop, "named", "/out", "", bool) == ""


def test_two_queries_that_run_do_not_share_a_directory() -> None:
    store, sinks, running = Store(), FileSinks(), {"a"}

    def ask(query: str, path: str = "/out") -> str:
        return sinks.fault(store.hadoop, query, path, "/c", running.__contains__)

    assert ask("a") == ask("b", "/other") == ""
    assert "the query 'a' writes to hdfs://names/out as well" in ask("b")
    assert ask("a") == "", "it is started once more"
    running.clear()
    assert ask("b") == "", "the other one has ended"


def test_what_cannot_be_looked_at_is_for_the_start_to_say() -> None:
    store = Store(out___spark_metadata=["0"])
    store.hadoop = lambda: None
    assert fault(store) == ""
