"""The rules of imports, the costs of an import, and the clocks that decide: read from the source, not from its docs."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("store", "leader", "ha", "pyspark_ha")
OWN = set(PACKAGES)


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for package in PACKAGES for path in modules(package)}

COPIED = ROOT / "ha" / "hook"
"""Its files are copied as a package of another name, so they import each other from there."""


@functools.cache
def nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def imports(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in the file; of ours the module itself, never only its package."""
    for node in nodes(path.read_text()):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if path.parent == COPIED and node.level == 1:
                module = ".".join(filter(None, ("ha.hook", module)))
            else:
                assert node.level == 0, f"{path}: relative imports hide the layer"
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in MODULES else module


def place(module: str) -> str:
    """The folder of a module; what stands beside the folders of a package, or is the door of one, is a place alone."""
    path = MODULES[module].relative_to(ROOT)
    return str(path if path.name == "__init__.py" or path.parent.name in {"ha", "leader"} else path.parent)


@functools.cache
def uses() -> dict[str, set[str]]:
    return {name: {each for each in imports(path) if each in MODULES} - {name} for name, path in MODULES.items()}


@functools.cache
def reaches() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for module, used in uses().items():
        found.setdefault(place(module), set()).update({place(each) for each in used} - {place(module)})
    return found


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Return what is left when all that uses nothing, or that nothing uses, has been taken away, again and again."""
    left = set(graph)
    while True:
        used = {each for name in left for each in graph[name]}
        kept = {name for name in left if name in used and graph[name] & left}
        if kept == left:
            return sorted(left)
        left = kept


def test_the_packages_are_imported_one_way_only() -> None:
    assert all(modules(package) for package in PACKAGES)
    for module, used in uses().items():
        level = PACKAGES.index(module.partition(".")[0])
        upwards = [each for each in used if PACKAGES.index(each.partition(".")[0]) > level]
        assert not upwards, f"{module} imports {upwards}"


def test_the_folders_of_a_package_are_imported_one_way_only() -> None:
    assert not circles(reaches())


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_no_folders_are_a_circle_with_all_that_is_in_them(depth: int) -> None:
    """At each level: two rooms that need each other are one room, however their folders are cut."""
    assert not circles(rooms(depth))


def test_the_rooms_of_ha_stand_on_at_most_nine_floors() -> None:
    """A room stands above all that it imports. The door of the package opens rooms of every floor."""
    graph = {room: used for room, used in rooms(2).items() if room.startswith("ha/") and room != "ha/__init__.py"}

    def floor(room: str) -> int:
        return 1 + max((floor(each) for each in graph.get(room, ()) if each in graph), default=0)

    assert max(map(floor, graph)) <= MOST_FLOORS


MOST_FLOORS = 9


def rooms(depth: int) -> dict[str, set[str]]:
    """Of each room at a level the other rooms that its modules import from."""
    found: dict[str, set[str]] = {}
    for module, used in uses().items():
        room = within(module, depth)
        found.setdefault(room, set()).update({within(each, depth) for each in used} - {room})
    return found


def within(module: str, depth: int) -> str:
    """The folder of a module at a level; what stands beside folders there is a place alone."""
    parts = MODULES[module].relative_to(ROOT).parts
    return "/".join(parts[:depth])


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not circles(uses())


def test_a_name_says_which_file_or_class_is_meant() -> None:
    """A folder's door has no name of its own, and the two blocks that lead are called alike on purpose."""
    names = Counter(path.name for path in MODULES.values() if path.name != "__init__.py")
    assert not [name for name, times in names.items() if times > MOST_FILES_OF_A_NAME]
    classes = Counter((module.partition(".")[0], each) for module, path in MODULES.items() for each in public(path))
    assert [each for (_, each), times in classes.items() if times > 1] == ["lead"]


MOST_FILES_OF_A_NAME = 3


def public(path: Path) -> Iterator[str]:
    body = ast.parse(path.read_text()).body
    return (node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def test_the_search_for_circles_finds_them() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == ["b", "c"]
    assert not circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


LAB = ("ha.sandbox", "ha.drill")


def test_only_the_verbs_of_the_lab_load_sandbox_and_drill() -> None:
    """Nothing that a production process loads does: not even a function of it, later."""
    for module, used in uses().items():
        if not module.startswith((*LAB, "ha.cli.sandbox", "ha.cli.drill")):
            assert not [each for each in used if each.startswith(LAB)], module


def test_nothing_of_the_product_imports_tests() -> None:
    for package in PACKAGES:
        for path in modules(package):
            assert not [name for name in imports(path) if name.partition(".")[0] in {"tests", "examples", "pytest"}]


SCHEMES = ("file:", "hdfs:", "webhdfs:", "swebhdfs:", "viewfs:")
KNOW_A_STORE = {
    "ha/drill",
    "ha/leadership/fenced_rename.py",  # a root of ViewFs is another one's, before anything is asked of it
    "ha/sandbox",
}
"""What may say of which store it is: sandboxes and drills make one; anybody else asks :mod:`store.traits`."""


def compared_schemes(source: str) -> list[int]:
    found = []
    for node in nodes(source):
        if not isinstance(node, ast.Compare | ast.Call):
            continue
        texts = [str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)]
        compares = isinstance(node, ast.Compare) and "scheme" in ast.dump(node)
        if compares and any(f"{text}:" in SCHEMES for text in texts):
            found.append(node.lineno)
        begins = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"startswith", "removeprefix"}
        if begins and any(text.startswith(SCHEMES) for text in texts):
            found.append(node.lineno)
    return found


