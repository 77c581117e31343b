"""Random small programs that satisfy the assumptions of the analysis, random reorderings of them, and their outcomes.

The variables `a … f` hold numbers, `xs` and `ys` lists, `t` a dictionary, `o` an object. Only `E` is ever caught; a run
that ends with any other exception (an empty list, too many steps) has no outcome.
"""

import ast
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NUMBERS = "abcdef"
LISTS = ("xs", "ys", "o.r")


class E(Exception):
    """The only exception that programs raise and catch."""


class Spent(Exception):
    """A program took too many steps."""


class Thing:
    """An object with state: `step` writes it, `total` reads it."""

    def __init__(self, rng: random.Random):
        self.p, self.q, self.r = rng.randrange(9), rng.randrange(9), [rng.randrange(9) for _ in range(4)]

    def step(self, by=1):
        self.p, self.q = self.q + by, self.p + len(self.r)

    def total(self):
        return self.p + 2 * self.q + sum(self.r)


@contextmanager
def managed(number):
    yield number + 1


class Programs:
    """Generates programs."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.loops = 0
        self.is_generator = False

    def generate(self) -> str:
        self.is_generator = self.rng.random() < 0.15
        lines = ["def fn(a, b, c, d, e, f, xs, ys, t, o):"]
        if self.rng.random() < 0.4:
            v, w = self.rng.sample(NUMBERS, 2)
            change = self.rng.choice([f"{v} += 1", f"{v} = {w} + 2", f"xs.append({w})"])
            lines += ["    def inner(z):", f"        nonlocal {v}", f"        {change}", f"        return z + {w}"]
        else:
            lines += ["    def inner(z):", "        return z + 1"]
        if self.rng.random() < 0.5:
            lines.append(f"    quick = lambda z: z + {self.rng.choice(NUMBERS)}")
        else:
            lines.append("    quick = lambda z: z * 2")
        lines += ["    " + line for line in self.block(self.rng.randint(2, 6), 0)]
        lines.append("    return a, b, c, d, e, f, len(ys)")
        return "\n".join(lines)

    def block(self, size: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(size):
            lines += self.statement(depth)
        return lines

    def inner(self, depth: int) -> list[str]:
        return ["    " + line for line in self.block(self.rng.randint(1, 3), depth + 1)]

    def number(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 1 or rng.random() < 0.5:
            return rng.choice([*NUMBERS, *NUMBERS, str(rng.randrange(5)), "o.p", "o.q", "len(xs)", "t.get(1, 0)"])
        x, y = self.number(depth + 1), self.number(depth + 1)
        name = rng.choice(NUMBERS)
        return rng.choice(
            [
                f"({x} + {y})",
                f"({x} + {y})",
                f"({x} - {y})",
                f"({x} * {y} % 97)",
                f"pure({x}, {y})",
                f"pure(x={x}, y={y})",
                f"quick({x})",
                f"inner({x})",
                f"({x} if {self.test(depth + 1)} else {y})",
                f"({name} := {x})",
                f"sum([{name} + {x} for {name} in {self.some_list()} if {name} != {y}])",
                f"max(xs, default=0, key=lambda z: z % {rng.choice([2, 3])} + {name})",
                "o.total()",
                f"{self.some_list()}.pop()",
                f"len({self.some_list()})",
                f"sum({{{x}, {y}}})",
            ]
        )

    def some_list(self) -> str:
        return self.rng.choice(LISTS)

    def test(self, depth: int = 0) -> str:
        x, y = self.number(depth + 1), self.number(depth + 1)
        simple = self.rng.choice([f"{x} < {y}", f"{x} == {y}", f"{x} % 2 != 0"])
        if self.rng.random() < 0.25:
            return f"({simple}) {self.rng.choice(['and', 'or'])} ({self.test(depth + 1)})"
        return simple

    def statement(self, depth: int) -> list[str]:
        rng = self.rng
        if depth < 3 and rng.random() < 0.3:
            return self.compound(depth)
        name, other, x, y = rng.choice(NUMBERS), rng.choice(NUMBERS), self.number(), self.number()
        choices = [
            f"{name} = {x}",
            f"{name} = {x}",
            f"{name} += {x}",
            f"{name}, {other} = {x}, {y}" if name != other else f"{name} = {y}",
            f"o.{rng.choice('pq')} = {x}",
            f"o.{rng.choice('pq')} += {x}",
            f"t[{x} % 3] = {y}",
            f"t[{rng.randrange(3)}] = {x}",
            f"{self.some_list()}.append({x})",
            f"{name} = {self.some_list()}.pop()",
            "o.step()",
            f"o.step({x})",
            f"inner({x})",
            f"print({x})",
            f"ys = {rng.choice(['xs', 'o.r', 'xs if a < b else ys', '[1, 2, a]'])}",
            f"o.r = {rng.choice(['xs', 'ys', '[a, 1]'])}",
            "del xs[:1]",
            "pass",
        ]
        if self.is_generator:
            choices.append(f"yield {x}")
        if rng.random() < 0.1 and depth:
            leave = [f"return {x}", "raise E(1)"] + (["break", "continue"] if self.loops else [])
            return [f"if {self.test()}:", "    " + rng.choice(leave)]
        return [rng.choice(choices)]

    def compound(self, depth: int) -> list[str]:
        rng, kind = self.rng, self.rng.choice(["if", "ifelse", "for", "for", "while", "with", "try", "match"])
        if kind in ("if", "ifelse"):
            otherwise = ["else:", *self.inner(depth)] if kind == "ifelse" else []
            return [f"if {self.test()}:", *self.inner(depth), *otherwise]
        if kind in ("for", "while"):
            self.loops += 1
            name = rng.choice(NUMBERS)
            over = rng.choice([f"range({rng.randint(0, 3)})", "list(xs)", "sorted(ys)", "xs"])
            head = f"for {name} in {over}:" if kind == "for" else f"while {self.test()}:"
            body = self.inner(depth)
            self.loops -= 1
            otherwise = ["else:", *self.inner(depth)] if rng.random() < 0.2 else []
            return [head, *body, *otherwise]
        if kind == "with":
            return [f"with managed({self.number()}) as {rng.choice(NUMBERS)}:", *self.inner(depth)]
        if kind == "match":
            return [
                f"match {self.number()} % 3:",
                "    case 0:",
                *("    " + line for line in self.inner(depth)),
                f"    case 1 if {self.test()}:",
                *("    " + line for line in self.inner(depth)),
                f"    case {rng.choice(NUMBERS)}:",
                *("    " + line for line in self.inner(depth)),
            ]
        lines = [
            "try:",
            *self.inner(depth),
            f"    if {self.test()}:",
            "        raise E(2)",
            "except E:",
            *self.inner(depth),
        ]
        return lines + (["finally:", *self.inner(depth)] if rng.random() < 0.4 else [])


def compiled(source: str) -> Callable[..., Any]:
    """The program's function."""
    names: dict[str, Any] = {"E": E, "managed": managed, "print": lambda x: None, "pure": lambda x, y: 3 * x + y}
    exec(compile(source, "<program>", "exec"), names)
    return names["fn"]


