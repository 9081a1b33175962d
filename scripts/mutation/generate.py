"""Small faults put into the functions of the product: each a mutant of one place."""

import ast
import hashlib
import heapq
from collections.abc import Iterator
from pathlib import Path

from scripts.mutation.mutant import Mutant

FLIPPED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
# The negation of a condition that is one of these comparisons is its flip.
NEGATED_BY_FLIP = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
SWAPPED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}


def chosen(root: Path, count: int, seed: int, wings: tuple[str, ...] = ()) -> list[Mutant]:
    """Return the mutants of a seed, as many of each wing, so far as it has as many; in an order that the seed makes."""
    by_wing: dict[str, list[Mutant]] = {}
    for mutant in generated(root):
        if not wings or mutant.wing in wings:
            by_wing.setdefault(mutant.wing, []).append(mutant)
    picked = []
    for place, wing in enumerate(sorted(by_wing)):
        share = count // len(by_wing) + (place < count % len(by_wing))
        picked += heapq.nsmallest(share, by_wing[wing], key=lambda mutant: _digest(f"{seed} {mutant.identity}"))
    return sorted(picked, key=lambda mutant: _digest(f"{seed} {mutant.identity}"))


def generated(root: Path) -> list[Mutant]:
    """Return every mutant of the tree; of those with the same identity, the first."""
    found: dict[str, Mutant] = {}
    for file in sorted((root / "migrate").rglob("*.py")):
        for mutant in _Module(file.read_bytes(), str(file.relative_to(root))).mutants():
            found.setdefault(mutant.identity, mutant)
    return list(found.values())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class _Module:
    """One module, whose nodes lie at lines and at bytes within them."""

    def __init__(self, source: bytes, file: str) -> None:
        self._source = source
        self._file = file
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def mutants(self) -> Iterator[Mutant]:
        yield from self._within(ast.parse(self._source), "")

    def _within(self, node: ast.AST, name: str) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from self._within(child, f"{name}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._of_function(child, f"{name}{child.name}")
            elif isinstance(child, ast.If | ast.Try | ast.With):
                yield from self._within(child, name)

    def _of_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[Mutant]:
        seen: dict[str, int] = {}
        for statement in _statements(function.body):
            text = ast.unparse(_head(statement))
            for kind, node, start, end, after in self._of_statement(statement):
                before = self._source[start:end].decode()
                what = " ".join((name, text, kind, before, after))
                # The same change at a second place of the statement, or in the same statement further down.
                seen[what] = seen.get(what, 0) + 1
                yield Mutant(
                    _digest(f"{what} {seen[what]}"),
                    kind,
                    self._file,
                    name,
                    node.lineno,
                    (node.lineno, statement.lineno),
                    start,
                    end,
                    after,
                )

    def _of_statement(self, statement: ast.stmt) -> Iterator[tuple[str, "_Placed", int, int, str]]:
        start, end = self._span(statement)
        match statement:
            case ast.Return(value=value) if value is not None and not _is_none(value):
                yield "return None", statement, start, end, "return None"
            case (
                ast.AugAssign() | ast.Raise(exc=ast.expr()) | ast.Continue() | ast.Break() | ast.Expr(value=ast.Call())
            ):
                yield "statement deleted", statement, start, end, "pass"
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield "statement deleted", statement, start, end, "pass"
        if isinstance(statement, ast.AugAssign):
            yield from self._operator(statement, statement.op, statement.target, statement.value)
        for condition in _conditions(statement):
            yield from self._negated(condition)
        for expression in _expressions(statement):
            yield from self._of_expression(expression)

    def _of_expression(self, node: ast.expr) -> Iterator[tuple[str, "_Placed", int, int, str]]:
        start, end = self._span(node)
        match node:
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                for first, operator, second in zip((left, *comparators), ops, comparators, strict=False):
                    yield from self._between("comparison", node, first, second, *FLIPPED[type(operator)])
            case ast.BinOp(left=left, op=operator, right=right):
                yield from self._operator(node, operator, left, right)
            case ast.BoolOp(op=operator, values=values):
                neutral = "True" if isinstance(operator, ast.And) else "False"
                # `x or 0` is `x or False`.
                for value in (value for value in values if not isinstance(value, ast.Constant)):
                    yield "operand dropped", value, *self._span(value), neutral
            case ast.IfExp(test=test):
                yield from self._negated(test)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                for generator in node.generators:
                    for condition in generator.ifs:
                        yield from self._negated(condition)
            case ast.Constant(value=bool() as value):
                yield "constant", node, start, end, str(not value)
            case ast.Constant(value=int() | float() as number):
                yield "constant", node, start, end, str(number + 1)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                yield "constant", node, start, end, str(-number - 1)

    def _operator(
        self, node: "_Placed", operator: ast.operator, left: ast.expr, right: ast.expr
    ) -> Iterator[tuple[str, "_Placed", int, int, str]]:
        if type(operator) in SWAPPED and not (_is_text(left) or _is_text(right)):
            yield from self._between("operator", node, left, right, *SWAPPED[type(operator)])

    def _negated(self, condition: ast.expr) -> Iterator[tuple[str, "_Placed", int, int, str]]:
        start, end = self._span(condition)
        match condition:
            case ast.Compare(ops=[operator]) if isinstance(operator, NEGATED_BY_FLIP):
                return
            case ast.UnaryOp(op=ast.Not()):
                yield "condition negated", condition, start, start + len("not "), ""
            case _:
                yield "condition negated", condition, start, end, f"not ({self._source[start:end].decode()})"

    def _between(
        self, kind: str, node: "_Placed", left: ast.expr, right: ast.expr, before: str, after: str
    ) -> Iterator[tuple[str, "_Placed", int, int, str]]:
        """Replace an operator, which stands between its operands, beside brackets and blanks."""
        start, end = self._span(left)[1], self._span(right)[0]
        place = self._source.find(before.encode(), start, end)
        if place >= 0:
            yield kind, node, place, place + len(before), after

    def _span(self, node: "_Placed") -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )


