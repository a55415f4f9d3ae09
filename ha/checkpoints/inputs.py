"""Inputs: where the file sources of a checkpoint have read. Their logs have whole URIs, which no move changes."""

from collections.abc import Iterable, Mapping
from functools import partial
from urllib.parse import urlsplit

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import own_logs
from store.traits import traits


def newest_files(reader: CheckpointReader, names: CheckpointFiles) -> dict[str, list[str]]:
    """Return the files that the newest entry of each source's log names, by the name of the log."""
    newest = {}
    for source, log in names.sources.items():
        paths = {**log.entries, **log.compacted}
        newest[source] = paths[max(paths)]
    said = reader.contents(frozenset(newest.values()))
    return {source: contents.parsed(contents.logged_files, said.get(path)) or [] for source, path in newest.items()}


def files_since(reader: CheckpointReader, names: CheckpointFiles, batch: int) -> tuple[list[str], str]:
    """Return the URIs of the files that a query's file sources have read after a batch, by their logs.

    Then the path of a file that would say more and cannot be read; empty if all is known.
    """
    path = f"offsets/{batch}"
    planned = contents.parsed(contents.offsets, reader.contents(frozenset({path})).get(path))
    if planned is None:
        return [], path
    found: set[str] = set()
    unread = ""
    for source, offset in own_logs(planned.sources, names.sources).items():
        used = -1 if offset is None else contents.log_offset(offset)
        if used is None or (log := names.sources.get(source)) is None:
            continue
        later = frozenset(each for known in (log.entries, log.compacted) for n, each in known.items() if n > used)
        read = partial(contents.logged_files, after=used)
        for each, data in ((each, reader.contents(later).get(each)) for each in sorted(later)):
            if (files := contents.parsed(read, data)) is None:
                unread = each
            found.update(files or ())
    return sorted(found), unread


def inputs(reader: CheckpointReader, paths: Iterable[str]) -> list[str]:
    """Return the URIs of the folders that a query's file sources read, in order; ``paths`` has the logs at least."""
    names = CheckpointFiles(dict.fromkeys(paths, 0))
    return sorted({_folder(files[0]) for files in newest_files(reader, names).values() if files})


def bound(found: Mapping[str, Iterable[str]], uri: str) -> list[str]:
    """Return a sentence, without full stop, for each input that stays behind when checkpoints move to a file system."""
    # They are the inputs of each query. Files of a host are left out.
    there = urlsplit(uri)[:2]
    return [
        f"{query} has read files of {folder}, which is on another file system than {uri}: it goes on only where it "
        "finds that folder under the same URI, and Spark ends it with `Wrong FS` if the program reads another one"
        for query, folders in sorted(found.items())
        for folder in folders
        if not traits(folder).local and urlsplit(folder)[:2] != there
    ]


def _folder(file: str) -> str:
    """Return the folder of a source's file, without the folders of its partitions."""
    begin, *below = file.rpartition("/")[0].partition("=")[0:2]
    return begin.rpartition("/")[0] if below[0] else begin
