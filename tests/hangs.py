"""Which lines of a source wait without end, or for a time that the machine decides: read from its tree.

Names are followed within a file: what is made by ``Popen``, ``Thread`` or ``Event`` is known by the name that it gets.
"""

import ast
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

Rule = Callable[[ast.AST], Iterator[int]]
"""Yields the lines of a module that break it."""

RUNS = {"run", "call", "check_call", "check_output"}
WAITED_FOR = {"Popen", "Thread", "Timer", "Event", "Condition"}
CLOCKS = {"now", "monotonic", "perf_counter", "monotonic_ns", "perf_counter_ns"}


def joins(tree: ast.AST) -> Iterator[int]:
    """Yield joins of threads and processes without a limit. Strings are joined with an argument."""
    for call in _calls(tree, "join"):
        if not call.args and not _given(call, "timeout"):
            yield call.lineno


def waits(tree: ast.AST) -> Iterator[int]:
    """Yield waits without a limit, for processes and events: what is made here, or called a process.

    What is awaited is none of them: it is an event of a loop.
    """
    calls = _calls(tree, "wait")
    awaited = {node.value for node in _nodes(tree) if isinstance(node, ast.Await)} if calls else set()
    of_all = {"Event"} | {each.name for each in _functions(tree) if _is_process(each.returns)}
    of_all |= _known(tree, ast.Attribute) if calls else set()
    for call in calls:
        around = [each for each in _functions(tree) if each.lineno <= call.lineno <= (each.end_lineno or 0)]
        known = of_all.union(*(_known(each, ast.Name) for each in around))
        name = _last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if (name in known or "process" in name.lower()) and not _limit(call) and call not in awaited:
            yield call.lineno
    for call in _calls(tree, "communicate"):
        if len(call.args) < 2 and not _given(call, "timeout"):
            yield call.lineno


def barriers(tree: ast.AST) -> Iterator[int]:
    """Yield barriers without a limit: who comes to one alone waits for ever."""
    for call in _calls(tree, "Barrier"):
        if len(call.args) < 3 and not _given(call, "timeout"):
            yield call.lineno


def runs(tree: ast.AST) -> Iterator[int]:
    """Yield commands that are run without a limit."""
    imported = _imported(tree, "subprocess")
    for name in RUNS:
        for call in _calls(tree, name):
            module = call.func.value if isinstance(call.func, ast.Attribute) else None
            ours = isinstance(module, ast.Name) and module.id == "subprocess"
            if (ours or (module is None and name in imported)) and not _given(call, "timeout"):
                yield call.lineno


def blocks(tree: ast.AST) -> Iterator[int]:
    """Yield blocks whose end waits for a process that they do not kill first; :func:`tests.limits.killed` does."""
    processes = {"Popen"} | {each.name for each in _functions(tree) if _is_process(each.returns)}
    for node in _nodes(tree):
        if isinstance(node, ast.With | ast.AsyncWith) and not _kills(node.body):
            yield from (each.lineno for each in _managers(node) if _last_name(each) in processes)
    for call in _calls(tree, "enter_context"):
        if call.args and isinstance(call.args[0], ast.Call) and _last_name(call.args[0]) in processes:
            yield call.lineno


def forks(tree: ast.AST) -> Iterator[int]:
    """Yield pools of processes that may be forked: a child may wait for a lock that a thread had meanwhile."""
    for call in _calls(tree, "ProcessPoolExecutor"):
        if not _given(call, "mp_context"):
            yield call.lineno
    for call in _calls(tree, "get_context"):
        if [each.value for each in call.args if isinstance(each, ast.Constant)] != ["spawn"]:
            yield call.lineno
    imported = _imported(tree, "multiprocessing")
    for name in ("Pool", "Process"):
        for call in _calls(tree, name):
            module = call.func.value if isinstance(call.func, ast.Attribute) else None
            ours = isinstance(module, ast.Name) and module.id == "multiprocessing"
            if ours or (module is None and name in imported):
                yield call.lineno


def ports(tree: ast.AST) -> Iterator[int]:
    """Yield sockets that are bound to any port, as is done to find one that is free.

    A server that was killed may not get it again: connections take such ports. :mod:`ha.sandbox.ports` has others.
    """
    for call in _calls(tree, "bind"):
        for address in call.args:
            port = address.elts[1] if isinstance(address, ast.Tuple) and len(address.elts) > 1 else None
            if isinstance(port, ast.Constant) and port.value == 0:
                yield call.lineno