@contextmanager
def few_steps(limit: int) -> Iterator[None]:
    """Stop programs that run too long; every line (and every iteration of a comprehension) is a step."""
    steps = 0

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != "<program>":
            return None
        steps += 1
        if steps > limit:
            raise Spent
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)


def outcome(function: Callable[..., Any], seed: int) -> Any:
    """The outcome of a run: its result and the state of all arguments; None if it has none."""
    rng = random.Random(seed)
    numbers = [rng.randrange(6) for _ in NUMBERS]
    xs, ys, t, o = [rng.randrange(9) for _ in range(5)], [1, 2, 3], {0: 1, 1: rng.randrange(5)}, Thing(rng)
    try:
        with few_steps(400):
            result = function(*numbers, xs, ys, t, o)
            result = list(result) if hasattr(result, "send") else result
    except E as error:
        result = str(error)
    except (IndexError, ZeroDivisionError, TypeError, Spent, RecursionError):
        return None
    return result, xs, ys, list(t.items()), o.p, o.q, o.r


def statement_lists(tree: ast.AST) -> list[list[ast.stmt]]:
    """Every statement list with at least two statements."""
    found = []
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            part = getattr(node, field, None)
            if isinstance(part, list) and len(part) > 1:
                found.append(part)
    return found


def shuffled(source: str, rng: random.Random, swaps: int) -> str:
    """The program after random swaps, legal or not."""
    tree = ast.parse(source)
    lists = statement_lists(tree)
    operations = [
        node for node in ast.walk(tree) if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp | ast.Call | ast.Set)
    ]
    for _ in range(swaps):
        if operations and rng.random() < 0.3:
            swap_operands(rng.choice(operations), rng)
        elif lists:
            chosen = rng.choice(lists)
            place = rng.randrange(len(chosen) - 1)
            step = rng.randrange(1, min(3, len(chosen) - place)) if len(chosen) - place > 1 else 1
            chosen[place], chosen[place + step] = chosen[place + step], chosen[place]
    return ast.unparse(tree)


def swap_operands(node: Any, rng: random.Random) -> None:
    """Swap two operands, keywords or elements."""
    if isinstance(node, ast.BinOp):
        node.left, node.right = node.right, node.left
    elif isinstance(node, ast.Compare):
        node.left, node.comparators[0] = node.comparators[0], node.left
    elif isinstance(node, ast.Call):
        rng.shuffle(node.keywords if node.keywords else node.args)
    else:
        rng.shuffle(node.values if isinstance(node, ast.BoolOp) else node.elts)


def reordered(source: str, rng: random.Random, blocks: Callable[[ast.FunctionDef], Any]) -> str:
    """The program with every statement list in a random legal order."""
    tree = ast.parse(source)
    for block in blocks(tree.body[0]):
        order: list[int] = []
        while len(order) < len(block.statements):
            done = sum(1 << place for place in order)
            ready = [place for place, before in enumerate(block.before) if place not in order and not before & ~done]
            order.append(rng.choice(ready))
        getattr(block.owner, block.field)[:] = [block.statements[place] for place in order]
    return ast.unparse(tree)
