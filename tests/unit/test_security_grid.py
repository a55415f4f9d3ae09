"""Who can harm what: the table in docs/security.md is made from this grid, and each of its cells names tests.

python -m tests.unit.test_security_grid
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- the grid: python -m tests.unit.test_security_grid -->", "<!-- the end of the grid -->"

WHO = (
    "another user of the host", "a client in the network", "who may write in a checkpoint",
    "a token of the role read", "a token of the role operate",
)  # fmt: skip


class Cell(NamedTuple):
    """What somebody can do to something, and the tests that show it, as ``folder/file::test``."""

    verdict: str
    tests: tuple[str, ...]


def no(*tests: str) -> Cell:
    return Cell("no", tests)


def yes(what: str, *tests: str) -> Cell:
    return Cell(what, tests)


LISTENING, API = "unit/ha/listening", "unit/ha/api"
OPERATES = f"{API}/test_requests.py::test_only_who_may_operate_may_ask"
NO_TOKENS = f"{API}/test_requests.py::test_without_tokens_nobody_may"
REFUSED = f"{API}/test_requests.py::test_what_cannot_be_asked"
BY_RIGHT = "by right of its files"
HOSTILE = f"{API}/test_reads.py::test_a_hostile_checkpoint_is_told_and_harms_nothing_else"
REGULAR = "unit/ha/checkpoints/test_trees.py::test_only_regular_files_are_read_and_copied"

GRID: dict[str, tuple[Cell, Cell, Cell, Cell, Cell]] = {
    "who leads": (
        no(
            "unit/ha/program/test_deadline_file.py::test_only_its_own_user_can_read_it",
            "unit/ha/agent/test_lending.py::test_a_process_of_another_user_is_turned_away",
        ),
        no(f"{LISTENING}/test_flood.py::test_a_flood_on_every_port_moves_no_leader_and_fails_no_lookup"),
        yes(
            BY_RIGHT,
            "unit/leader/contender/test_damage.py::"
            "test_a_directory_of_a_higher_epoch_put_there_by_hand_fences_the_leader",
        ),
        no(OPERATES),
        yes(
            "stop, cancel, pause",
            f"{API}/test_requests.py::test_a_pause_and_its_end_are_done_at_once_with_or_without_a_leader",
        ),
    ),
    "the program and its queries": (
        no(
            "system/spark/test_strangers.py::test_ha_run_keeps_them_from_a_program_that_imports_nothing",
            "system/spark/test_strangers.py::test_an_import_keeps_them_from_a_program_that_leads",
        ),
        no(NO_TOKENS),
        yes(BY_RIGHT, "unit/leader/job/test_request_folder.py::test_a_request_is_accepted_and_then_answered"),
        no(OPERATES),
        yes("restart", f"{API}/test_requests.py::test_what_is_asked_for_reaches_the_leader_and_its_answer_comes_back"),
    ),
    "checkpoints and savepoints": (
        no("system/integration/test_hdfs_faults.py::test_permission_denied"),
        no(NO_TOKENS),
        yes("damage, which is found", "unit/ha/checkpoints/test_verify.py::test_every_hole_is_found"),
        no(OPERATES),
        yes(
            "take and start from; rewind, rescale, sweep",
            f"{API}/test_requests.py::test_a_savepoint_is_asked_for_with_its_place_and_its_result_comes_back",
            f"{API}/test_long_operations.py::test_a_job_is_swept_dry_and_the_answer_is_what_the_command_prints",
        ),
    ),
    "the API and its page": (
        no(f"{LISTENING}/test_server.py::test_many_silent_connections_do_not_keep_others_out"),
        no(f"{API}/test_events.py::test_a_host_with_many_streams_shuts_no_other_out"),
        no(HOSTILE),
        no(f"{API}/test_events.py::test_behind_one_proxy_each_token_has_its_share"),
        no(f"{LISTENING}/test_connections.py::test_whoever_has_the_most_loses_the_oldest"),
    ),
    "secrets": (
        no(
            "unit/ha/config/test_log.py::test_any_right_of_others_is_too_much",
            "unit/ha/sandbox/test_state.py::test_nobody_else_enters_the_folders_of_a_secure_sandbox",
        ),
        yes("overhear tokens without TLS", f"{LISTENING}/test_access.py::test_tokens_in_the_clear_are_warned_of"),
        no(REGULAR),
        no(f"{LISTENING}/test_access.py::test_a_daemon_does_what_its_settings_say_and_shows_no_token"),
        no("unit/ha/jobmaster/test_serving.py::test_the_application_does_not_see_the_token"),
    ),
    "what readers are told": (
        no("unit/ha/agent/test_finder.py::test_files_of_another_user_are_not_trusted"),
        no("unit/leader/lookup/test_verification.py::test_a_forged_record_is_no_answer_while_hdfs_is_up"),
        yes(BY_RIGHT, "system/hostile/test_records.py::test_no_file_is_taken_for_a_snapshot_that_is_none"),
        no(OPERATES),
        yes("that a job is paused", f"{API}/test_requests.py::test_a_reason_that_is_too_long_pauses_nothing"),
    ),
    "files elsewhere": (
        no(
            "unit/ha/hosts/test_cache.py::test_what_another_user_can_write_is_made_again",
            "unit/ha/sidecar/test_things_removed.py::test_one_whose_name_another_user_has_taken_meanwhile_is_not_used",
        ),
        no(f"{API}/test_page.py::test_a_path_out_of_the_folder_is_not_served"),
        no(REGULAR, "unit/ha/checkpoints/test_trees.py::test_a_file_is_copied_up_to_its_listed_length"),
        no(f"{API}/test_page.py::test_a_path_out_of_the_folder_is_not_served"),
        no(f"{API}/test_requests.py::test_savepoints_are_only_where_they_may_be"),
    ),
    "memory and descriptors": (
        no("unit/ha/daemon/test_liveness_socket.py::test_whoever_is_too_many_is_greeted_and_closed"),
        no(
            f"{LISTENING}/test_server.py::test_an_answer_that_nobody_reads_is_given_up",
            f"{LISTENING}/test_server.py::test_a_request_that_trickles_has_no_longer",
        ),
        no(
            HOSTILE,
            "unit/ha/checkpoints/test_start.py::test_a_number_of_partitions_that_cannot_be_fills_no_memory",
            "unit/ha/checkpoints/test_start.py::test_a_batch_whose_number_cannot_be_fills_no_memory",
        ),
        no(f"{API}/test_reads.py::test_those_who_ask_at_the_same_time_share_a_look"),
        no(REFUSED),
    ),
    "an operator's terminal and browser": (
        no(f"{LISTENING}/test_throttle.py::test_a_line_is_written_once_in_a_while_and_says_how_often_it_was_left_out"),
        no(
            f"{LISTENING}/test_server.py::test_a_foreign_host_is_not_answered",
            f"{API}/test_requests.py::test_a_form_is_no_request",
        ),
        no("unit/ha/cli/test_inspect.py::test_a_text_of_the_checkpoint_does_not_command_the_terminal"),
        no(f"{API}/test_page.py::test_nothing_is_read_as_html_and_nothing_comes_from_elsewhere"),
        no("system/page/test_page.py::test_a_job_fits_and_nothing_of_it_is_taken_for_html"),
    ),
}
"""For each thing a cell for each of :data:`WHO`."""

TESTS = sorted({each for row in GRID.values() for cell in row for each in cell.tests})


def table() -> str:
    lines = [f"| can harm | {' | '.join(WHO)} |", f"|{'---|' * (len(WHO) + 1)}"]
    lines += [f"| {what} | {' | '.join(cell.verdict for cell in row)} |" for what, row in GRID.items()]
    return "\n".join(lines)


def parts() -> tuple[str, str, str]:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    inside, _, after = rest.partition(END)
    return before, inside, after


def test_the_page_has_the_grid() -> None:
    assert parts()[1].strip() == table(), "python -m tests.unit.test_security_grid writes it"


@pytest.mark.parametrize("test", TESTS)
def test_each_test_of_the_grid_exists(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_cell_has_a_test() -> None:
    assert [what for what, row in GRID.items() if not all(cell.tests for cell in row)] == []


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}")
