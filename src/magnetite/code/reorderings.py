"""Other ways to write a function: the same meaning, another text. Counted exactly, listed lazily, drawn at random.

Independent statements change places, and so do the operands of commutative operators, keyword arguments, the elements
of a set and the names of an import. What is assumed to keep the meaning is what the data-flow graph assumes: functions
that are not members have no side effects (so prints may come in another order), operators commute as they do on
numbers, and it does not matter which of two independent statements raises. Stricter than the graph, to be run:

- statements that an `except` or `finally` guards keep their order, since it decides what has happened when one raises;
- so do the statements of a class, whose order dataclasses and enumerations read;
- `and` and `or` are left alone unless asked for: `x is not None and x.ok` guards its right side;
- `+` keeps its order where an operand evidently is a string, list or tuple.

Comments and layout are not kept.
"""

import ast
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import prod

from magnetite.code.commuting import COMMUTATIVE, SYMBOLS, Places, places
from magnetite.code.dependencies import Block, blocks
from magnetite.code.functions import parse_function
from magnetite.code.orders import Orders
from magnetite.code.rewriting import text_of
from magnetite.code.traits import HIDDEN, traits

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

MOVABLE = ("body", "orelse", "finalbody", "keywords", "elts")
"""Lists of any length whose parts may change places."""

LONGEST_LIST = 2_000
"""Statements of one list, or operands of one node, that can be reordered; work and memory grow with the square."""


