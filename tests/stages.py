"""Stages: which tests decide whether a commit lands (the gate), and which qualify it afterwards, stage by stage.

``make test`` runs what no stage of the table has. ``make qualify`` runs the stages, one after the other, alone on the
machine: what is long, what is about speed, and what starts many JVMs. No test is in neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

GATE = "gate"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of ``make qualify``.

    Attributes:
        proves: what it shows, for people.
        tests: how the ids of its tests begin; none begin as those of "timed", which have a marker.
        minutes: after which it is ended.
        first: commands that run before its tests; all of it, if it has none.
    """

    proves: str
    tests: tuple[str, ...]
    minutes: float = 40.0
    first: tuple[str, ...] = ()


def _spark(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/system/spark/test_{name}.py" for name in names)


def _integration(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/system/integration/test_{name}.py" for name in names)


def _of(path: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{path}.py::test_{name}" for name in names)


STAGES: Mapping[str, Stage] = {
    "containers": Stage(
        "images, and failover drills of containers that share nothing",
        ("tests/system/containers/", "tests/system/drills/test_containers.py"),
        minutes=90.0,
        first=("make images",),
    ),
    "drills": Stage(
        "failover drills in the sandbox, and on two hosts",
        ("tests/system/drills/test_sandbox.py", "tests/system/deploying/"),
    ),
    "failovers": Stage(
        "drivers that are killed again and again, that hang, that are taken up, that save and go on",
        (
            *_spark("after_end", "engine", "drained_executors", "grid", "marathon", "savepoints", "stuck", "zombie"),
            *_of("system/spark/test_regional", "a_region_that_is_stuck"),
        ),
        minutes=60.0,
    ),
    "drivers": Stage(
        "cold drivers: examples, preflight, programs that change or fail, checkpoints that Spark goes on from",
        (
            *_spark("closures", "damage", "examples", "importing", "inspecting", "merging_in_full", "preflight"),
            *_spark("replicating", "rescaling", "restarts", "rewinding", "seeking", "source_names", "state_defaults"),
            *_spark("gaps", "strangers", "warm_state", "ways_of_starting"),
            *_of(
                "system/spark/test_supervised",
                "a_declared_job",
                "a_frozen_driver",
                "a_plain_program_is_led_and_ends_with_its_jvm[python]",
                "a_plain_program_is_led_and_ends_with_its_jvm[spark-submit]",
                "a_plain_program_that_ends_with_0",
                "leadership_is_given_back",
                "leadership_is_resigned",
            ),
            "tests/system/spark/test_word_count.py",
        ),
        minutes=60.0,
    ),
    "connectors": Stage(
        "Kafka, Hive's metastore, clusters of workers; readers of files of two types",
        (
            *_spark("late_tasks", "metastore", "topic", "topic_output", "worker_clusters"),
            *_of(
                "system/spark/test_columns",
                "what_is_taken_real_readers_read",
                "complete_means_that_a_reader_of_all_gets_each_row",
                "a_new_version_with_another_type_adds_nothing[Output",
            ),
        ),
    ),
    "tables": Stage(
        "tables of Delta and Iceberg, with a Spark that has both",
        (),
        first=("make matrix MATRIX='--spark 4.1.4 --ability tables'",),
    ),
    "programs": Stage(
        "all programs as people write them, each killed once",
        (),
        minutes=60.0,
        first=("make zoo ZOO='--kills 1 --only guarded --again --record build/zoo/results.json'",),
    ),
    "sidecars": Stage(
        "sidecars as processes: stored programs, savepoints, failures that escalate, warm standbys, what a host loses",
        (
            *(
                f"tests/unit/ha/sidecar/test_{name}.py"
                for name in (
                    "escalation",
                    "failing_verbs",
                    "hangs",
                    "job_status",
                    "promoted_away",
                    "replaced_installation",
                    "restart_query",
                    "savepoints",
                    "staying",
                    "things_removed",
                    "warm_standby",
                )
            ),
            *_of("unit/ha/sidecar/test_cleaned_twice", "a_standby_leads[warm]"),
            *_of("unit/ha/cli/test_submit", "a_", "the_environment"),
            *_of("unit/ha/cli/test_logs", "where_none_is_kept"),
            *_of(
                "unit/ha/cli/test_undo",
                *(f"what_a_leader_is_asked_for_says_so_too[{verb}]" for verb in ("job cancel", "job restart")),
                *(f"what_a_leader_is_asked_for_says_so_too[{verb}" for verb in ("job stop --", "savepoint")),
            ),
            *_of("unit/ha/sidecar/command/test_succession", "a_command_that_ends_meanwhile", "another_command"),
            *_of("unit/ha/sidecar/test_ends_in_order", "exit_0_is_a_failure_that_is_kept_and_counted[kept]"),
            *_of("unit/ha/sidecar/test_ends_in_order", "an_end_that_is_meant_is_a_success[exit]"),
            *_of("unit/ha/sidecar/test_ends_in_order", "an_end_that_is_meant_is_a_success[raised]"),
            *_of("unit/ha/sidecar/test_ends_in_order", "a_program_that_has_ended"),
            *_of(
                "unit/ha/sidecar/test_ends_in_order",
                "a_script_that_puts_its_program_into_the_background_is_no_success[nohup]",
            ),
            *_of("unit/ha/sidecar/test_settling", "a_cancelled_job", "a_job_is_started_again"),
            *_of(
                "unit/ha/sidecar/test_sidecar",
                *(
                    f"a_program_says_itself_how_its_job_ends[RUNNING {way}-"
                    for way in ("CANCELLING", "FAILING", "RESTARTING")
                ),
            ),
            *_of("unit/ha/sidecar/test_inherited", "grid"),
            *_of("unit/ha/sidecar/test_without_pidfds", "a_command_ends_as_it_ends", "what_it_has_started"),
            "tests/unit/ha/cli/test_status.py",
        ),
    ),
    "lacks": Stage(
        "what a host lacks for a while, in each process: threads, memory, descriptors, room, ports",
        ("tests/system/lacks/",),
        minutes=60.0,
    ),
    "sandboxes": Stage(
        "the sandbox: servers that are killed, paused, wiped, that follow one another, and whose silence ends the gate",
        (
            "tests/system/sandbox/",
            *_of("unit/ha/sandbox/test_cli", "up_status"),
            *_of("system/gate/test_gate", "a_server_that_stands_still"),
        ),
    ),
    "faults": Stage(
        "stores that fail: two NameNodes, HttpFS, routers, groups, ensembles, quotas",
        (
            *_integration(
                "mounted", "namenode_groups", "namenodes", "router", "server_faults", "takeovers", "zookeeper_faults"
            ),
            *_integration("gateway", "hdfs_faults", "shards", "succession", "suspicion"),
            *_of("system/integration/test_metrics", "an_outage_of_zookeeper"),
            *_of("system/integration/test_processes", "leadership_is_moved_by_hand"),
            "tests/system/flink_scenarios/test_quorum.py",
            "tests/system/zookeeper/test_restarts.py",
        ),
    ),
    "secured": Stage("stores with Kerberos, TLS and access lists", ("tests/system/secured/",)),
    "searches": Stage(
        "every order of events in a small model; the simulator and its canaries; two checkers; old bugs",
        (
            "tests/system/exhaustive/",
            "tests/system/simulation/test_canaries.py",
            *_of("system/simulation/test_simulation", "every_promise_is_kept"),
            *_of("system/simulation/test_directed", "many_of_them"),
            *_of("unit/ha/sidecar/machine/test_whatever_happens", "no_two_runs_overlap_and_each_promise_is_kept[1000]"),
            "tests/system/second_checker/",
            "tests/system/mutants/",
            "tests/system/track_record/",
        ),
    ),
    "crashes": Stage(
        "outputs through crashes at every call, with mutants that the search finds; whose batches they are",
        (
            *_of(
                "system/spark/test_whose_batches",
                "a_checkpoint_that_was_put_back",
                "a_copy_of_the_checkpoint",
                "a_write_",
            ),
            "tests/system/spark/test_sink_commit.py",
            "tests/system/spark/test_merging.py::test_through_crashes",
            *_of(
                "system/spark/test_partition_faults",
                "through_crashes_at_every_call_and_all_that_becomes_of_answers[all-",
            ),
            *(
                f"tests/system/spark/test_{name}[all]"
                for name in (
                    "plain_reader.py::test_through_crashes_at_every_call_and_all_that_becomes_of_answers",
                    "regional_faults.py::test_through_crashes_at_every_call_and_all_that_becomes_of_answers",
                    "sink.py::test_each_batch_once_through_crashes_repeated_tasks_and_zombies",
                )
            ),
            *_of("system/spark/test_sink", "with_spark_on_hdfs"),
            "tests/system/spark/test_plain_reader.py::test_a_move_that_is_believed",
            "tests/system/spark/test_regional_faults.py::test_a_batch_that_is_believed",
            "tests/system/spark/test_regional_faults.py::test_a_mark_that_is_forgotten",
        ),
    ),
    "hostile": Stage(
        "decoders under a fuzzer, and floods of connections",
        ("tests/system/fuzz/", "tests/unit/ha/listening/test_flood.py"),
    ),
    "page": Stage("the page, in a browser", ("tests/system/page/",)),
    "costs": Stage(
        "what is asked of the stores, counted; baselines of the benchmarks",
        (
            "tests/system/benchmarks/",
            "tests/system/integration/test_costs.py",
            *_of(
                "system/simulation/test_costs",
                "an_agent_",
                "an_audit_",
                "while_all_is_well_a_host_asks_the_namenode_twice_a_minute_for_a_job[with an",
                "while_nobody_leads_only_the_agent_asks[30.0",
            ),
            "tests/unit/benchmarks/test_takeover.py::test_a_round_with_real_contenders",
            "tests/unit/benchmarks/test_counting.py",
            "tests/unit/benchmarks/test_workers.py",
            "tests/unit/store/test_counting.py",
            "tests/unit/benchmarks/test_counting_work.py",
        ),
    ),
    "packages": Stage(
        "packages as users install them; known vulnerabilities of what is locked; Prometheus takes our alerts",
        ("tests/unit/test_packaging.py", *_of("unit/ha/metrics/test_documents", "promtool")),
        first=("make sbom", "make audit"),
    ),
    "oldest": Stage("the oldest Spark and Python with the oldest packages", (), first=("make oldest",)),
    "demo": Stage("the demo, as a user sees it", (), first=("make demo",)),
    "timed": Stage("what waits for an expiry, or asserts a duration: tests with that marker, wherever they are", ()),
}


def stage_of(item: pytest.Item) -> str:
    """Return the name of the stage that a test belongs to, or ``GATE``; its id counts before its marker."""
    named = (name for name, stage in STAGES.items() if item.nodeid.startswith(stage.tests))
    return next(named, "timed" if item.get_closest_marker("timed") else GATE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stage", choices=[GATE, *STAGES], help="run the tests of this stage alone")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    stage = config.getoption("--stage")
    if stage is not None:
        others = [item for item in items if stage_of(item) != stage]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if stage_of(item) == stage]
