"""Program that copies a whole checkpoint, again and again: what people do who have no closures.

Run as ``python -m benchmarks.replication.full_copy SOURCE TARGET``, two URIs. Each copy is shown by one rename in the
place of the one before, and printed as a line of JSON. It runs until it is ended.
"""

import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.trees import Tree
from ha.config.sources import load
from ha.config.stores import Stores
from ha.spark.checkpoint_tools.copying import WORKERS, Staging
from store.errors import Conflict, NotFound, StoreError


def _say(row: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(row)}\n")
    sys.stdout.flush()


def main(source: str, target: str) -> None:
    """Copy for ever; a copy that Spark has disturbed is begun anew."""
    stores = Stores(load({"zookeeper": "", "history": "", "snapshots": "off"}))
    root, _, name = target.rpartition("/")
    with stores.open(source, workers=WORKERS) as here, stores.open(root, workers=WORKERS) as there:
        there.call("root", lambda files: files.make_root(), 20)
        while True:
            try:
                files = Tree(here).listing()
                batch = max(CheckpointFiles(files).batches)
                staging = Staging(there, f"_{name}")
                staging.delete()
                staging.fill(Tree(here), files)
                with suppress(NotFound):
                    there.call("delete", lambda files: files.delete(name, recursive=True), 20)
                staging.commit(name)
            except (Conflict, NotFound) as error:
                _say({"problem": f"{error}"})
            except StoreError as error:
                _say({"problem": f"{error}"})
                time.sleep(1)
            else:
                said = {"batch": batch, "bytes": sum(files.values()), "files": len(files), "at": time.time()}
                _say(said)


if __name__ == "__main__":
    main(*sys.argv[1:])
