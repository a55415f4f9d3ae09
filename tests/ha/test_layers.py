"""Who may import whom, what an import costs, and which clocks decide: read from the source, not from its docs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = {"store": {"store"}, "leader": {"leader", "store"}, "ha": {"ha", "leader", "store"}}
OWN = set(LAYERS)


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            yield node.module or ""


@pytest.mark.parametrize("package", LAYERS)
def test_layers_are_imported_one_way_only(package: str) -> None:
    assert modules(package)
    for path in modules(package):
        own = {name.partition(".")[0] for name in imports(path)} & OWN
        assert own <= LAYERS[package], f"{path.relative_to(ROOT)} imports {own - LAYERS[package]}"


def test_nothing_of_the_product_imports_tests() -> None:
    for package in LAYERS:
        for path in modules(package):
            assert not [name for name in imports(path) if name.partition(".")[0] in {"tests", "examples", "pytest"}]


PURE = [
    "answers",
    "candidacy",
    "confirmation",
    "contender",
    "copy",
    "election",
    "environment",
    "events",
    "information",
    "lease",
    "names",
    "nodes",
    "observation",
    "publication",
    "retrieval",
    "rhythm",
    "session",
    "snapshot",
    "standing",
    "suspicion",
    "timing",
    "shared",
    "turns",
    "whereabouts",
]
IO = {"os", "socket", "threading", "time", "asyncio", "subprocess", "select", "pathlib", "random", "logging"}


@pytest.mark.parametrize("name", PURE)
def test_the_protocol_itself_does_no_io_and_has_no_clock(name: str) -> None:
    found = set(imports(ROOT / "leader" / f"{name}.py"))
    assert not {each.partition(".")[0] for each in found} & IO
    assert not {each for each in found if each.startswith("store.")} - {"store.errors", "store.files", "store.outcome"}


# --- clocks


WALL = {
    ("time", "time"),
    ("time", "time_ns"),
    ("time", "localtime"),
    ("time", "gmtime"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
}
OTHER = {("time", "monotonic"), ("time", "monotonic_ns"), ("time", "perf_counter"), ("time", "clock_gettime")}


def clocks(path: Path) -> set[tuple[str, str]]:
    """Which clocks a file reads, by the name they are called by; a plain import of a clock's function counts too."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add((node.value.id, node.attr))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            found.add((node.value.attr, node.attr))
        elif isinstance(node, ast.ImportFrom) and node.module in {"time", "datetime"}:
            found |= {(node.module, alias.name) for alias in node.names}
    return found & (WALL | OTHER)


@pytest.mark.parametrize("package", ["leader", "store"])
def test_no_wall_clock_decides_anything(package: str) -> None:
    """So that a jump of it, by hand or by NTP, moves no leader: there is nothing that it could move."""
    for path in modules(package):
        read = clocks(path)
        if path == ROOT / "store" / "clock.py":
            assert read == {("time", "clock_gettime")}, "the one clock"
        else:
            assert not read, f"{path.relative_to(ROOT)} reads {read}"


def test_of_what_people_run_only_displays_read_the_wall_clock() -> None:
    shows = {"ha/logs.py", "ha/cli/operate.py", "ha/history/edits.py", "ha/drill/runner.py"}
    for path in modules("ha"):
        name = str(path.relative_to(ROOT))
        if name not in shows and not name.startswith("ha/sandbox/"):
            assert not clocks(path) & WALL, name


def test_the_check_of_clocks_sees_them(tmp_path: Path) -> None:
    """The canary."""
    for source in (
        "import time\ntime.time()",
        "from time import time",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.utcnow()",
        "import time\ntime.monotonic()",
    ):
        (tmp_path / "m.py").write_text(source)
        assert clocks(tmp_path / "m.py")


# --- what an import costs


def loaded_by(statement: str) -> set[str]:
    """The modules that are loaded after a fresh interpreter has executed the statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(found.stdout.split())


HEAVY = {"starlette", "uvicorn", "click", "rich", "pyspark", "pandas", "pyarrow", "prometheus_client", "hdfs_native"}


@pytest.mark.parametrize("statement", ["import ha", "import ha; ha.connect", "import ha; ha.lead", "import ha.client"])
def test_who_only_looks_something_up_pays_for_nothing_else(statement: str) -> None:
    assert not {name.partition(".")[0] for name in loaded_by(statement)} & HEAVY


def test_importing_ha_alone_loads_nothing_of_ours() -> None:
    ours = {name for name in loaded_by("import ha") if name.partition(".")[0] in OWN}
    assert ours == {"ha"}


def test_the_guard_loads_only_the_standard_library_and_three_small_modules_of_ours() -> None:
    found = loaded_by("import ha.guard")
    foreign = {name for name in found if name.partition(".")[0] not in sys.stdlib_module_names | OWN}
    started = loaded_by("pass")
    assert foreign <= started, "what every interpreter of this environment loads"
    assert {name for name in found if name.partition(".")[0] in OWN} == {
        "ha",
        "ha.belief",
        "ha.guard",
        "store",
        "store.clock",
    }


def test_the_lazy_names_of_ha_are_all_there() -> None:
    import ha  # noqa: PLC0415  # the import itself is tested above

    for name in ha.__all__:
        assert getattr(ha, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'leed'"):
        _ = ha.leed
