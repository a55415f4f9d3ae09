"""The hook of a program: what several modules change in one is changed by each, in their order."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ha.hook import entry
from tests.patience import PATIENCE_S

CHANGES = """

def changes(plan):
    def change(module):
        module.said = [*getattr(module, "said", []), plan]
    return {"wave": change, "colorsys": change}
"""


def told(path: str, modules: str, what: str) -> Any:
    program = f"import json, sys, {modules}; json.dump({what}, sys.stdout)"
    command, environment = [sys.executable, "-c", program], {"PYTHONPATH": path}
    return json.loads(
        subprocess.run(command, env=environment, capture_output=True, check=True, timeout=PATIENCE_S).stdout
    )


def test_two_modules_change_the_same_one_in_a_new_python(tmp_path: Path) -> None:
    files = {}
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(CHANGES)
        files[str(tmp_path / f"{name}.py")] = name
    path = entry.write(tmp_path / "hook", files, None)
    assert told(path, "colorsys, wave", "[wave.said, colorsys.said]") == [["first", "second"]] * 2


def test_an_installed_pyspark_comes_before_its_own_archives_which_no_import_leaves_compiled(tmp_path: Path) -> None:
    path = entry.write(tmp_path / "hook", {}, None)
    ours, theirs = (f"{place}/pyspark/python/lib/pyspark.zip" for place in (tmp_path, "/opt/spark"))
    archives = [ours, theirs, f"{tmp_path}/pyspark/python/lib/py4j-1-src.zip"]
    found = told(":".join([*archives, path, str(tmp_path)]), "sys", "sys.path")
    assert [each for each in found if each in {*archives, str(tmp_path)}] == [theirs, str(tmp_path), ours, archives[2]]