def test_of_which_store_a_uri_is_only_stores_say() -> None:
    for path in modules("ha"):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(tuple(KNOW_A_STORE)):
            assert not compared_schemes(path.read_text()), name


def test_the_search_for_schemes_finds_them() -> None:
    assert compared_schemes('a = uri.startswith("file:")') == [1]
    assert compared_schemes('a = parts.scheme not in {"hdfs", ""}') == [1]
    assert not compared_schemes('a = parts.scheme == other.scheme\nb = f"hdfs://{a}"')


IO = {"os", "socket", "threading", "time", "asyncio", "subprocess", "select", "pathlib", "random", "logging"}
PURE = {"store.errors", "store.files", "store.outcome", "store.paths"}


@pytest.mark.parametrize("folder", ["layout", "election"])
def test_the_protocol_itself_does_no_io_and_has_no_clock(folder: str) -> None:
    for path in modules(f"leader/{folder}"):
        found = set(imports(path))
        assert not {each.partition(".")[0] for each in found} & IO, path
        assert not {each for each in found if each.startswith("store")} - PURE, path


WALL = {
    ("time", "time"), ("time", "time_ns"), ("time", "localtime"), ("time", "gmtime"), ("datetime", "now"),
    ("datetime", "utcnow"), ("datetime", "today"), ("date", "today"),
}  # fmt: skip
OTHER = {("time", "monotonic"), ("time", "monotonic_ns"), ("time", "perf_counter"), ("time", "clock_gettime")}


def clocks(path: Path) -> set[tuple[str, str]]:
    """Which clocks a file reads, by the name they are called by; a plain import of a clock's function counts too."""
    found: set[tuple[str, str]] = set()
    for node in nodes(path.read_text()):
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
            assert read == {("time", "clock_gettime"), ("time", "time")}, "the one clock, and the one of operators"
        elif path == ROOT / "store" / "kerberos.py":
            assert read == {("time", "time")}, "a ticket is dated by it; what it says is only shown"
        else:
            assert not read, f"{path.relative_to(ROOT)} reads {read}"
            asks = "store.clock import wall" in path.read_text()
            assert not asks or path.name == "contender.py", "bars alone end by the wall clock"


def test_of_what_people_run_only_displays_read_the_wall_clock() -> None:
    shows = {
        "ha/spark/savepoints/taking.py", "ha/spark/replication/report.py", "ha/cli/submit.py",
        "ha/config/log.py", "ha/views/ages.py", "ha/views/jobs.py", "ha/views/leases.py",
        "ha/sidecar/store_work.py", "ha/verbs/asking.py", "ha/history/edits.py",
        "ha/drill/runner.py",
    }  # fmt: skip
    for path in modules("ha"):
        name = str(path.relative_to(ROOT))
        if name not in shows and not name.startswith("ha/sandbox/"):
            assert not clocks(path) & WALL, name


def test_the_check_of_clocks_sees_them(tmp_path: Path) -> None:
    for source in (
        "import time\ntime.time()",
        "from time import time",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.utcnow()",
        "import time\ntime.monotonic()",
    ):
        (tmp_path / "m.py").write_text(source)
        assert clocks(tmp_path / "m.py")


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=120
    )
    return set(found.stdout.split())


HEAVY = {"starlette", "uvicorn", "click", "rich", "pyspark", "pandas", "pyarrow", "prometheus_client", "hdfs_native"}


@pytest.mark.parametrize(
    "statement",
    ["import ha", "import ha; ha.connect", "import ha; ha.lead", "import ha; ha.errors.NoEndpoint", "import ha.client"],
)
def test_who_only_looks_something_up_pays_for_nothing_else(statement: str) -> None:
    assert not {name.partition(".")[0] for name in loaded_by(statement)} & HEAVY


