"""Neighbours: what stands in an output's directory already, by which readers would not see its batches, or would fail.

It is looked at before the first batch of each run. What an output was at its beginning it stays: its files' format and
the columns of its partitions are kept in its :class:`ha.outputs.record.Target`, and another program is refused. What
Spark does with directories of several writers: `DataSource` follows the log of Spark's own file sink, if there is one,
and nothing else; columns of partitions that differ are CONFLICTING_PARTITION_COLUMN_NAMES.
"""

from collections.abc import Sequence
from contextlib import suppress

from ha.leadership.fenced_rename import FencedRename
from ha.outputs import layout
from ha.outputs.record import TARGET, Target
from leader.errors import InvalidSettings, Unreadable
from leader.layout.names import OUT
from leader.layout.packed_names import read

SPARKS_LOG = "_spark_metadata"
"""Folder of the log of Spark's file sink: its readers see the files that are named there, and no others."""

OF_OUTPUTS = (layout.BATCH, layout.REGION, "batch-", "merged-")
"""How the first entries in an output's directory begin, if it has no columns of partitions."""


def check(renames: FencedRename, name: str, target: Target, names: Sequence[str], *, shared: bool) -> None:
    """Refuse a directory in which batches of this kind cannot be read: ``InvalidSettings``."""
    # names: in the output's folder of the leader directory.
    # shared: whether other outputs of this job have the same directory by intention, as regions have.
    if target.kind:
        return  # nothing appears in a directory
    _check_log(renames, name)
    with suppress(Unreadable):  # `ha output verify` tells of it
        known = read(TARGET, Target, list(names))
        if known is not None:
            _check_kind(name, known, target)
        elif not shared:
            _check_outputs(renames, name)
            _check_others(renames, name, target)
            _check_parent(renames, name)


def _check_log(renames: FencedRename, name: str) -> None:
    if renames.list(f"{renames.outside}/{SPARKS_LOG}"):
        raise InvalidSettings(
            f"Spark's own file sink has written to {renames.outside!r}: by its {SPARKS_LOG} Spark's readers see the "
            f"files of that sink alone, and no batch of output {name!r}. Give the output a new directory; or, if the "
            f"old files are to be read beside the new ones, move {SPARKS_LOG} away for good."
        )


def _check_kind(name: str, known: Target, target: Target) -> None:
    """Refuse files that readers do not take beside those that are there."""
    if known.flat != target.flat:
        is_flat, asked = ("flat", "directories") if known.flat else ("directories", "flat")
        raise InvalidSettings(
            f"The batches of output {name!r} are {is_flat}, and this program would add {asked}: "
            "`mergeable` is chosen once, so leave it as it was, or give the output another directory."
        )
    for what, was, asked in (
        ("files of format", known.format, target.format),
        ("partitions by", _listed(known.columns), _listed(target.columns)),
    ):
        if was != asked and known.format and target.format:
            raise InvalidSettings(
                f"Output {name!r} has {what} {was}, and this program would add {what} {asked}: no reader takes both. "
                "Leave it as it was, or give the output another directory."
            )


def _check_outputs(renames: FencedRename, name: str) -> None:
    """Refuse the directory of another output of this job: neither would know what the other has published."""
    mine = layout.home(name, renames.outside).removeprefix(f"{OUT}/")
    for entry in renames.list(f"{renames.inside}/{OUT}"):
        other, _, target = entry.name.rpartition("-")
        if other != name and target == mine.rpartition("-")[2]:
            raise InvalidSettings(
                f"Output {other!r} of this job has the directory {renames.outside!r} already: give output "
                f"{name!r} a directory of its own, or that name if it is the same output."
            )


def _check_others(renames: FencedRename, name: str, target: Target) -> None:
    """Refuse a directory with what no output puts there: a reader of all of it fails, or takes it for rows of ours."""
    ours = tuple(f"{each}=" for each in target.columns[:1]) or OF_OUTPUTS
    for entry in renames.list(renames.outside):
        if not layout.hidden(entry.name) and not entry.name.startswith(ours):
            raise InvalidSettings(
                f"{renames.outside!r} holds {entry.name!r}, which is none of output {name!r}: readers of the whole "
                "directory would fail, or read it as well. Give the output a directory of its own, or move that away."
            )


def _check_parent(renames: FencedRename, name: str) -> None:
    """Refuse a directory inside of another output's: a reader of that one would find it, and fail."""
    parent, _, own = renames.outside.rpartition("/")
    there = [] if layout.hidden(own) else renames.list(parent)
    if found := next((each.name for each in there if each.name.startswith(OF_OUTPUTS)), ""):
        raise InvalidSettings(
            f"{renames.outside!r} lies among the batches of another output, such as {found!r}: readers of that one "
            f"would fail. Give output {name!r} a directory beside it, or one whose name begins with `_`: they skip it."
        )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "no column"