def durations(tree: ast.AST) -> Iterator[int]:
    """Yield asserts that something took less than a time, in tests that are not marked ``timed``.

    Such a test fails on a machine that is busy. Those that are marked are run alone. Less than patience is no speed.
    """
    if any("timed" in ast.unparse(each) for each in getattr(tree, "body", ()) if _assigns(each, "pytestmark")):
        return
    for function in _functions(tree):
        if any("timed" in ast.unparse(each) for each in function.decorator_list):
            continue
        took = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _is_duration(node.value, set())
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                compared = [each for each in ast.walk(node.test) if isinstance(each, ast.Compare)]
                yield from (each.lineno for each in compared if _is_at_most(each, took))


def _is_at_most(compared: ast.Compare, took: set[str]) -> bool:
    sides = [compared.left, *compared.comparators]
    for one, how, other in zip(sides, compared.ops, sides[1:], strict=False):
        if isinstance(how, ast.Gt | ast.GtE):
            one, other = other, one  # noqa: PLW2901  # the smaller one is first
        elif not isinstance(how, ast.Lt | ast.LtE):
            continue
        if _is_duration(one, took) and "PATIENCE_S" not in ast.unparse(other):
            return True
    return False


def _is_duration(node: ast.AST, took: set[str]) -> bool:
    """Whether it is a time since another, or a name of one; of the real clock, not of a simulated world's."""
    if isinstance(node, ast.Name):
        return node.id in took
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Call)):
        return False
    asked = node.left.func
    if isinstance(asked, ast.Attribute):
        ours = isinstance(asked.value, ast.Name) and asked.value.id == "time"
        return ours and asked.attr in CLOCKS | {"time"}
    return isinstance(asked, ast.Name) and asked.id in CLOCKS


@functools.lru_cache(64)  # of one file, and of its functions
def _nodes(tree: ast.AST) -> Sequence[ast.AST]:
    return list(ast.walk(tree))


@functools.lru_cache(1)
def _calls_by_name(tree: ast.AST) -> Mapping[str, Sequence[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for node in _nodes(tree):
        if isinstance(node, ast.Call):
            found.setdefault(getattr(node.func, "attr", getattr(node.func, "id", "")), []).append(node)
    return found


def _calls(tree: ast.AST, name: str) -> Sequence[ast.Call]:
    return _calls_by_name(tree).get(name, ())


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in _nodes(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _assigns(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(each, ast.Name) and each.id == name for each in node.targets)


def _managers(block: ast.With | ast.AsyncWith) -> Iterator[ast.Call]:
    return (each.context_expr for each in block.items if isinstance(each.context_expr, ast.Call))


def _given(call: ast.Call, name: str) -> bool:
    return any(
        each.arg in {name, None} and not (isinstance(each.value, ast.Constant) and each.value.value is None)
        for each in call.keywords
    )


def _limit(call: ast.Call) -> bool:
    return bool(call.args) or _given(call, "timeout")


def _imported(tree: ast.AST, module: str) -> set[str]:
    found = [node for node in _nodes(tree) if isinstance(node, ast.ImportFrom) and node.module == module]
    return {alias.name for node in found for alias in node.names}


def _last_name(node: ast.AST) -> str:
    """Return the name by which something is known: of ``a.b``, ``b``; of a call, the function's."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _is_process(annotation: ast.AST | None) -> bool:
    """Whether an annotation is a process itself, and not what only contains one."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return annotation is not None and _last_name(annotation) == "Popen"


def _makes(node: ast.AST | None) -> bool:
    """Whether an expression makes what is waited for, at once or within another call: ``killed(Popen(...))``."""
    return isinstance(node, ast.Call) and (_last_name(node) in WAITED_FOR or any(map(_makes, node.args)))


def _known(tree: ast.AST, kind: type[ast.expr]) -> set[str]:
    """Return the names (or attributes) that are given to processes, threads and events."""
    found: set[str] = set()
    for node in _nodes(tree):
        pairs: list[tuple[ast.AST | None, ast.AST | None]] = []
        if isinstance(node, ast.Assign):
            for target in node.targets:
                both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs += zip(target.elts, node.value.elts, strict=False) if both else [(target, node.value)]  # type: ignore[attr-defined]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.With | ast.AsyncWith):
            pairs = [(each.optional_vars, each.context_expr) for each in node.items]
        elif isinstance(node, ast.arg) and kind is ast.Name and _is_process(node.annotation):
            found.add(node.arg)
        found |= {_last_name(target) for target, value in pairs if isinstance(target, kind) and _makes(value)}
    return found


def _kills(body: list[ast.stmt]) -> bool:
    """Whether a block is nothing but one that kills in the end, whatever happens."""
    last = body[0] if len(body) == 1 else None
    return isinstance(last, ast.Try) and any(True for each in last.finalbody for _ in _calls(each, "kill"))
