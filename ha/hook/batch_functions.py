"""Batch functions: reads of a function of ``foreachBatch`` whether it gives its rows to outputs of this package alone.

Its compiled code is read, and that of the program's functions which it calls, as far as they are there before the first
batch. In doubt is what may write elsewhere: a writer of Spark's, ``open``, a library, what is not there yet.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
from collections import deque
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MOST = 10_000  # objects that are looked at

WRITES = frozenset({
    "collect", "csv", "foreach", "foreachPartition", "insertInto", "jdbc", "json", "mergeInto", "orc", "pandas_api",
    "parquet", "rdd", "save", "saveAsTable", "sql", "sparkContext", "text", "toArrow", "toJSON", "toLocalIterator",
    "toPandas", "to_pandas_on_spark", "writeStream", "writeTo", "xml",
})  # fmt: skip
"""What Spark's own objects write with, or give rows away by. Those of ``read`` have some of the names."""

CALM = frozenset({
    "abc", "builtins", "calendar", "collections", "concurrent", "contextlib", "copy", "dataclasses", "datetime",
    "decimal", "enum", "functools", "ha", "hashlib", "itertools", "json", "logging", "math", "numbers", "posixpath",
    "pyspark", "random", "re", "string", "textwrap", "threading", "time", "traceback", "types", "typing", "uuid",
    "warnings", "zoneinfo", "_collections", "_datetime", "_decimal", "_functools", "_hashlib", "_json", "_random",
    "_thread",
})  # fmt: skip
"""Modules that write nothing by themselves."""

UNREADABLE = frozenset({
    "__import__", "breakpoint", "compile", "eval", "exec", "getattr", "globals", "locals", "open", "vars",
})  # fmt: skip
"""Functions of Python's that write, or whose effect cannot be read."""

ENVIRONMENT = ("cpu_count", "environ", "getenv", "getpid", "path", "sep")  # of the module `os`
MADE = ("__init__", "__new__", "__post_init__")  # what an instance has behind it
VALUES = frozenset(map(type, (None, True, 0, 0.0, 0j, "", b"", ..., NotImplemented, range(0), slice(0), object())))
HOLDERS = (dict, list, tuple, set, frozenset, deque)
BUILTIN = ("builtin_function_or_method", "method_descriptor", "wrapper_descriptor")

_NOTHING: Any = object()  # what is known in a batch only: a frame, or what was made of one


def read(function: Any) -> tuple[bool, str]:
    """Return whether a function has an output of this package; and what it uses that may write elsewhere."""
    reading = _Reading()
    try:
        reading.called(function)
        while reading.left and not reading.doubt:
            reading.left.pop()()
    except Exception as error:  # noqa: BLE001  # objects of a program raise what they like when they are looked at
        reading.doubt = reading.doubt or f"what raises {type(error).__name__}"
    return reading.output, reading.doubt


