"""What a sidecar shows of its command's queries: from the driver's report, from the commit logs, from what it tells."""

import re
import urllib.request

import pytest

from tests.patience import PATIENCE_S
from tests.unit.ha.noting import NOTES, Notes, run
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

REPORTS = (
    NOTES
    + """
from pathlib import Path
from ha.program.files import write
from ha.program.query_report import QueryReport
from store.clock import now
write(Path(os.environ["HA_QUERIES"]), [QueryReport("clean", state="RUNNING", fresh_at=now(), starts=1)])
note("reports")
stay()
"""
)
COMMITS = (
    NOTES
    + """
from pathlib import Path
commits = Path(os.environ["HA_LEADER_DIRECTORY"].removeprefix("file://"), "spark", "clean", "commits")
commits.mkdir(parents=True, exist_ok=True)
(commits / "3").touch()
note("commits")
stay()
"""
)


@pytest.mark.parametrize(("source", "options"), [(REPORTS, ()), (COMMITS, ("--spark",))], ids=["report", "commits"])
def test_a_query_has_its_series(workplace: Workplace, notes: Notes, source: str, options: tuple[str, ...]) -> None:
    program = run(workplace, "a", source, "--listen", "127.0.0.1:0", *options)
    notes.until(1, program)
    address = re.search(r"answers at (http://\S+)\.\n", program.said)
    assert address is not None

    def shown() -> str:
        with urllib.request.urlopen(f"{address[1]}/metrics", timeout=PATIENCE_S) as answer:  # noqa: S310  # its own API
            said: str = answer.read().decode()
        return said

    wait_until(lambda: 'ha_query_state{job_name="orders",query="clean",state="RUNNING"} 1.0' in shown())
    assert 'ha_checkpoint_age_seconds{job_name="orders",query="clean"}' in shown()
    assert 'ha_checkpoints_total{job_name="orders",query="clean"} 0.0' in shown()
