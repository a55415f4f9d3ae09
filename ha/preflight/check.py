"""Check: the pre-flight of one program against all checkpoints of a job."""

import shlex
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from ha.config.stores import Stores
from ha.preflight.dry_run import DryRun
from ha.preflight.queries import queries_of
from ha.preflight.scratch import Copy, Scratch, scratch
from ha.preflight.verdict import DryRunEnd, PreflightProblem, PreflightVerdict, Told, judge
from ha.spark.checkpoint_tools.copying import CopyProgress
from store.errors import Invalid

TIMEOUT_S = 300.0  # of the program's run: its session has to start, and states to load


class Preflight(msgspec.Struct, frozen=True):
    """The result for a job: a verdict for each query that has a checkpoint."""

    job: str
    fits: bool
    queries: list[PreflightVerdict]


def preflight(
    stores: Stores,  # those of the job
    job: str,
    command: Sequence[str],  # the program and its arguments
    environment: Mapping[str, str],  # the one that it would have
    directory: Path,  # its working directory
    *,
    timeout: float = TIMEOUT_S,  # seconds for its run; the copies take what they take
    without: Collection[str] = (),  # queries that the program has dropped on purpose
    # Called with a query and the progress of its copy, from any thread.
    copying: Callable[[str, CopyProgress], object] | None = None,
) -> Preflight:
    """Return whether a program would restart from the checkpoints of a job, which may run and stays unchanged."""
    verdicts: dict[str, PreflightVerdict] = {}
    if not (names := queries_of(stores, job, without)):
        return Preflight(job, fits=True, queries=[])
    with scratch(stores, job) as place:
        copies = []
        for query in names:
            try:
                copy = place.copy(query, _telling(query, copying))
            except Invalid as error:
                hint = (
                    f"`ha checkpoint verify {job} {shlex.quote(query)}` says which batches can be "
                    "continued, and how to go back"
                )
                verdicts[query] = PreflightVerdict(
                    query, fits=False, problems=[PreflightProblem("checkpoint", f"{error}", hint)]
                )
                continue
            if copy is None:
                verdicts[query] = PreflightVerdict(
                    query, fits=True, notes=["No batch is committed: it starts from scratch."]
                )
            else:
                copies.append(copy)
        if copies:
            with tempfile.TemporaryDirectory(prefix="ha-preflight-") as folder:
                run = DryRun(place, job, copies, Path(folder))
                said, end = run.run(command, environment, directory, timeout)
            for copy in copies:
                verdicts[copy.query] = _judge(place, copy, said, end)
    found = [verdicts[each] for each in names]
    return Preflight(job, all(each.fits for each in found), found)


def _judge(place: Scratch, copy: Copy, said: Mapping[str, Told], end: DryRunEnd) -> PreflightVerdict:
    mine = said.get(copy.query, Told())
    return judge(copy, mine, place.layouts(copy.query) if mine.begun else {}, end)


def _telling(
    query: str, copying: Callable[[str, CopyProgress], object] | None
) -> Callable[[CopyProgress], object] | None:
    return None if copying is None else lambda progress: copying(query, progress)
