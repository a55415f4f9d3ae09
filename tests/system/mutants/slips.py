"""Slips: every one-line mistake of some kinds that a module could have, each as the whole text of the wrong module."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
BEFORE = (ast.Assign, ast.AugAssign, ast.Expr)
SAID = ("log", "echo", "tell", "say", "warning", "info", "debug", "exception")  # what is called to tell people

UNJUDGED = ("annotation", "returns", "decorator_list", "bases")

Chance = tuple[int, str, Callable[[], None]]


@dataclass(frozen=True)
class Slip:
    """One wrong line: its number, what is wrong, and the module with it."""

    line: int
    what: str
    text: str


def slips(source: str) -> Iterator[Slip]:
    """Yield the slips of a module; none in annotations, and none in what people are told."""
    for number in range(len(list(_chances(ast.parse(source))))):
        tree = ast.parse(source)
        line, what, slip = list(_chances(tree))[number]
        slip()
        yield Slip(line, what, ast.unparse(ast.fix_missing_locations(tree)))


def _chances(node: ast.AST) -> Iterator[Chance]:
    """Yield each place in a tree where something can be wrong, what, and how to make it so."""
    yield from _of_expression(node)
    for name, below in ast.iter_fields(node):
        parts = [each for each in (below if isinstance(below, list) else [below]) if isinstance(each, ast.AST)]
        if isinstance(below, list) and parts and isinstance(parts[0], ast.stmt):
            yield from _of_statements(below)
        for each in parts if name not in UNJUDGED else ():
            if not _tells(each):
                yield from _chances(each)


def _of_expression(node: ast.AST) -> Iterator[Chance]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in TURNED:
            turned = TURNED[type(operator)]
            what = f"{type(operator).__name__} is {turned.__name__}"
            yield node.lineno, what, partial(setattr, node, "ops", [turned()])
        case ast.BoolOp(op=operator):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield node.lineno, f"{type(other).__name__} instead", partial(setattr, node, "op", other)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not _turns_round(test):
            yield test.lineno, "the condition is negated", partial(setattr, node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Constant(value=bool() as value):
            yield node.lineno, f"{value} is {not value}", partial(setattr, node, "value", not value)
        case ast.Constant(value=int() | float() as value):
            yield node.lineno, f"{value} is {value + 1}", partial(setattr, node, "value", value + 1)


def _of_statements(body: list[ast.stmt]) -> Iterator[Chance]:
    for at, statement in enumerate(body):
        if _tells(statement):
            continue
        match statement:
            case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign():
                yield statement.lineno, "it is not done", partial(body.__setitem__, at, ast.Pass())
            case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
                yield statement.lineno, "it returns nothing", partial(setattr, statement, "value", None)
        if at and isinstance(statement, BEFORE) and isinstance(body[at - 1], BEFORE) and not _is_text(body[at - 1]):
            swapped = [statement, body[at - 1]]
            yield (
                statement.lineno,
                "it comes a line too early",
                partial(body.__setitem__, slice(at - 1, at + 1), swapped),
            )


def _turns_round(test: ast.expr) -> bool:
    """Whether a turned comparison is the same slip as a negated condition."""
    match test:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.In() | ast.NotIn() | ast.Is() | ast.IsNot()]):
            return True
    return False


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _tells(node: ast.AST) -> bool:
    """Whether it only tells people something: a call of a log, an error's text, a documentation."""
    if isinstance(node, ast.Raise | ast.JoinedStr) or (isinstance(node, ast.stmt) and _is_text(node)):
        return True
    call = node.value if isinstance(node, ast.Expr) else node
    if not isinstance(call, ast.Call):
        return False
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return called.strip("_") in SAID