_Placed = ast.expr | ast.stmt


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield a body's statements at any depth; those of functions and classes within it as well."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _statements(part.body)


def _head(statement: ast.stmt) -> ast.AST:
    """Return what a statement says itself, without the statements in it."""
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            return test
        case ast.For(iter=iterated):
            return iterated
        case ast.With(items=items):
            return ast.Tuple([item.context_expr for item in items], ast.Load())
        case ast.Match(subject=subject):
            return subject
        case ast.Try() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return ast.Pass()
        case _:
            return statement


def _conditions(statement: ast.stmt) -> Iterator[ast.expr]:
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            # `while True` ends by a break or not at all.
            if not isinstance(test, ast.Constant):
                yield test
        case ast.Match(cases=cases):
            yield from (case.guard for case in cases if case.guard is not None)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield a statement's own expressions at any depth: no annotation, no text, no assertion of a type."""
    if isinstance(statement, ast.Assert) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    ):
        return
    if isinstance(statement, ast.Match):
        pending: list[ast.AST] = [statement.subject, *_conditions(statement)]
    elif isinstance(statement, ast.With):
        pending = [item.context_expr for item in statement.items]
    elif isinstance(statement, ast.AnnAssign):
        pending = [statement.value] if statement.value else []
    else:
        pending = [_head(statement)]
        if isinstance(pending[0], ast.stmt):
            pending = list(ast.iter_child_nodes(pending[0]))
    while pending:
        node = pending.pop(0)
        # Within an f-string, Python 3.11 does not say where things stand.
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.expr):
            yield node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            continue
        pending[:0] = ast.iter_child_nodes(node)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr) or (
        isinstance(value, ast.Constant) and isinstance(value.value, str | bytes)
    )