@pytest.mark.parametrize(("arguments", "most"), [("--help", 110), ("--version", 170), ("job leader --help", 295)])
def test_a_command_starts_without_what_it_does_not_need(arguments: str, most: int) -> None:
    """It takes 150 ms to start. Modules are counted, because their number does not depend on what else runs here."""
    quiet = "import sys, io; from ha.cli import exit_code; sys.stdout = io.StringIO();"
    found = loaded_by(f"{quiet} exit_code({arguments.split()}); sys.stdout = sys.__stdout__") - loaded_by("pass")
    assert not {name.partition(".")[0] for name in found} & (HEAVY - {"click", "rich"})
    assert len(found) <= most


def test_the_processes_that_spark_starts_for_the_format_do_not_load_the_election() -> None:
    """Spark starts five for each driver: each of them would compute 0.06 s more."""
    found = loaded_by("import ha.spark.sink.data_source, ha.spark.sink.writer")
    assert not {name for name in found if name.startswith(("leader.election", "leader.contender", "kazoo", "asyncio"))}


def test_importing_ha_alone_loads_nothing_of_ours() -> None:
    ours = {name for name in loaded_by("import ha") if name.partition(".")[0] in OWN}
    assert ours == {"ha"}


def test_the_guard_loads_only_the_standard_library_and_a_few_small_modules_of_ours() -> None:
    found = loaded_by("import ha.sidecar.command.guard")
    foreign = {name for name in found if name.partition(".")[0] not in sys.stdlib_module_names | OWN}
    started = loaded_by("pass")
    assert foreign <= started, "what every interpreter of this environment loads"
    assert {name for name in found if name.partition(".")[0] in OWN} == {
        "ha",
        "ha.hosts",
        "ha.hosts.held_process",
        "ha.hosts.inherited",
        "ha.hosts.lacks",
        "ha.hosts.own_packages",
        "ha.program",
        "ha.program.deadline_file",
        "ha.program.output_log",
        "ha.sidecar",
        "ha.sidecar.command",
        "ha.sidecar.command.guard",
        "ha.sidecar.command.guard_orders",
        "ha.sidecar.command.jvm_watch",
        "ha.sidecar.command.memory",
        "ha.sidecar.command.offspring",
        "store",
        "store.clock",
    }


def test_the_lazy_names_of_ha_are_all_there() -> None:
    import ha  # noqa: PLC0415  # the import itself is tested above

    for name in ha.__all__:
        assert getattr(ha, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'leed'"):
        _ = ha.leed


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
LISTED = re.findall(r"^\| `((?:ha|leader|store|pyspark_ha)[\w/.]*)` \|", ARCHITECTURE, re.MULTILINE)
FOLDERS = {str(path.parent.relative_to(ROOT)) for path in MODULES.values()} - {"ha", "leader"}


def test_every_folder_is_described_and_none_that_does_not_exist() -> None:
    assert sorted(LISTED) == sorted(set(LISTED)), "each once"
    assert {each for each in LISTED if not each.endswith(".py")} == FOLDERS
    assert all((ROOT / each).exists() for each in LISTED)


def test_what_stands_beside_the_folders_is_described() -> None:
    beside = {each for each in reaches() if each.endswith(".py") and not each.endswith("__init__.py")}
    assert {each for each in LISTED if each.endswith(".py")} == beside


def test_a_folder_imports_only_what_is_listed_below_it() -> None:
    level = {name: number for number, name in enumerate(LISTED)}
    upwards = [
        f"{name} imports {each}"
        for name, used in reaches().items()
        for each in used
        if name in level and each in level and level[each] < level[name]
    ]
    assert not upwards


@pytest.mark.parametrize("way", ["A lookup", "A claim", "A published batch"])
def test_a_way_through_names_at_most_twelve_files_and_all_of_them_exist(way: str) -> None:
    walk = ARCHITECTURE.partition(f"### {way}\n")[2].partition("\n### ")[0]
    named = re.findall(r"^\d+\. `((?:ha|leader|store)/[\w/]+\.py)` ", walk, re.MULTILINE)
    assert 5 < len(named) == len(set(named)) <= 12
    assert not [each for each in named if not (ROOT / each).exists()]


KAZOO = {"store.zookeeper.driver", "store.zookeeper.handler", "kazoo"}
DRIVERS = {"store.local", "store.hdfs", "store.webhdfs", "hdfs", "hdfs_native"} | KAZOO
UNCOUNTED = {
    "ha.checkpoints.trees": "streams the bytes of a file within one counted call",
    "ha.drill.": "compares with others, in processes of its own",
}


def test_only_the_store_itself_calls_a_driver() -> None:
    """So every call of the product is counted."""
    for name, path in MODULES.items():
        if name.startswith(("store.", *UNCOUNTED)):
            continue
        used = set(imports(path))
        assert not [each for each in used if each in DRIVERS or each.partition(".")[0] in DRIVERS], name
        assert "driver_of" not in path.read_text(), name
