"""Start: the files that Spark reads first from a checkpoint as it lies, even if an older batch could be resumed. Pure.

It reads ``metadata``, the newest offsets and those before, the newest commit, and each file source's whole log, whose
newest entry may be of a batch that is not begun yet. The closure of the newest commit contains the rest.
"""

import re
from collections.abc import Generator

from ha.checkpoints import contents
from ha.checkpoints.check_sums import hadoop_sums
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.closure import Closing, Closure, Contents, Form, Hole, Parsed, Wanted
from ha.checkpoints.contents import Offsets

_OF_STATE = re.compile(r"state/.+/_metadata/\.(schema|metadata)\.crc")


def start(files: CheckpointFiles, parsed: Parsed | None = None) -> Generator[Wanted, Contents, Closure]:
    """Read what a start reads; run it with :meth:`ha.checkpoints.checkpoint_reader.CheckpointReader.start`."""
    # It returns a closure of the batch that Spark does next, which tells the first file that is missing or damaged.
    begun, committed = files.begun, max(files.batches, default=-1)
    batch = max(begun, committed + 1)
    reading = Closing(files, batch, {} if parsed is None else parsed)
    try:
        yield from _read(reading, files, begun, committed)
    except Hole as hole:
        return reading.result(hole)
    return reading.result()


def _read(reading: Closing, files: CheckpointFiles, begun: int, committed: int) -> Generator[Wanted, Contents, None]:
    if begun < 0 > committed:
        if "metadata" in files:
            yield from reading.check({"metadata": contents.query_id})
        return
    newest = max(begun, committed)
    forms: dict[str, Form] = {"metadata": contents.query_id, f"offsets/{newest}": contents.offsets}
    if newest > 0:
        forms[f"offsets/{newest - 1}"] = contents.offsets
    if committed >= 0:
        forms[f"commits/{committed}"] = contents.state_ids
    said = yield from reading.check(forms)
    if committed >= 0 and said[f"commits/{committed}"] and committed < begun - 1:
        raise Hole(f"commits/{begun - 1}", "It is missing, and tells the ids of the state.")
    written = {hadoop_sums(f"offsets/{begun + 1}"), hadoop_sums(f"commits/{max(begun, committed + 1)}")}
    for sums in sorted(path for path in files.sizes if path in written or _OF_STATE.fullmatch(path)):
        if (path := sums.removesuffix(".crc").replace("/.", "/")) not in files:
            raise Hole(sums, f"It is left of {path}, which Spark cannot write as long as it is there: delete it.")
    last: Offsets = said[f"offsets/{newest}"]
    before: Offsets = said.get(f"offsets/{newest - 1}", last)
    if len(before.sources) != len(last.sources) and not last.named:
        raise Hole(f"offsets/{newest}", f"It has {len(last.sources)} sources, and there were {len(before.sources)}.")
    reading.need_sources(last, f"offsets/{newest}", whole=True)
    yield from reading.check()