@dataclass(frozen=True)
class Reorderings:
    """All texts of one function: iterate for them, the one nearest to the source first.

    >>> ways = reorderings("def f(a, b):\\n    x = a + 1\\n    y = b\\n    return x - y", limit=2)
    >>> ways.count
    4
    >>> print(*ways, sep="\\n")
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
    places: tuple[Places, ...]
    orders: tuple[Orders, ...]
    limit: int | None = None

    @cached_property
    def count(self) -> int:
        """How many different texts there are, limit or not: exact, however large."""
        return prod(orders.count for orders in self.orders)

    def __iter__(self) -> Iterator[str]:
        return (self._text(choice) for choice in islice(self._choices(), self.limit))

    def sample(self, number: int, seed: int = 0) -> Iterator[str]:
        """Texts drawn at random, all places at once; with few texts in all, some may come twice."""
        randomness = random.Random(seed)
        for _ in range(number):
            yield self._text([orders.sample(randomness) for orders in self.orders])

    def _choices(self) -> Iterator[Sequence[Sequence[int]]]:
        """An order for every place, like the digits of a counter: the last place moves first."""
        digits = [iter(orders) for orders in self.orders]
        current = [next(digit) for digit in digits]
        while True:
            yield current
            for place in reversed(range(len(digits))):
                following = next(digits[place], None)
                if following is not None:
                    current[place] = following
                    break
                digits[place] = iter(self.orders[place])
                current[place] = next(digits[place])
            else:
                return

    def _text(self, choice: Sequence[Sequence[int]]) -> str:
        for spot, order in zip(self.places, choice, strict=True):
            spot.put(order)
        return text_of(self.tree)


def reorderings(
    source: str,
    limit: int | None = None,
    name: str | None = None,
    operators: Collection[str] = COMMUTATIVE,
    pure_calls: bool = True,
) -> Reorderings:
    """The texts that mean the same as one function of the source: the only one, or the one with this (qualified) name.

    `limit` ends the iteration, not the count. `operators` are those whose operands may be swapped, of `+ * | ^ & == !=
    is`, `is not`, `and`, `or`; all but the last two unless given. Without `pure_calls`, whatever may run other code
    keeps its place: calls, loops over iterators, `with`, decorators, imports.
    """
    unknown = set(operators) - set(SYMBOLS.values())
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))} do not commute: choose from {' '.join(SYMBOLS.values())}")
    if limit is not None and limit < 0:
        raise ValueError(f"limit={limit} is negative: give the most texts to list, or None for all")
    tree, function = parse_function(source, name)
    nodes = _parents_first(function)
    _check_lengths(nodes)
    known = traits(nodes, pure_calls)
    spots = [*places(nodes, operators, known), *_statement_lists(function, known)]
    free = [(spot, orders) for spot, orders in _without_repetitions(nodes, spots) if not orders.is_fixed]
    return Reorderings(tree, tuple(spot for spot, _ in free), tuple(orders for _, orders in free), limit)


def _check_lengths(nodes: Sequence[ast.AST]) -> None:
    for node in nodes:
        for field in MOVABLE:
            parts = getattr(node, field, None)
            if isinstance(parts, list) and len(parts) > LONGEST_LIST and not isinstance(node, ast.List | ast.Tuple):
                raise ValueError(
                    f"line {getattr(parts[0], 'lineno', '?')} starts a list of {len(parts):,} parts that may change "
                    f"places: at most {LONGEST_LIST:,} can be reordered"
                )


def _statement_lists(function: FunctionNode, known: Mapping[int, int]) -> Iterator[Places]:
    fixed = _fixed_lists(function)
    for block in blocks(function):
        if (id(block.owner), block.field) not in fixed and len(block.statements) > 1:
            yield Places(block.owner, block.field, block.statements, _fenced(block, known))


def _fenced(block: Block, known: Mapping[int, int]) -> tuple[int, ...]:
    """The order of a list, in which some statements change places with none.

    Declarations must stay before what they declare, a string that moves to the front would be a docstring, and hidden
    effects may meet any other statement.
    """
    before, fence = list(block.before), 0
    for place, statement in enumerate(block.statements):
        before[place] |= fence
        declares = isinstance(statement, ast.Global | ast.Nonlocal)
        if declares or _is_text(statement) or known[id(statement)] & HIDDEN:
            before[place] |= (1 << place) - 1
            fence = 1 << place
    return tuple(before)


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _fixed_lists(function: ast.AST) -> set[tuple[int, str]]:
    """Statement lists, as owner and field, whose order shows: in classes, and where a handler waits for exceptions."""
    found: set[tuple[int, str]] = set()
    stack = [(function, False)]
    while stack:
        node, inherited = stack.pop()
        for field, value in ast.iter_fields(node):
            fixed = not isinstance(node, FUNCTIONS) and (inherited or _order_shows(node, field))
            if fixed:
                found.add((id(node), field))
            children = value if isinstance(value, list) else [value]
            stack += [(child, fixed) for child in children if isinstance(child, ast.AST)]
    return found


def _order_shows(node: ast.AST, field: str) -> bool:
    if isinstance(node, ast.Try | ast.TryStar):
        return (field != "finalbody" and bool(node.finalbody)) or (field == "body" and bool(node.handlers))
    return isinstance(node, ast.ClassDef)


def _without_repetitions(nodes: Sequence[ast.AST], spots: Sequence[Places]) -> Iterator[tuple[Places, Orders]]:
    """The orders of each place, with parts that can be written alike kept in order: they would give the same texts.

    Nodes get equal numbers where the texts that they can have are the same ones: the number of a node is looked up by
    its fields, with the numbers of parts that may change places in their smallest order.
    """
    at: dict[int, list[Places]] = {}
    for spot in spots:
        at.setdefault(id(spot.node), []).append(spot)
    numbers: dict[int, int] = {}
    known: dict[tuple, int] = {}
    orders: dict[int, Orders] = {}
    for node in reversed(nodes):
        key: list = [type(node)]
        moved: set[int] = set()
        for spot in at.get(id(node), ()):
            own = [numbers[id(part)] for part in spot.parts]
            orders[id(spot)] = Orders(_alike_in_order(spot.before, own))
            key.append((spot.field, *(own[place] for place in orders[id(spot)].smallest(own))))
            moved.update(map(id, spot.parts))
        key += [(field, _key(value, numbers, moved)) for field, value in ast.iter_fields(node)]
        numbers[id(node)] = known.setdefault(tuple(key), len(known))
    return ((spot, orders[id(spot)]) for spot in spots)


def _alike_in_order(before: Sequence[int], numbers: Sequence[int]) -> tuple[int, ...]:
    last: dict[int, int] = {}
    kept = []
    for place, (needed, number) in enumerate(zip(before, numbers, strict=True)):
        kept.append(needed | last.get(number, 0))
        last[number] = 1 << place
    return tuple(kept)


def _key(value: object, numbers: Mapping[int, int], moved: Collection[int]) -> object:
    """A field's value by which equal fields are known; parts that move are counted elsewhere."""
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
