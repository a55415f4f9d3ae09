"""An output begins, and goes on, only where a reader of the whole directory sees its batches."""

from collections.abc import Sequence

import pytest

from ha.outputs.batch import Batch
from ha.outputs.lines import Line
from leader.errors import InvalidSettings
from tests.unit.ha.outputs.place import Place

WORDS = Line("0a", "words")
Files = tuple[str, Sequence[str]]


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (("parquet", ()), ("parquet", ("day",)), "has partitions by no column, and this program would add partitions"),
        (("parquet", ("day",)), ("parquet", ()), "partitions by day, and this program would add .* by no column"),
        (("json", ("day",)), ("json", ("hour",)), "partitions by day, .* by hour"),
        (("json", ("day", "hour")), ("json", ("hour", "day")), "partitions by day, hour, .* by hour, day"),
        (("parquet", ()), ("json", ()), "files of format parquet, and this program would add files of format json"),
    ],
)
def test_another_version_of_the_program_makes_no_output_unreadable(
    place: Place, first: Files, then: Files, said: str
) -> None:
    days = [f"{each}=1" for each in first[1]]
    place.publish(place.journal(files=first), Batch(0, WORDS), days=["/".join(days)])
    before = place.found
    later = place.journal(files=then)
    with pytest.raises(InvalidSettings, match=said):
        later.settle()
    with pytest.raises(InvalidSettings, match=said):
        later.admit(Batch(1, WORDS))
    assert place.found == before
    assert place.publish(place.journal(files=first), Batch(1, WORDS), days=["/".join(days)]), "the first one goes on"


def test_a_format_in_capitals_is_the_same_one(place: Place) -> None:
    place.publish(place.journal(files=("JSON", ())), Batch(0, WORDS))
    assert place.publish(place.journal(files=("json", ())), Batch(1, WORDS))


def test_spark_s_readers_would_see_no_batch_beside_its_own_sink(place: Place) -> None:
    log = place.root / "out" / "_spark_metadata"
    log.mkdir(parents=True)
    (log / "0").touch()
    with pytest.raises(InvalidSettings, match=r"file sink has written to .* Give the output a new directory"):
        place.journal().admit(Batch(0, WORDS))
    (log / "0").unlink()
    log.rmdir()
    assert place.publish(place.journal(), Batch(0, WORDS))
    log.mkdir()
    (log / "0").touch()  # somebody has begun to write there meanwhile
    with pytest.raises(InvalidSettings, match="_spark_metadata"):
        place.journal().admit(Batch(1, WORDS))


@pytest.mark.parametrize("there", ["part-0.parquet", "day=1", "data"])
def test_an_output_does_not_begin_among_files_of_others(place: Place, there: str) -> None:
    (place.root / "out" / there).mkdir(parents=True)
    with pytest.raises(InvalidSettings, match=f"holds '{there}', which is none of output 'output'"):
        place.journal(files=("parquet", ())).admit(Batch(0, WORDS))
    assert place.names("line=") == [], "nothing is taken over"


@pytest.mark.parametrize(("there", "columns"), [("_SUCCESS", ()), (".tmp", ()), ("batch=7", ()), ("day=1", ("day",))])
def test_what_readers_skip_or_a_former_journal_has_left_is_no_hindrance(
    place: Place, there: str, columns: tuple[str, ...]
) -> None:
    (place.root / "out" / there).mkdir(parents=True)
    assert place.journal(files=("parquet", columns)).admit(Batch(0, WORDS))


@pytest.mark.parametrize("inside", ["out/_late", "late"])
def test_an_output_beside_another_one(place: Place, inside: str) -> None:
    place.publish(place.journal(), Batch(0, WORDS))
    assert place.journal("late", out=inside).admit(Batch(0, WORDS))


def test_an_output_does_not_begin_inside_of_another_one(place: Place) -> None:
    place.publish(place.journal(), Batch(0, WORDS))
    with pytest.raises(InvalidSettings, match=r"among the batches of another output, such as 'batch=0': .* beside it"):
        place.journal("late", out="out/late").admit(Batch(0, WORDS))
