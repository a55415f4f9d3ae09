"""Seeking: a query goes on at other offsets with its state kept, whole or not at all, and back again."""

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from ha.checkpoints import contents
from ha.kafka.clients import Held, TopicPlaces
from ha.outputs.batch import Batch, plan_of
from ha.spark.checkpoint_tools.seeking import EARLIEST, LATEST, Aim, Seeking, SeekOutlook, aimed
from ha.spark.rewind.completing import complete
from ha.spark.rewind.published import ASIDE, KEEP
from ha.spark.stored.ledger import Ledger
from leader.errors import InvalidSettings
from store.errors import Invalid, StoreError
from tests.system.spark.batches import batch, line_of
from tests.unit.ha.spark.checkpoint_tools.place import QUERY, Place, checkpoint, led
from tests.unit.ha.spark.checkpoint_tools.test_rewinding import Dying, Job, copied, numbered, put

pytestmark = pytest.mark.slow


class Topics:
    """Topics of a broker that a test makes; the real one is in tests/system."""

    def __init__(self, **held: dict[int, Held]) -> None:
        self.known, self.times = held, dict[int, int]()

    def held(self, topic: str) -> dict[int, Held]:
        return self.known[topic]

    def at(self, _: str, partitions: set[int], time_ms: int) -> dict[int, int]:
        assert time_ms == 1_764_079_200_000
        return {each: self.times.get(each, -1) for each in partitions}


class KafkaJob(Job):
    """The query joins topic "orders" with a folder: batch N ends at offset 10 N in partition 0, and 20 N in 1."""

    topics: Topics

    def commit(self, newest: int, query: str = QUERY) -> None:
        files = checkpoint(newest)
        for each in range(newest + 2):
            head = {"batchWatermarkMs": 7, "batchTimestampMs": each, "conf": {"spark.sql.shuffle.partitions": "1"}}
            topic = {"orders": {"0": 10 * each, "1": 20 * each}}
            lines = ["v1", json.dumps(head), f'{{"logOffset":{each}}}', json.dumps(topic)]
            files[f"offsets/{each}"] = "\n".join(lines).encode()
        shutil.rmtree(self.home / "spark" / query, ignore_errors=True)
        self.place.write(self.place.below(self.leadership.path(f"spark/{query}")), files)

    def publish(self, batches: range, rows: str, name: str = "clean") -> list[bool]:
        """Publish as Spark would, with what the checkpoint plans."""
        found = []
        with self.output(name) as output:
            for each in batches:
                data = (self.home / f"spark/{QUERY}/offsets/{each}").read_bytes()
                planned = Batch(each, line_of(self.leadership, QUERY), plan_of(contents.offsets(data), data))
                frame = batch({f"day={day}": f"{rows}{each}" for day in (1, 2)}, line=planned.line)
                output._origins.of = lambda *_, planned=planned: planned  # type: ignore[method-assign]
                found.append(output.write(frame, each))
        return found

    @property
    def seeking(self) -> Seeking:
        return Seeking(self.files, "orders", QUERY, self.leadership.own.leader)

    def look(self, aim: Aim) -> SeekOutlook:
        return self.seeking.look_ahead(aim, cast("TopicPlaces", self.topics))

    def seek(self, aim: Aim, choice: str = ASIDE) -> None:
        self.seeking.seek(self.leadership, self.look(aim), choice)

    def offsets(self, number: int) -> contents.Offsets:
        return contents.offsets((self.home / f"spark/{QUERY}/offsets/{number}").read_bytes())

    @property
    def gaps(self) -> list[str]:
        (home,) = [each.name for each in (self.home / "out").iterdir()]
        plans = {int(each.parent.name): each for each in self.home.glob("out/*/done/*/*/files=*")}
        assert plans
        from ha.outputs.reading import JournalReader  # noqa: PLC0415

        reader = JournalReader(lambda: self.leadership.own)
        (output,) = reader.outputs()
        rows = [row for ids in reader.ids(output, range(100)) for row in reader.listed(output, ids)]
        return [
            each.why
            for each in Ledger(self.leadership.own).whole(
                home, {row.batch: row.after for row in rows}, {row.batch: row.plan for row in rows}, {0}
            )
        ]


