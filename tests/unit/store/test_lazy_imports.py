"""Lazy imports: a fork beside them ends, and its child can go on."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

# The hooks of os.register_at_fork run in the reverse order of their registration. The second one here lets the module
# go on at a time when logging's hook, if it ran before, has logging's lock.
FORK = """
import faulthandler, os, sys, threading
assert "logging" not in sys.modules
import store.lazy_imports
forking = threading.Event()
os.register_at_fork(before=forking.set)
import logging, importlib.abc, importlib.machinery
faulthandler.dump_traceback_later(15, exit=True)
begun = threading.Event()

class Slow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "slow" else None

    def exec_module(self, module):
        begun.set()
        forking.wait()  # with the module's lock
        logging.getLogger(module.__name__)

sys.meta_path.insert(0, Slow())
store.lazy_imports.will_import("slow")
importing = threading.Thread(target=__import__, args=("slow",))
importing.start()
begun.wait()
child = os.fork()
if child == 0:
    __import__("slow")
    os._exit(7)
importing.join()
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_waits_for_an_import_that_needs_the_lock_of_logging() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 7, ended.stderr


# The settings of Hadoop are read on whichever thread opens the store first.
FORK_BESIDE = """
import faulthandler, importlib.abc, importlib.machinery, os, sys, threading
from contextlib import suppress
import store.lazy_imports
forking = threading.Event()
os.register_at_fork(before=forking.set)
import {module}
faulthandler.dump_traceback_later(15, exit=True)
begun = threading.Event()
NAME = "store.hadoop_errors"
assert NAME not in sys.modules

class Slow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == NAME else None

    def exec_module(self, module):
        begun.set()
        forking.wait()  # with the module's lock
        module.configuration, module.namenodes = dict, lambda *_: []

def use():
    with suppress(Exception):  # nothing is configured
        {call}

sys.meta_path.insert(0, Slow())
importing = threading.Thread(target=use)
importing.start()
begun.wait()
child = os.fork()
if child == 0:
    __import__(NAME)
    os._exit(7)
importing.join()
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("store.open", "store.open.open_files('hdfs:///jobs')"),
        ("ha.config.snapshot_dir", "ha.config.snapshot_dir.snapshot_directory('/x', 'hdfs://nameservice1/jobs', None)"),
    ],
)
def test_a_fork_waits_for_hadoops_settings_which_another_thread_is_about_to_read(module: str, call: str) -> None:
    code = FORK_BESIDE.format(module=module, call=call)
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 7, ended.stderr
