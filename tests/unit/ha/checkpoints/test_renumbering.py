"""Renumbering: operators are found again by what they are, or not at all; files that say numbers say the new ones."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.contents import Unreadable, operator_stores, state_ids
from ha.checkpoints.layouts import Layout
from ha.checkpoints.renumbering import Doubt, match, renumbered_path, rewritten
from ha.checkpoints.schemas import Field, StateSchema
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import Condition, judged
from ha.spark.checkpoint_tools.copying import Staging
from ha.spark.checkpoint_tools.importing import RenumberedTree, check_plan
from store.errors import Invalid
from store.open import open_files
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, HDFS, ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch

KINDS = st.sampled_from(["stateStoreSave", "dedupe"])
FIELDS = st.lists(st.builds(Field, st.sampled_from("abc"), st.sampled_from(["int", "string"])), max_size=2)
SCHEMAS = st.builds(StateSchema, st.just("default"), FIELDS, FIELDS)
OPERATORS = st.lists(st.tuples(KINDS, SCHEMAS), min_size=1, max_size=5)


def numbered(operators: list[tuple[str, StateSchema]], order: list[int]) -> dict[int, Layout]:
    return {new: Layout(new, name, {"default": schema}) for (name, schema), new in zip(operators, order, strict=True)}


@given(OPERATORS, st.data())
def test_operators_are_found_again_under_any_numbers_or_there_is_doubt(
    operators: list[tuple[str, StateSchema]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(operators))))
    before, after = numbered(operators, list(range(len(operators)))), numbered(operators, order)
    if len({(name, repr(schema)) for name, schema in operators}) == len(operators):
        assert match(before, after) == dict(enumerate(order))
    else:
        with pytest.raises(Doubt, match="cannot be matched without doubt"):
            match(before, after)


@given(OPERATORS, st.integers(0, 4))
def test_one_operator_more_or_less_is_doubt(operators: list[tuple[str, StateSchema]], gone: int) -> None:
    full = numbered(operators, list(range(len(operators))))
    less = {number: each for number, each in full.items() if number != gone % len(operators)}
    for before, after in ((full, less), (less, full)):
        with pytest.raises(Doubt):
            match(before, after)


def test_doubt_shows_both_sides() -> None:
    counts = StateSchema("default", [Field("user", "string")], [Field("count", "bigint")])
    twice = numbered([("stateStoreSave", counts), ("stateStoreSave", counts)], [0, 1])
    with pytest.raises(Doubt) as caught:
        match(twice, twice)
    assert str(caught.value).splitlines() == [
        "The operators cannot be matched without doubt.",
        "  stateStoreSave: operator 0, operator 1 in the checkpoint, operator 0, operator 1 in the program",
        *(
            f"  {side}: 0 is stateStoreSave (default: user string -> count bigint), "
            "1 is stateStoreSave (default: user string -> count bigint)"
            for side in ("checkpoint", "program")
        ),
    ]


@pytest.mark.parametrize(
    "layout", [Layout(0, "", {"default": StateSchema("default", [], [])}), Layout(0, "stateStoreSave", {})]
)
def test_what_has_no_name_or_no_schema_is_doubt(layout: Layout) -> None:
    with pytest.raises(Doubt):
        match({0: layout}, {0: layout})


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("state/0/1/left/3.delta", "state/2/1/left/3.delta"),
        ("state/2/_metadata/metadata", "state/0/_metadata/metadata"),
        ("state/1/0/3.zip", "state/1/0/3.zip"),
        ("commits/0", "commits/0"),
        ("sources/0/0", "sources/0/0"),
    ],
)
def test_paths_get_new_numbers(path: str, new: str) -> None:
    assert renumbered_path(path, {0: 2, 2: 0, 1: 1}) == new


def test_commits_and_metadata_say_new_numbers_and_all_else_as_before() -> None:
    commit = b'v2\n{"nextBatchWatermarkMs":5,"stateUniqueIds":{"0":[["a"]],"1":[["b"]]}}'
    assert state_ids(rewritten(commit, {0: 1, 1: 0})) == {1: [["a"]], 0: [["b"]]}
    assert json.loads(rewritten(commit, {0: 1, 1: 0}).partition(b"\n")[2])["nextBatchWatermarkMs"] == 5
    assert rewritten(b'v1\n{"nextBatchWatermarkMs":0}', {0: 1}) == b'v1\n{"nextBatchWatermarkMs":0}'
    stores = [{"storeName": "s", "numPartitions": 2, "stateSchemaFilePaths": ["file:/x/state/0/_stateSchema/s/0_a"]}]
    said = {"operatorInfo": {"operatorId": 0, "operatorName": "tws"}, "stateStoreInfo": stores}
    found = rewritten(f"v2\n{json.dumps(said)}".encode(), {0: 1, 1: 0})
    assert operator_stores(found).schemas == ["state/1/_stateSchema/s/0_a"]
    assert json.loads(found.partition(b"\n")[2])["operatorInfo"]["operatorId"] == 1


@pytest.mark.parametrize(
    "data", [b"", b"v1\n", b"v1\n[]", b'v1\n{"stateUniqueIds":{"x":[]}}', b'v1\n{"operatorInfo":{}}x']
)
def test_what_has_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        rewritten(data, {0: 1})


@pytest.mark.parametrize("kind", FORMATS)
def test_a_copy_of_a_renumbered_checkpoint_is_whole_and_there_and_back_is_the_same(tmp_path: Path, kind: str) -> None:
    until_batch(kind, 6).write_to(tmp_path / "old")
    with open_files(tmp_path.as_uri()) as files:
        for source, target, numbers in (("old", "new", {0: 3}), ("new", "back", {3: 0})):
            view = RenumberedTree(Tree(files, source), numbers)
            Staging(files, f"staging-{target}", tree=target).fill(view, view.listing())
        assert [each.condition for each in judged(CheckpointReader(Tree(files, "new")))] == [
            each.condition for each in judged(CheckpointReader(Tree(files, "old")))
        ]
        assert {path.name for path in (tmp_path / "new/state").iterdir()} == {"3"}
        old, back = Tree(files, "old"), Tree(files, "back")
        assert old.listing().keys() == back.listing().keys()
        assert Condition.DAMAGED not in {each.condition for each in judged(CheckpointReader(back))}
        ids = {each: (tmp_path / each / "commits/6").read_bytes() for each in ("old", "new")}
    if kind == ROCKSDB_IDS:
        assert list(state_ids(ids["new"])) == [3]
        assert list(state_ids(ids["new"]).values()) == list(state_ids(ids["old"]).values())


def test_two_views_of_one_directory_are_told_apart_and_are_listed_as_a_whole(tmp_path: Path) -> None:
    until_batch(HDFS, 1).write_to(tmp_path / "old")
    with open_files(tmp_path.as_uri()) as files:
        tree = Tree(files, "old")
        views = [RenumberedTree(tree, numbers) for numbers in ({0: 1}, {0: 2})]
        assert len({tree.uri, *(each.uri for each in views)}) == 3
        with pytest.raises(Invalid, match="as a whole"):
            views[0].listing("state")


def test_a_plan_for_another_checkpoint_is_refused(tmp_path: Path) -> None:
    until_batch(HDFS, 1).write_to(tmp_path / "old")
    with open_files(tmp_path.as_uri()) as files, pytest.raises(Invalid, match=r"has other operators than .* plan"):
        check_plan(Tree(files, "old"), {7: Layout(7, "dedupe", {})})
