"""Check: the pre-flight of one program against all checkpoints of a job."""

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from ha.config.stores import Stores
from ha.preflight.dry_run import DryRun
from ha.preflight.queries import queries_of
from ha.preflight.scratch import Copy, Scratch, scratch
from ha.preflight.verdict import End, Problem, Told, Verdict, judge
from ha.spark.checkpoint_copy.copying import Progress
from store.errors import Invalid

TIMEOUT_S = 300.0
"""Time limit of the program's run, unless another one is given: its session has to start, and states to load."""


class Preflight(msgspec.Struct, frozen=True):
    """The result for a job: a verdict for each query that has a checkpoint."""

    job: str
    fits: bool
    queries: list[Verdict]


def preflight(
    stores: Stores,
    job: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    *,
    timeout: float = TIMEOUT_S,
    without: Collection[str] = (),
    copying: Callable[[str, Progress], object] | None = None,
) -> Preflight:
    """Tell whether a program would restart from the checkpoints of a job, which may run. Nothing of it is changed.

    Args:
        stores: those of the job.
        job: its name.
        command: the program and its arguments.
        environment: the one that it would have.
        directory: its working directory.
        timeout: seconds for its run; the copies take what they take.
        without: queries that the program is meant to have no more.
        copying: called with a query and the progress of its copy, from any thread.

    Raises:
        Fenced: another leader keeps taking over.
        InvalidSettings: the program cannot be started on this host.
        StoreError: a store did not answer.
    """
    verdicts: dict[str, Verdict] = {}
    if not (names := queries_of(stores, job, without)):
        return Preflight(job, fits=True, queries=[])
    with scratch(stores, job) as place:
        copies = []
        for query in names:
            try:
                copy = place.copy(query, _telling(query, copying))
            except Invalid as error:
                hint = f"`ha verify {job}` says which batches can be continued"
                verdicts[query] = Verdict(query, fits=False, problems=[Problem("checkpoint", f"{error}", hint)])
                continue
            if copy is None:
                verdicts[query] = Verdict(query, fits=True, notes=["It has committed no batch: it begins anew."])
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


def _judge(place: Scratch, copy: Copy, said: Mapping[str, Told], end: End) -> Verdict:
    mine = said.get(copy.query, Told())
    return judge(copy, mine, place.layouts(copy.query) if mine.begun else {}, end)


def _telling(query: str, copying: Callable[[str, Progress], object] | None) -> Callable[[Progress], object] | None:
    return None if copying is None else lambda progress: copying(query, progress)