@pytest.fixture
def job(local: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaJob]:
    """The query has committed batch 5, its output has published it, and batch 6 is begun."""
    with led(KafkaJob, local, tmp_path, monkeypatch) as made:
        made.topics = Topics(orders={0: Held(30, 90), 1: Held(0, 200)})
        made.commit(5)
        made.publish(range(6), "old")
        yield made


def after(job: KafkaJob, aim: Aim) -> dict[int, int | None]:
    return {each.partition: each.after for each in job.look(aim).moves}


def test_the_newest_batch_ends_elsewhere_and_all_else_is_as_it_was(job: KafkaJob) -> None:
    before = job.state
    job.seek({"orders": {0: 35}})
    for number, time in ((5, 5), (4, 4)):
        found = job.offsets(number)
        assert found.sources == {"0": {"logOffset": number}, "1": {"orders": {"0": 35, "1": 100}}}
        assert (found.watermark_ms, found.time_ms, found.partitions) == (7, time, 1)
    files, seen, shifts = job.state
    assert "offsets/6" not in files
    assert {path: data for path, data in files.items() if path not in ("offsets/5", "offsets/4")} == {
        path: before[0][path] for path in files.keys() - {"offsets/5", "offsets/4"}
    }
    assert (seen, shifts) == before[1:]
    job.undo()
    assert job.state == before


def test_outputs_and_their_ledger_know_the_batches_again(job: KafkaJob) -> None:
    """Found before it was released: batch 5 was told to have other input than its record says."""
    assert job.gaps == []
    job.seek(LATEST)
    assert job.gaps == []
    (job.home / f"spark/{QUERY}/offsets/6").write_bytes(b'v1\n{"conf":{}}\n{"logOffset":5}\n{"orders":{"0":91}}')
    assert job.publish(range(5, 7), "new") == [False, True], "batch 5 is known, as it was planned"
    assert job.gaps == []


def test_seeks_follow_each_other(job: KafkaJob) -> None:
    job.seek(LATEST)
    job.seek(EARLIEST)
    assert job.offsets(5).sources["1"] == {"orders": {"0": 30, "1": 0}}
    assert job.gaps == []
    job.undo()
    assert job.offsets(5).sources["1"] == {"orders": {"0": 90, "1": 200}}


def test_what_is_skipped_and_read_again_is_shown(job: KafkaJob) -> None:
    job.topics.times = {0: 88}
    assert after(job, LATEST) == {0: 90, 1: 200}
    assert after(job, EARLIEST) == {0: 30, 1: 0}
    assert after(job, datetime(2025, 11, 25, 14, tzinfo=UTC)) == {0: 88, 1: 200}, "no record is that young: the end"
    assert after(job, {"orders": {0: LATEST, 1: EARLIEST}}) == {0: 90, 1: 0}
    outlook = job.look({"orders": {1: 120}})
    assert [(each.before, each.after) for each in outlook.moves] == [(50, 50), (100, 120)]
    assert (outlook.batch, outlook.begun, outlook.is_there, outlook.outputs) == (5, True, False, [])
    assert outlook.aim == {"orders": {0: 50, 1: 120}}
    assert job.look({"orders": {0: 50}}).is_there


def test_a_topic_that_was_made_again_has_other_partitions(job: KafkaJob) -> None:
    job.topics.known["orders"] = {0: Held(0, 4)}
    with pytest.raises(Invalid, match="Partition 0 of 'orders' holds the offsets from 0 to 4, and 50 is not among"):
        job.look({"orders": {}})
    assert after(job, EARLIEST) == {0: 0, 1: None}
    job.seek(EARLIEST)
    assert job.offsets(5).sources["1"] == {"orders": {"0": 0}}


def test_a_program_may_have_chosen_its_partitions(job: KafkaJob) -> None:
    """A query of a region reads two of three: one that it was given more would read them, too."""
    job.topics.known["orders"][2] = Held(0, 10)
    assert after(job, EARLIEST) == {0: 30, 1: 0}
    assert after(job, {"orders": {2: 3}}) == {0: 50, 1: 100, 2: 3}


