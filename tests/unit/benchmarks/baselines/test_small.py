"""Tests of the baselines without servers: names of nodes, command lines, and counting."""

import json
from pathlib import Path

import pytest

from benchmarks.baselines import appended_words, election
from benchmarks.baselines.contender import parse
from leader.errors import InvalidName
from store.open import open_files

KAZOO = "d490f035a1ba4ccdaaa61dd0a4ee901b__lock__0000000010"
CURATOR = "_c_9c8f5fcf-47d6-42a5-a39a-99735ed3aec1-latch-0000000009"


def test_later_nodes_have_higher_epochs_and_the_lowest_leads() -> None:
    assert (election.epoch(CURATOR), election.epoch(KAZOO)) == (10, 11)
    assert election.in_order(["lease", KAZOO, CURATOR, "lock-00000000x1"]) == [CURATOR, KAZOO]
    for wrong in ("", "000000001", "lock--000000001"):
        with pytest.raises(ValueError, match="no contender's node"):
            election.epoch(wrong)


def test_a_job_has_places_of_its_own() -> None:
    assert election.path("kazoo", "job-1") == "/baselines/job-1/kazoo"
    assert election.finished("job-1") == "/baselines/job-1/finished"
    with pytest.raises(InvalidName):
        election.path("kazoo", "../job")


def test_a_contender_is_told_what_the_sidecar_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_ZOOKEEPER", "localhost:1")
    monkeypatch.setenv("HA_SESSION_TIMEOUT", "6")
    task = parse("it", ["job-1", "--contender", "a", "--", "run", "--", "this"])
    assert (task.job, task.settings.leadership.contender, task.command) == ("job-1", "a", ["run", "--", "this"])
    assert task.grace == 2.0  # a third of the session timeout is shorter than the usual 3 s
    monkeypatch.setenv("HA_STOP_GRACE", "1")
    assert parse("it", ["job-1", "--", "run"]).grace == 1.0


@pytest.mark.parametrize("words", [["job-1"], ["job-1", "--"], ["a job", "--", "run"], ["--", "run"]])
def test_a_contender_refuses_what_it_cannot_do(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_ZOOKEEPER", "localhost:1")
    with pytest.raises(SystemExit):
        parse("it", words)


def test_a_contender_needs_zookeeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HA_ZOOKEEPER", raising=False)
    with pytest.raises(SystemExit):
        parse("it", ["job-1", "--", "run"])


def test_words_are_counted_in_what_spark_has_committed(tmp_path: Path) -> None:
    def write(name: str, *words: str) -> None:
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"word": word}) + "\n" for word in words))

    with open_files(f"file://{tmp_path}") as files:
        assert not appended_words.read_counts(files, "out")
        write("part-00000-1.json", "a", "b", "a")
        write("part-00000-2.json", "a")
        write("part-00000-3.json")
        write("_SUCCESS")
        write(".part-00000-1.json.crc", "c")
        write("_temporary/0/part-00000-4.json", "c")
        write("_spark_metadata/0", "c")
        assert appended_words.read_counts(files, "out") == {"a": 3, "b": 1}
