"""Types of columns: a batch that readers cannot read with the others is not added, one with more columns is."""

from typing import Any

import pytest

from ha.outputs.batch import Batch
from ha.outputs.columns import TYPES, clash_of, merged, types_of
from ha.outputs.lines import Line
from leader.errors import InvalidSettings
from tests.unit.ha.outputs.place import Place

WORDS = Line("0a", "words")
PARQUET = ("parquet", ())


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def struct(**columns: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [field(name, kind) for name, kind in columns.items()]}


def array(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def mapped(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


NESTED = struct(a=array(struct(b=mapped("string", struct(c="long")))))


@pytest.mark.parametrize(
    ("known", "asked", "found"),
    [
        (struct(a="integer"), struct(a="integer"), None),
        (struct(a="integer"), struct(b="string"), None),
        (struct(a="integer"), struct(A="string"), ("A", "integer", "string")),
        (struct(a="integer"), struct(a=array("integer")), ("a", "integer", "array")),
        (struct(a=struct(b="long")), struct(a=struct(b="long", c="date")), None),
        (
            NESTED,
            struct(a=array(struct(b=mapped("string", struct(c="date"))))),
            ("a.element.b.value.c", "long", "date"),
        ),
        (NESTED, struct(a=array(struct(b=mapped("date", struct(c="long"))))), ("a.element.b.key", "string", "date")),
        (struct(a={"type": "udt", "sqlType": "long"}), struct(a="long"), None),
    ],
)
def test_where_two_types_meet(known: Any, asked: Any, found: tuple[str, str, str] | None) -> None:
    one, other = types_of(known), types_of(asked)
    assert clash_of(one, other) == found
    if found is None:
        both = merged(one, other)
        assert clash_of(both, one) is clash_of(both, other) is None
        assert merged(both, one) == merged(both, other) == both


def test_columns_of_partitions_are_in_no_file() -> None:
    assert types_of(struct(Day="date", a="long"), ["day"]) == {"a": "long"}


def test_a_column_of_another_type_is_refused_and_a_new_one_is_kept(place: Place) -> None:
    def adds(number: int, **columns: Any) -> bool:
        journal = place.journal(files=PARQUET)
        asked = [journal.asks_for_types]
        journal.expect(types_of(struct(**columns)))
        assert [*asked, journal.asks_for_types] == [True, False]
        return place.publish(journal, Batch(number, WORDS))

    assert adds(0, a="long")
    assert adds(1, a="long", b="date")
    assert adds(2, b="date")
    before = place.found
    for column, kind in (("a", "string"), ("b", "timestamp")):
        with pytest.raises(InvalidSettings, match=f"Column '{column}' of output 'output' has type .* would add {kind}"):
            adds(3, **{column: kind})
    assert place.found == before
    assert adds(3, a="long", b="date", c=array("long"))
    assert place.names(f"{TYPES}=") == [f"{TYPES}=3"], "what is new is written, and nothing else"


def test_a_query_that_begins_again_with_other_types_is_looked_at_again(place: Place) -> None:
    journal = place.journal(files=PARQUET)
    journal.expect({"a": "long"})
    assert place.publish(journal, Batch(0, WORDS))
    journal.expect({"a": "string"})
    with pytest.raises(InvalidSettings, match="has type long"):
        place.publish(journal, Batch(1, WORDS))


def test_a_crash_between_two_writings_of_them_is_mended_by_the_next(place: Place) -> None:
    journal = place.journal(files=PARQUET)
    journal.expect({"a": "long"})
    place.publish(journal, Batch(0, WORDS))
    (home,) = place.home.glob("out/output-*")
    (home / f"{TYPES}=1").rename(home / f"{TYPES}=2")
    (home / f"{TYPES}=1").mkdir()  # it was not deleted before the crash
    later = place.journal(files=PARQUET)
    later.expect({"a": "string"})
    with pytest.raises(InvalidSettings, match="has type long"):
        place.publish(later, Batch(1, WORDS))


@pytest.mark.parametrize("kind", ["json", "text", "csv", ""])
def test_files_that_say_no_types_are_not_asked(place: Place, kind: str) -> None:
    assert not place.journal(files=(kind, ())).asks_for_types