@pytest.mark.parametrize(
    ("aim", "said"),
    [
        ({"orders": {0: 29}}, "holds the offsets from 30 to 90, and 29 is not among them"),
        ({"orders": {0: 91}}, "and 91 is not among them"),
        ({"orders": {7: 0}}, "Topic 'orders' has no partition 7: it has 0, 1"),
        ({"other": {0: 0}}, "Query 'daily' does not read topic 'other': it reads orders"),
    ],
)
def test_where_nothing_is_no_query_goes(job: KafkaJob, aim: Aim, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        job.look(aim)


def test_a_query_without_a_topic_or_a_batch_is_left_alone(job: KafkaJob) -> None:
    (job.home / f"spark/{QUERY}/offsets/5").write_bytes(b'v1\n{"conf":{}}\n{"logOffset":5}')
    with pytest.raises(Invalid, match="reads no Kafka topic"):
        job.look(LATEST)
    shutil.rmtree(job.home / f"spark/{QUERY}/commits")
    with pytest.raises(Invalid, match="has committed no batch: its program says where it begins"):
        job.look(LATEST)


@pytest.mark.parametrize(
    ("choice", "seen"), [(ASIDE, {"batch=6": "new6"}), (KEEP, {"batch=6": "old6", "batch=7": "new6"})]
)
def test_a_batch_that_was_published_and_not_committed_goes_aside_or_stays(
    job: KafkaJob, choice: str, seen: dict[str, str]
) -> None:
    job.publish(range(6, 7), "old")
    (concerned,) = job.look(LATEST).outputs
    assert (concerned.first, concerned.last) == (6, 6)
    job.seek(LATEST, choice)
    (job.home / f"spark/{QUERY}/offsets/6").write_bytes(b'v1\n{"conf":{}}\n{"logOffset":5}\n{"orders":{"0":91}}')
    assert job.publish(range(6, 7), "new") == [True]
    assert job.seen == {**numbered("old", range(6)), **seen}


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-11-25T14:00:00", "-2", '{"orders":5}', '{"orders":{"a":5}}', "{"]
)
def test_what_is_no_place_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidSettings, match="is no place in a topic: give earliest, latest, a time with its zone"):
        aimed(text)


def test_places_are_read() -> None:
    assert (aimed("latest"), aimed("earliest")) == (LATEST, EARLIEST)
    assert aimed("2025-11-25T15:00:00+01:00") == datetime(2025, 11, 25, 14, tzinfo=UTC)
    assert aimed('{"orders":{"0":120,"1":-2}}') == {"orders": {0: 120, 1: -2}}


def test_sources_with_names_keep_them(job: KafkaJob) -> None:
    path = job.home / f"spark/{QUERY}/offsets/5"
    path.write_bytes(b'v2\n{"conf":{},"sourceMetadataInfo":{}}\nrate:5\nin:{"orders":{"0":50,"1":1}}\nempty:-')
    job.seek({"orders": {0: 90}})
    assert path.read_bytes().split(b"\n")[2:] == [b"rate:5", b'in:{"orders":{"0":90,"1":1}}', b"empty:-"]


def test_a_crash_leaves_old_or_new(job: KafkaJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in each of its calls, which is executed: then the next leader completes it, or it never was."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    job.publish(range(6, 7), "old")
    before, kept = job.state, copied(job)
    shutil.copytree(kept, job.root / "first")
    job.seek({"orders": {0: 35}})
    new, calls, ended = job.state, 0, set()
    while True:
        put(job, job.root / "first")
        with pytest.MonkeyPatch.context() as patch:
            Dying(patch, calls, executed=True)
            try:
                job.seek({"orders": {0: 35}})
            except StoreError:
                pass
            else:
                break
        complete(job.leadership, job.leadership.own)
        assert job.state in (before, new), calls
        ended.add(job.state == new)
        calls += 1
    assert (calls > 12, ended) == (True, {False, True})
