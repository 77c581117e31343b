"""Reorderings: equivalent texts of a function, counted exactly, listed lazily, or sampled.

Independent statements, operands of commutative operators, keyword arguments, set elements and names of an import are
exchanged. The assumptions are those of the data-flow graph: function calls have no side effects (so prints may change
their order), operators commute as they do on numbers, and it does not matter which of two independent statements
raises. Since the texts are meant to be run, they are stricter than the graph:

- statements guarded by `except` or `finally` keep their order, which decides what has happened when one raises;
- so do the statements of a class, whose order dataclasses and enumerations read;
- the operands of `and` and `or` are exchanged only on request: `x is not None and x.ok` guards its right side;
- `+` keeps its order where an operand is evidently a string, list or tuple.

Comments and formatting are not preserved.
"""

import ast
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import prod

from magnetite.code.dependencies import (
    COMMUTATIVE,
    HIDDEN,
    SYMBOLS,
    Block,
    MovableParts,
    constraints,
    movable_parts,
    traits,
)
from magnetite.code.linear_extensions import LinearExtensions
from magnetite.code.source import parse_function, text_of

F1_SCORE = """
def f1_score(pred, label):
    correct = pred == label
    tp = (correct & label).sum()
    fn = (~correct & pred).sum()
    fp = (~correct & ~pred).sum()
    precision = tp / (tp + fp)
    recall = tp / (tp + fn)
    return 2 * (recall * precision) / (recall + precision)
"""
"""The paper's example, which can be written in 8,192 ways."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

MOVABLE = ("body", "orelse", "finalbody", "keywords", "elts")
"""Fields with lists of any length whose parts may be exchanged."""

LONGEST_LIST = 2_000
"""Longest list that can be reordered; time and memory are quadratic in the length."""


@dataclass(frozen=True)
class Reorderings:
    """All equivalent texts of one function, as returned by `reorderings`; iteration starts with the source's own order.

    Args:
        tree: The syntax tree of the source.
        parts: The parts that may be exchanged.
        orders: The possible orders of each of `parts`.
        limit: Number of texts after which the iteration ends.

    >>> texts = reorderings("def f(a, b):\\n    x = a + 1\\n    y = b\\n    return x - y", limit=2)
    >>> texts.count
    4
    >>> print(*texts, sep="\\n")
    def f(a, b):
        x = a + 1
        y = b
        return x - y
    def f(a, b):
        y = b
        x = a + 1
        return x - y
    """

    tree: ast.Module
    parts: tuple[MovableParts, ...]
    orders: tuple[LinearExtensions, ...]
    limit: int | None = None

    @cached_property
    def count(self) -> int:
        """Exact number of different texts, regardless of the limit."""
        return prod(orders.count for orders in self.orders)

    def __iter__(self) -> Iterator[str]:
        return (self._text(choice) for choice in islice(self._choices(), self.limit))

    def sample(self, number: int, seed: int = 0) -> Iterator[str]:
        """Random texts, with repetitions.

        Args:
            number: Number of texts.
            seed: Seed of the random numbers.
        """
        randomness = random.Random(seed)
        for _ in range(number):
            yield self._text([orders.sample(randomness) for orders in self.orders])

    def _choices(self) -> Iterator[Sequence[Sequence[int]]]:
        """An order for each of `parts`, like the digits of a counter: the last one changes first."""
        digits = [iter(orders) for orders in self.orders]
        current = [next(digit) for digit in digits]
        while True:
            yield current
            for position in reversed(range(len(digits))):
                following = next(digits[position], None)
                if following is not None:
                    current[position] = following
                    break
                digits[position] = iter(self.orders[position])
                current[position] = next(digits[position])
            else:
                return

    def _text(self, choice: Sequence[Sequence[int]]) -> str:
        for parts, order in zip(self.parts, choice, strict=True):
            parts.put(order)
        return text_of(self.tree)


def reorderings(
    source: str,
    limit: int | None = None,
    name: str | None = None,
    operators: Collection[str] = COMMUTATIVE,
    pure_calls: bool = True,
) -> Reorderings:
    """The equivalent texts of one function.

    Args:
        source: Python source that defines the function.
        limit: Number of texts after which the iteration ends; the count ignores it.
        name: Name or qualified name; needed where the source defines several functions.
        operators: Operators whose operands may be swapped, of `+ * | ^ & == != is`, `is not`, `and`, `or`; all but the
            last two by default.
        pure_calls: Whether calls are assumed to have no side effects. If False, whatever may run other code keeps its
            position: calls, loops over iterators, `with`, decorators, imports.
    """
    unknown = set(operators) - set(SYMBOLS.values())
    if unknown:
        raise ValueError(f"operators must be among {' '.join(SYMBOLS.values())}, got {', '.join(sorted(unknown))}")
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be a non-negative integer, or None for all texts, got {limit}")
    tree, function = parse_function(source, name)
    nodes = _parents_first(function)
    _check_lengths(nodes)
    known = traits(nodes, pure_calls)
    found = constraints(function)
    parts = (
        each for each in movable_parts(nodes, operators, known) if not found.fixed.intersection(map(id, each.parts[:1]))
    )
    movable = [*parts, *_statement_lists(function, found.blocks, known)]
    free = [(parts, orders) for parts, orders in _without_duplicates(nodes, movable) if not orders.is_fixed]
    return Reorderings(tree, tuple(parts for parts, _ in free), tuple(orders for _, orders in free), limit)


def _check_lengths(nodes: Sequence[ast.AST]) -> None:
    for node in nodes:
        for field in MOVABLE:
            parts = getattr(node, field, None)
            if isinstance(parts, list) and len(parts) > LONGEST_LIST and not isinstance(node, ast.List | ast.Tuple):
                raise ValueError(
                    f"the list at line {getattr(parts[0], 'lineno', '?')} has {len(parts):,} elements: "
                    f"lists of at most {LONGEST_LIST:,} can be reordered"
                )


def _statement_lists(
    function: FunctionNode, blocks: Sequence[Block], known: Mapping[int, int]
) -> Iterator[MovableParts]:
    fixed = _fixed_lists(function)
    for block in blocks:
        if (id(block.owner), block.field) not in fixed and len(block.statements) > 1:
            yield MovableParts(block.owner, block.field, block.statements, _fenced(block, known))


def _fenced(block: Block, known: Mapping[int, int]) -> tuple[int, ...]:
    """The constraints of a list, with statements that cannot be exchanged with any other.

    Declarations must stay before what they declare, a string moved to the front would become a docstring, and hidden
    effects may concern any other statement.
    """
    before, fence = list(block.before), 0
    for position, statement in enumerate(block.statements):
        before[position] |= fence
        match statement:
            case ast.Global() | ast.Nonlocal() | ast.Expr(ast.Constant(str())):
                fixed = True
            case _:
                fixed = bool(known[id(statement)] & HIDDEN)
        if fixed:
            before[position] |= (1 << position) - 1
            fence = 1 << position
    return tuple(before)


def _fixed_lists(function: ast.AST) -> set[tuple[int, str]]:
    """Statement lists, as owner and field, whose order is observable: in classes, and under `except` or `finally`."""
    found: set[tuple[int, str]] = set()
    stack = [(function, False)]
    while stack:
        node, inherited = stack.pop()
        for field, value in ast.iter_fields(node):
            fixed = not isinstance(node, FUNCTIONS) and (inherited or _is_observable(node, field))
            if fixed:
                found.add((id(node), field))
            children = value if isinstance(value, list) else [value]
            stack += [(child, fixed) for child in children if isinstance(child, ast.AST)]
    return found


def _is_observable(node: ast.AST, field: str) -> bool:
    if isinstance(node, ast.Try | ast.TryStar):
        return (field != "finalbody" and bool(node.finalbody)) or (field == "body" and bool(node.handlers))
    return isinstance(node, ast.ClassDef)


def _without_duplicates(
    nodes: Sequence[ast.AST], movable: Sequence[MovableParts]
) -> Iterator[tuple[MovableParts, LinearExtensions]]:
    """The orders of each, with equivalent parts kept in order, since exchanging them would give the same texts.

    Equivalent nodes, those with the same set of texts, get equal numbers: the number of a node is looked up by its
    fields, with the numbers of movable parts in their smallest order.
    """
    at: dict[int, list[MovableParts]] = {}
    for parts in movable:
        at.setdefault(id(parts.node), []).append(parts)
    numbers: dict[int, int] = {}
    known: dict[tuple, int] = {}
    orders: dict[int, LinearExtensions] = {}
    for node in reversed(nodes):
        key: list = [type(node)]
        moved: set[int] = set()
        for parts in at.get(id(node), ()):
            own = [numbers[id(part)] for part in parts.parts]
            orders[id(parts)] = LinearExtensions(_equals_in_order(parts.before, own))
            key.append((parts.field, *(own[position] for position in orders[id(parts)].smallest(own))))
            moved.update(map(id, parts.parts))
        key += [(field, _key(value, numbers, moved)) for field, value in ast.iter_fields(node)]
        numbers[id(node)] = known.setdefault(tuple(key), len(known))
    return ((parts, orders[id(parts)]) for parts in movable)


def _equals_in_order(before: Sequence[int], numbers: Sequence[int]) -> tuple[int, ...]:
    last: dict[int, int] = {}
    kept = []
    for position, (needed, number) in enumerate(zip(before, numbers, strict=True)):
        kept.append(needed | last.get(number, 0))
        last[number] = 1 << position
    return tuple(kept)


def _key(value: object, numbers: Mapping[int, int], moved: Collection[int]) -> object:
    """A hashable key of a field's value, without movable parts, which have their own key."""
    if isinstance(value, list):
        return tuple(_key(item, numbers, moved) for item in value)
    if isinstance(value, ast.AST):
        return None if id(value) in moved else numbers[id(value)]
    return type(value), value


def _parents_first(root: ast.AST) -> list[ast.AST]:
    found, stack = [], [root]
    while stack:
        found.append(stack.pop())
        stack.extend(ast.iter_child_nodes(found[-1]))
    return found
