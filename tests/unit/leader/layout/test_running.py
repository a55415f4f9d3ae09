"""What runs, as names: a command by its digest, and a file system only where it is known."""

from hypothesis import given
from hypothesis import strategies as st

from leader.layout.running import Running, contradiction, others, runs
from store.files import MAX_COMPONENT_BYTES

ONE = Running.of(["spark-submit", "/opt/one.py", "--day", "1"], "hdfs://a:8020")
WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300), max_size=4)


def test_a_program_is_called_by_its_file() -> None:
    assert (ONE.program, Running.of(["/bin/sh", "run"], "").program) == ("one.py", "sh")
    assert Running.of([], "").program == "the stored program"


@given(WORDS, st.text(st.characters(exclude_categories=["Cs"]), max_size=90))
def test_what_is_written_is_read(command: list[str], files: str) -> None:
    wrote = Running.of(command, files)
    for name, read in (
        (wrote.entry(), runs([wrote.entry()])),
        (wrote.entry("host-1"), others([wrote.entry("host-1")]).get("host-1")),
    ):
        assert len(name.encode()) <= MAX_COMPONENT_BYTES
        assert read is not None
        assert read.digest == wrote.digest
        assert name.endswith("~~") or read == wrote


def test_a_host_s_own_name_in_a_command_is_no_difference() -> None:
    def on(host: str, *more: str) -> Running:
        words = ["spark-submit", "--conf", f"spark.driver.host={host}.example.com", f"--name={host}", host, *more]
        return Running.of(words, "", (host, f"{host}.example.com", ""))

    assert not on("h1").differs(on("h2"))
    assert on("h1", "h1x").differs(on("h2", "h2x")), "a part of a word is no name"
    assert on("h1", "a").differs(on("h2", "b"))


def test_names_of_others_are_nothing() -> None:
    assert runs(["runs=1~a~b", "runs=0123456789ab~_zz~", "status=RUNNING"]) is None
    assert others(["would=-a~0123456789ab~a~b", "would=a~0123456789ab~_zz~"]) == {}


def test_another_command_and_another_file_system_differ() -> None:
    same = Running.of(["spark-submit", "/opt/one.py", "--day", "1"], "hdfs://a:8020")
    words = Running.of(["spark-submit", "/opt/one.py", "--day", "2"], "hdfs://a:8020")
    two = Running.of(["spark-submit", "/opt/two.py"], "hdfs://a:8020")
    elsewhere = Running(ONE.digest, ONE.program, "hdfs://b:8020")
    unknown = Running(ONE.digest, ONE.program, "")
    assert [each.differs(ONE) for each in (same, words, two, elsewhere, unknown)] == [False, True, True, True, False]
    assert "one.py, where another one of that name, or with other words runs now" in contradiction("h", words, ONE)
    assert "two.py, where one.py runs now" in contradiction("h", two, ONE)
    assert "on hdfs://b:8020, the leader on hdfs://a:8020" in contradiction("h", elsewhere, ONE)
