"""A process that has no descriptor left: it borrows the spare one."""

import os
import subprocess
import sys
from pathlib import Path

from store.spare import SpareDescriptor

EXHAUSTED = """
import os, resource, sys
from store.local import LocalFiles
files = LocalFiles(sys.argv[1])
files.make_directory("a")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
for before, after in (("a", "b"), ("b", "c")):
    files.rename(before, after)
print(len(held))
"""


def test_a_rename_is_flushed_although_no_descriptor_is_left(tmp_path: Path) -> None:
    """So a leader of `file://` renews its lease: without the flush a renewal is not acknowledged."""
    found = subprocess.run(
        [sys.executable, "-c", EXHAUSTED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[3],
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 40, "the limit was reached"
    assert [each.name for each in tmp_path.iterdir()] == ["c"]


def test_the_spare_descriptor_is_kept_again_afterwards() -> None:
    spare = SpareDescriptor()
    spare.keep()
    with spare.borrowed():
        assert spare._descriptor == -1
    os.close(spare._descriptor)  # fails if it is none