class _Reading:
    """What was found in one function so far."""

    def __init__(self) -> None:
        self.output, self.doubt = False, ""
        self.left: list[Callable[[], None]] = []
        self._seen: dict[tuple[int, int], Any] = {}  # with the objects: an id is another one's after their end

    def called(self, found: Any) -> None:
        """Look at what is called, and not at what else it could do."""
        call = _member(type(found), "__call__")
        program = isinstance(call, FunctionType) and _whose(type(found)) == "program"
        self.value(MethodType(call, found) if program else found)

    def value(self, found: Any) -> None:
        """Look at all that an object can do."""
        if isinstance(found, MethodType):
            self.output = self.output or any(map(_ours, type(found.__self__).__mro__))
            self._function(found.__func__, found.__self__)
        elif isinstance(found, FunctionType):
            self._function(found, None)
        elif not self._again(found, None):
            if isinstance(found, HOLDERS):
                self._each([*found, *found.values()] if isinstance(found, dict) else found)
            if isinstance(found, functools.partial):
                self.called(found.func)
                self._each([*found.args, *found.keywords.values()])
            elif isinstance(found, ModuleType):
                self._doubt(found.__name__, calm=_calm(found.__name__))
            elif isinstance(found, type):
                self._class(found, None)
            else:
                self._instance(found)

    def _again(self, found: Any, bound: Any) -> bool:
        """Whether it was looked at before, or is nothing to look at."""
        key = (id(found), id(bound))
        if type(found) in VALUES or key in self._seen:
            return True
        self._seen[key] = (found, bound)
        self._doubt("more than can be read", calm=len(self._seen) < MOST)
        return False

    def _doubt(self, what: str, *, calm: bool = False) -> None:
        self.doubt = self.doubt or ("" if calm else what)

    def _each(self, found: Iterable[Any]) -> None:
        for each in found:
            if type(each) not in VALUES:
                self.value(each)

    def _function(self, found: Any, bound: Any) -> None:
        """Look at a function, later: it may call itself."""
        if not isinstance(found, FunctionType):
            self.called(found)
        elif not self._again(found, bound):
            code, module = found.__code__, str(found.__globals__.get("__name__", ""))
            self._each([*vars(found).values(), *(found.__defaults__ or ()), *(found.__kwdefaults__ or {}).values()])
            if _calm(module):
                return
            self._doubt(f"{module}.{found.__qualname__}", calm=not _in_library(code.co_filename))
            around: dict[str, Any] = {} if bound is None else dict.fromkeys(code.co_varnames[:1], bound)
            for name, cell in zip(code.co_freevars, found.__closure__ or ()):  # noqa: B905  # Python 3.8
                around[name] = cell.cell_contents
            self.left.append(functools.partial(self._code, code, found.__globals__, around))

    def _class(self, found: type, bound: Any) -> None:
        """Look at all that a class has; with an instance, at what that one can do."""
        for each in found.__mro__:
            self.output = self.output or _ours(each)
            whose = _whose(each)
            self._doubt(f"{each.__module__}.{each.__qualname__}", calm=whose != "library")
            for name, value in vars(each).items() if whose == "program" else ():
                inner = _inside(value)
                if isinstance(inner, FunctionType):
                    if bound is None or name not in MADE:
                        self._function(inner, None if isinstance(value, (classmethod, staticmethod)) else bound)
                elif not name.startswith("__") and not isinstance(value, MemberDescriptorType):
                    self.value(value)

    def _instance(self, found: Any) -> None:
        kind = type(found)
        if kind.__name__ in BUILTIN:
            self._builtin(found)
        elif any(found is each for each in (os.environ, sys.stdout, sys.stderr)):
            return
        elif _whose(kind) != "calm":
            self._class(kind, found)
            self._each(() if any(map(_ours, kind.__mro__)) else getattr(found, "__dict__", {}).values())
        else:
            self.output = self.output or _ours(kind)
            own = getattr(found, "__dict__", {})
            self._each(own.values() if kind.__name__ == "SimpleNamespace" else filter(None, [own.get("__wrapped__")]))
            self._doubt(kind.__name__, calm=kind.__module__ != "builtins" or isinstance(found, HOLDERS))

    def _builtin(self, found: Any) -> None:
        name, bound = str(found.__name__), getattr(found, "__self__", None)
        if vars(builtins).get(name) is found:
            self._doubt(name, calm=name not in UNREADABLE)
        elif bound is None or isinstance(bound, ModuleType):
            of = getattr(found, "__module__", None) or getattr(found, "__objclass__", bound).__module__
            self._doubt(f"{of}.{name}", calm=_calm(of))
        else:
            self.value(bound)

    def _code(self, code: CodeType, space: Mapping[str, Any], around: Mapping[str, Any]) -> None:
        """Follow each chain of names in compiled code; what it ends at is looked at."""
        import dis  # noqa: PLC0415  # Python's workers have no query

        held, source, before = _NOTHING, "", ""
        cells = {*code.co_cellvars, *code.co_freevars}
        for step in dis.get_instructions(code):
            does, name = step.opname, step.argval
            if does in ("EXTENDED_ARG", "CACHE", "NOP"):
                continue
            if does in ("LOAD_ATTR", "LOAD_METHOD"):
                held, before = self._attribute(held, name, read=before == "read"), name
                continue
            if does == "IMPORT_FROM":
                held = self._imported(source, name)
                continue
            if held is not _NOTHING:
                self.value(held)
            before, source = "", name if does == "IMPORT_NAME" else source
            last = name[-1] if isinstance(name, tuple) and name else name
            fast = "LOAD_FAST" in does and last in cells  # that is how newer Pythons hand a variable to a function
            held = _NOTHING if fast else self._loaded(does, last, space, around)
        for each in code.co_consts:
            if isinstance(each, CodeType):
                self._code(each, space, {name: value for name, value in around.items() if name in each.co_freevars})
        if self.doubt and " uses " not in self.doubt:
            self.doubt = f"{code.co_name} uses {self.doubt}"

    def _loaded(self, does: str, name: Any, space: Mapping[str, Any], around: Mapping[str, Any]) -> Any:
        """Return what an instruction loads, if that is known now."""
        if does in ("LOAD_GLOBAL", "LOAD_NAME"):
            found = space.get(name, vars(builtins).get(name, _NOTHING))
            self._doubt(name, calm=does == "LOAD_NAME" or found is not _NOTHING)
            self._each(around.values() if found is super else ())
            return found
        if does == "IMPORT_NAME":
            self._doubt(name, calm=_calm(name) or name in sys.modules)
            return sys.modules.get(name, _NOTHING)
        variable = "LOAD_FAST" in does or does in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
        return around.get(name, _NOTHING) if variable else _NOTHING

    def _imported(self, source: str, name: str) -> Any:
        if source.endswith(f".{name}"):  # import a.b as c
            return sys.modules.get(source, _NOTHING)
        return self._of_module(sys.modules[source], name) if source in sys.modules else _NOTHING

    def _of_module(self, module: ModuleType, name: str) -> Any:
        if module is os and name in ENVIRONMENT:
            return _NOTHING
        found = vars(module).get(name, sys.modules.get(f"{module.__name__}.{name}", _NOTHING))
        if found is _NOTHING and module.__name__ == "ha.spark":
            found = getattr(module, name, _NOTHING)  # it imports when it is asked
        self._doubt(f"{module.__name__}.{name}", calm=found is not _NOTHING)
        return found

    def _attribute(self, base: Any, name: str, *, read: bool) -> Any:
        """Return what a name after a dot stands for, if that is known now."""
        if isinstance(base, ModuleType):
            return self._of_module(base, name)
        kind = base if isinstance(base, type) else type(base)
        if base is _NOTHING or (_calm(kind.__module__) and kind.__module__.startswith("pyspark.")):
            self._doubt(name, calm=read or not (name in WRITES or name.startswith(("saveAs", "_j"))))
            return _NOTHING
        if _whose(kind) == "program":
            return self._of_program(base, kind, name)
        if kind.__name__ in ("SimpleNamespace", "_local") and name in vars(base):
            return vars(base)[name]
        self.value(base)
        return _NOTHING

    def _of_program(self, base: Any, kind: type, name: str) -> Any:
        own: dict[str, Any] = {} if base is kind else getattr(base, "__dict__", {})
        member = _member(kind, name)
        if name in own:
            return own[name]
        if isinstance(member, MemberDescriptorType):
            return getattr(base, name, _NOTHING)
        self._doubt(f"{kind.__name__}.{name}", calm=member is not _NOTHING)
        inner = _inside(member)
        if base is kind or not isinstance(inner, FunctionType) or isinstance(member, (classmethod, staticmethod)):
            return inner
        if isinstance(member, FunctionType):
            return MethodType(inner, base)
        self._function(inner, base)  # of a property
        return _NOTHING


def _member(kind: type, name: str) -> Any:
    """Return what a class has by a name, as it is there; nothing if it has none."""
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), _NOTHING)


def _inside(member: Any) -> Any:
    """Return the function of a member of a class."""
    for name in ("fget", "__func__", "func") if not isinstance(member, FunctionType) else ():
        if type(member).__module__ in ("builtins", "functools") and hasattr(member, name):
            return getattr(member, name)
    return member


def _ours(kind: type) -> bool:
    return kind.__module__.startswith("ha.spark.")


def _calm(module: str) -> bool:
    return module.partition(".")[0] in CALM and not module.startswith("pyspark.pandas")


def _whose(kind: type) -> str:
    """Return whose a class is: of a `calm` module, of another `library`, or of the `program`."""
    if _calm(kind.__module__):
        return "calm"
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) if kind.__module__ != "__main__" else ""
    return "library" if file is None or _in_library(file) else "program"


def _in_library(file: str) -> bool:
    """Whether a file of code is Python's own, or was installed."""
    within = (os.path.dirname(os.__file__), "<frozen")  # noqa: PTH120  # a path as text
    return file.startswith(within) or "/site-packages/" in file or "/dist-packages/" in file
