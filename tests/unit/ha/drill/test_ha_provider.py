"""The command line of a drill's job."""

from ha.drill.ha_provider import HYBRID, WORD_COUNT, WORD_REGIONS, DrillJob


def test_a_program_with_several_outcomes_is_judged_by_all_of_them() -> None:
    job = DrillJob("orders", "word_regions.py", "hdfs://nn/x", 0.5, 0.0, WORD_REGIONS, "/faults")
    assert job.outcomes == ["hdfs://nn/x/output/counts", "hdfs://nn/x/output/totals"]
    assert DrillJob("orders", "word_count.py", "hdfs://nn/x", 0.5, 0.0).outcomes == ["hdfs://nn/x/output"]


def test_only_a_breakable_program_is_told_where_its_faults_are() -> None:
    def arguments(**given: object) -> list[str]:
        return DrillJob("orders", "driver.py", "hdfs://nn/x", 0.5, 0.0, **given).arguments()  # type: ignore[arg-type]

    assert "--faults" not in arguments(program=WORD_COUNT, faults="/faults")
    assert arguments(program=WORD_REGIONS, faults="/faults")[-2:] == ["--faults", "/faults"]


def test_contenders_without_a_command_and_with_again() -> None:
    """The word that separates a contender's options from its command is there once."""
    job = DrillJob("orders", "word_regions.py", "hdfs://nn/x", 0.5, 0.0, WORD_REGIONS, "/faults")
    assert HYBRID.contend(job, "a").count("--") == 1
