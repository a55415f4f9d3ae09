"""Fuzz one family of decoders: ``python -m tests.system.fuzz TARGET [options of libFuzzer]``; ``all`` takes one after
another.

    python -m tests.system.fuzz names -runs=100000 -seed=1      so many inputs, the same ones each time
    python -m tests.system.fuzz all -max_total_time=60          each for a minute
    python -m tests.system.fuzz names build/fuzz/crash-...      one input again

It ends with an error at the first input that breaks a property, and prints it so that it can be pasted into a test.
What it finds worth keeping is in ``build/fuzz/<target>``; ``build`` may be deleted at any time.
"""

import importlib
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("names", "records", "configuration", "remote", "web")
DECODERS = (
    *(
        "ha.agent.snapshots", "ha.api.http_api", "ha.program.deadline_file", "ha.cli.options",
        "ha.config.command_settings", "ha.config.connection_settings", "ha.config.leadership_settings",
        "ha.config.setting", "ha.config.settings", "ha.config.sources",
    ),
    *(
        "leader.layout.checkpoint", "leader.layout.checkpoint_state", "leader.layout.information",
        "leader.layout.lease", "leader.layout.names", "leader.job.admin",
    ),
    *("leader.election.attestation", "leader.timing"),
    *("store.hadoop_errors", "store.hdfs", "store.open", "store.paths", "store.webhdfs", "store.zookeeper.address"),
)  # fmt: skip
"""Modules whose lines and comparisons guide the search.

Atheris could instrument regular expressions too, but then those of other packages fail: its patterns have no
``match(text, position)``.
"""

MISSING = 3
"""Exit code if atheris is not installed."""

LIMITS = ("-timeout=20", "-rss_limit_mb=2048", "-max_len=2048")
"""An input also breaks a property if it takes this many seconds, or makes the process this large."""

KEPT = Path("build", "fuzz")


def main(arguments: list[str]) -> int:
    """Run the fuzzers that the command line names; returns the exit code."""
    if not arguments or arguments[0] not in (*NAMES, "all"):
        sys.stderr.write(f"Usage: python -m tests.system.fuzz {'|'.join(NAMES)}|all [-runs=N] [-seed=N] [FILE] ...\n")
        return 2
    try:
        atheris = importlib.import_module("atheris")
    except ImportError as error:
        sys.stderr.write(f"Nothing was fuzzed: {error}. It is in the dependency group 'fuzz' of pyproject.toml.\n")
        return MISSING
    if arguments[0] == "all":
        return _all(arguments[1:])
    return _one(atheris, arguments[0], arguments[1:])


def _all(options: list[str]) -> int:
    """Run each target in a process of its own, because libFuzzer ends its process."""
    for name in NAMES:
        sys.stderr.write(f"--- {name}\n")
        code = subprocess.run([sys.executable, "-m", "tests.system.fuzz", name, *options], check=False).returncode
        if code:
            return code
    return 0


def _one(atheris: Any, name: str, options: list[str]) -> int:
    with atheris.instrument_imports(include=list(DECODERS), enable_loader_override=False):
        target = importlib.import_module("tests.system.fuzz.targets").TARGETS[name]()
    check = _reporting(name, target.check)
    for seed in target.seeds:
        check(seed)
    deterministic = any(option.startswith("-runs=") for option in options)
    with tempfile.TemporaryDirectory() as scratch:
        # The findings of an earlier run would change what this one does.
        corpus = Path(scratch, "corpus") if deterministic else KEPT / name
        found = Path(scratch) if deterministic else KEPT
        corpus.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(target.seeds):
            (corpus / f"seed-{number}").write_bytes(seed)
        inputs = [option for option in options if not option.startswith("-")]
        command = [name, *LIMITS, f"-artifact_prefix={found}/", *options, *([] if inputs else [str(corpus)])]
        atheris.Setup(command, check)
        atheris.Fuzz()
    return 0


def _reporting(name: str, check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def reporting(data: bytes) -> None:
        try:
            check(data)
        except BaseException:
            traceback.print_exc()
            sys.stderr.write(f"\nPaste this into a test:\n\n    TARGETS[{name!r}]().check({data!r})\n\n")
            sys.stderr.flush()
            raise

    return reporting


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
