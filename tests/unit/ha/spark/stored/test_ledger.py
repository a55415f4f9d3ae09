"""The ledger of a job, which reads everything, and the marks that it goes by."""

import json

from ha.checkpoints import contents
from ha.outputs.batch import plan_of
from tests.unit.ha.spark.stored.ledger_job import Job


def test_the_mark_follows_the_program(ledger_job: Job) -> None:

    def marks() -> list[str]:
        return sorted(each.name for each in ledger_job.folder().glob("every=*"))

    ledger_job.do(0, every=False)
    assert marks() == []
    ledger_job.do(1)
    ledger_job.do(2)
    assert marks() == ["every=0~1"]
    ledger_job.do(3, every=False)
    assert marks() == []
    ledger_job.out = ledger_job.journal("clicks")
    ledger_job.do(4)
    assert marks() == ["every=0~4"]


def test_a_batch_with_other_input_is_told(ledger_job: Job) -> None:
    ledger_job.do(0)
    (home,) = [each.name for each in (ledger_job.home / "out").iterdir()]
    said = json.loads('{"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}')
    data = f'v1\n{json.dumps(said)}\n{{"logOffset":0}}'.encode()
    right = plan_of(contents.offsets(data), data)
    assert ledger_job.books.whole(home, {0: -1}, {0: right}, {0}) == []
    (gap,) = ledger_job.books.whole(home, {0: -1}, {0: "another"}, {0})
    assert gap.why == "batch 0 has other input than batch 0 of query 'words'."
