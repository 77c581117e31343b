"""Random programs whose objects are reached through containers, and what they do.

The parameters `xs`, `ys`, `zs` are lists of numbers, `o` and `q` objects with an attribute `n` (a number) and `r` (a
list), `a` and `b` numbers. Programs put them into containers, take them out again, and change and look at what they
took. Every program ends by returning its parameters; aliases show in how their values change. Other variables are seen
only as far as they change these, and runs that raise are not compared.
"""

import ast
import random
from contextlib import nullcontext
from typing import Any, NamedTuple

from magnetite import code
from magnetite.code.dependencies import blocks
from tests.code.random_programs import E, few_steps, reordered, statement_lists

LISTS = ("xs", "ys", "zs")
OBJECTS = ("o", "q")
NUMBERS = ("a", "b")


class Thing:
    """An object with a number and a list; `step` changes both."""

    def __init__(self, n=0, r=None):
        self.n, self.r = n, [] if r is None else r

    def step(self, by=1):
        self.n += by
        self.r.append(self.n)

    def total(self):
        return self.n + sum(1 for _ in self.r)


class Box:
    """Keeps what it is given."""

    def __init__(self, first=None, *others, item=None):
        self.first, self.others, self.item = first, list(others), item


class Entered:
    """A context manager that hands out what it is given."""

    def __init__(self, item):
        self.item = item

    def __enter__(self):
        return self.item

    def __exit__(self, *error):
        return False


class Aliasing:
    """Generates programs; `lists` are the variables that hold lists of numbers."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.count = 0
        self.lists: list[str] = list(LISTS)
        self.nests: dict[str, str] = {}
        """Variables that hold containers of lists, and how to take an element out of each: `t[0]`, `t['k']`, …"""

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def generate(self) -> str:
        lines = self.block(self.rng.randint(4, 9), 0)
        names = [*LISTS, *OBJECTS, *NUMBERS]
        body = "\n".join("    " + line for line in [*lines, f"return {', '.join(names)}"])
        return f"def fn({', '.join(names)}):\n{body}"

    def block(self, size: int, depth: int) -> list[str]:
        return [line for _ in range(size) for line in self.statement(depth)]

    def some_list(self) -> str:
        """An expression for a list of numbers."""
        rng = self.rng
        if self.nests and rng.random() < 0.4:
            return self.nests[rng.choice(list(self.nests))]
        name = rng.choice(self.lists)
        return rng.choice(
            [name] * 6
            + [
                f"{rng.choice(OBJECTS)}.r",
                f"({name} or {rng.choice(self.lists)})",
                f"({name} if a < b else {rng.choice(self.lists)})",
            ]
        )

    def number(self) -> str:
        rng = self.rng
        return rng.choice(
            [
                str(rng.randrange(9)),
                *NUMBERS,
                f"len({self.some_list()})",
                f"sum({self.some_list()})",
                f"{rng.choice(OBJECTS)}.n",
                f"{rng.choice(OBJECTS)}.total()",
                f"len({self.some_list()}) * 2 + a",
                *(f"len(str({nest}))" for nest in list(self.nests)[:2]),
            ]
        )

    def statement(self, depth: int) -> list[str]:
        rng = self.rng
        chance = rng.random()
        if chance < 0.35:
            return self.put(depth)
        if chance < 0.65:
            return self.change()
        if chance < 0.75:
            return self.take()
        if chance < 0.8 and depth < 2:
            return self.compound(depth)
        return [f"{rng.choice(NUMBERS)} = {self.number()}"]

    def nest(self, name: str, element: str) -> None:
        self.nests[name] = element.format(name)

    def put(self, depth: int) -> list[str]:
        """Make a container of lists, or put one into another."""
        rng, name = self.rng, self.fresh("t")
        x, y, z = (rng.choice(self.lists) for _ in range(3))
        old = rng.choice(list(self.nests)) if self.nests else None
        obj = rng.choice(OBJECTS)
        makers: list[tuple[list[str], str]] = [
            ([f"{name} = [{x}, {y}]"], "{}[0]"),
            ([f"{name} = ({x}, {y}, 1)"], "{}[1]"),
            ([f"{name} = {{'k': {x}, 'm': {y}}}"], "{}['k']"),
            ([f"{name} = dict(k={x})"], "{}['k']"),
            ([f"{name} = [[{x}], [{y}]]"], "{}[1][0]"),
            ([f"{name} = {{'k': [{x}, ({y},)]}}"], "{}['k'][1][0]"),
            ([f"{name} = []", f"{name}.append({x})"], "{}[-1]"),
            ([f"{name} = []", f"{name} += [{x}, {y}]"], "{}[0]"),
            ([f"{name} = []", f"{name}.extend([{x}, {y}])"], "{}[0]"),
            ([f"{name} = []", f"{name}.insert(0, {x})"], "{}[0]"),
            ([f"{name} = {{}}", f"{name}['k'] = {x}"], "{}.get('k')"),
            ([f"{name} = {{}}", f"{name}.setdefault('k', {x})"], "{}.setdefault('k', [])"),
            ([f"{name} = {{}}", f"{name}.update(k={x})"], "{}['k']"),
            ([f"{name} = {{}}", f"{name}.update({{'k': {x}}})"], "{}['k']"),
            ([f"{name} = [u for u in ({x}, {y})]"], "{}[0]"),
            ([f"{name} = {{k: v for k, v in zip('km', [{x}, {y}])}}"], "{}['k']"),
            ([f"{name} = [{x}] + [{y}]"], "{}[1]"),
            ([f"{name} = [{x}] * 2"], "{}[1]"),
            ([f"{name} = list(({x}, {y}))"], "{}[0]"),
            ([f"{name} = list(zip([{x}], [{y}]))"], "{}[0][1]"),
            ([f"{name} = list(enumerate([{x}]))"], "{}[0][1]"),
            ([f"{name} = [*({x}, {y}), {z}]"], "{}[0]"),
            ([f"{name} = {{**{{'k': {x}}}}}"], "{}['k']"),
            ([f"{name} = sorted([{x}, {y}], key=len)"], "{}[0]"),
            ([f"{name} = tuple(reversed([{x}, {y}]))"], "{}[0]"),
            ([f"{name} = dict([('k', {x})])"], "{}['k']"),
            ([f"{name} = dict(zip('km', ({x}, {y})))"], "{}['m']"),
            ([f"{name} = {{'k': {x}}}.items()"], "list({})[0][1]"),
            ([f"{name} = {{'k': {x}}}.values()"], "list({})[0]"),
            ([f"{name} = list(filter(None, [{x}, [1]]))"], "{}[-1]"),
            ([f"{name} = list(map(lambda u: u, [{x}]))"], "{}[0]"),
            ([f"{name} = Thing(1, {x})"], "{}.r"),
            ([f"{name} = Thing(r={x})"], "{}.r"),
            ([f"{name} = Box({x}, {y}, item={z})"], "{}.item"),
            ([f"{name} = Box({x}, {y})"], "{}.others[0]"),
            ([f"{name} = Box()", f"{name}.item = {x}"], "{}.item"),
            ([f"{name} = Box()", f"setattr({name}, 'item', {x})"], "getattr({}, 'item')"),
            ([f"{name} = Box(item=Box(item={x}))"], "{}.item.item"),
            ([f"{name} = lambda: {x}"], "{}()"),
            ([f"{name} = lambda u={x}: u"], "{}()"),
            ([f"def {name}():", f"    return {x}"], "{}()"),
            ([f"def {name}(u={x}):", "    return u"], "{}()"),
            ([f"def {name}(u):", "    return u"], f"{{}}({x})"),
            ([f"def {name}(u):", "    return [u, 1]"], f"{{}}({x})[0]"),
            ([f"def {name}(u):", "    def inner():", "        return u", "    return inner"], f"{{}}({x})()"),
            ([f"def {name}(u=[]):", "    u.append(1)", "    return u"], "{}()"),
            ([f"{name} = [lambda: {x}]"], "{}[0]()"),
            ([f"{name} = list(u for u in ({x}, {y}))"], "{}[1]"),
            ([f"def {name}_(u):", "    yield u", f"{name} = list({name}_({x}))"], "{}[0]"),
            ([f"{name} = max([{x}, {y}], key=len), 1"], "{}[0]"),
            ([f"{name} = [next(iter([{x}]))]"], "{}[0]"),
            ([f"{name} = {{obj}}.r, 1".replace("{obj}", obj)], "{}[0]"),
            ([f"{name} = [{obj}]"], "{}[0].r"),
            ([f"{name} = {{1: {obj}}}"], "{}[1].r"),
            ([f"{name} = frozenset([{obj}])"], "list({})[0].r"),
            ([f"{name} = {{{obj}}}"], "[*{}][0].r"),
            ([f"{name} = sum([[{x}], [{y}]], [])"], "{}[1]"),
        ]  # fmt: skip
        if old is not None:
            makers += [
                ([f"{name} = [{old}]"], self.nests[old].replace(old, "{}[0]")),
                ([f"{name} = {old}"], self.nests[old].replace(old, "{}")),
                ([f"{name} = [{self.nests[old]}]"], "{}[0]"),
            ]
            if self.nests[old].startswith(f"{old}["):
                makers += [
                    (
                        [f"{name} = {old}.copy() if hasattr({old}, 'copy') else {old}"],
                        self.nests[old].replace(old, "{}"),
                    ),
                    ([f"{name} = type({old})({old})"], self.nests[old].replace(old, "{}")),
                ]
        lines, element = rng.choice(makers)
        self.nest(name, element)
        return lines

    def take(self) -> list[str]:
        """Bind what is taken out of a container."""
        rng, name = self.rng, self.fresh("r")
        x, y, z = (self.some_list() for _ in range(3))
        way = rng.choice(
            [
                f"{name} = {x}",
                f"{name}, {name}_ = {x}, {y}",
                f"{name}, *{name}_ = [{x}, {y}]",
                f"*{name}_, {name} = ({x}, {y})",
                f"({name}, _), u = ({x}, 1), 2",
                f"{name} = {name}_ = []",
                f"{name} = {name}_ = {x}",
                f"{name} = [{x}, {y}][0]",
                f"{name} = ({x} if a < b else {y})",
                f"{name} = ({x} and {y}) or {z}",
                f"{name} = [{x}, {y}].pop()",
                f"{name} = [{x}, {y}][:1][0]",
                f"({name} := {x}).append(1)",
                f"{rng.choice(LISTS)}, {rng.choice(LISTS)} = {rng.choice(LISTS)}, {rng.choice(LISTS)}",
                f"{rng.choice(LISTS)} = {x}",
                f"{rng.choice(OBJECTS)}.r = {x}",
                f"{rng.choice(OBJECTS)} = {rng.choice(OBJECTS)}",
                f"{name} = {{'k': {x}}}.pop('k')",
                f"{name} = {{'k': {x}}}.get('m', {y})",
                f"{name} = {x}[:]",
                f"{name} = {x}.copy()",
                f"{name} = {x} + {y}",
                f"{name} = next(iter([{x}]))",
                f"{name} = max({x}, {y}, key=len)",
            ]
        )
        if way.startswith((f"{name} ", f"{name},", f"({name} ", f"({name},", "*")):
            self.lists.append(name)
        return [way]

    def change(self) -> list[str]:
        """Change a list or an object, by one of its names."""
        rng, x, y, n = self.rng, self.some_list(), self.some_list(), self.number()
        u = self.fresh("u")
        obj = rng.choice(OBJECTS)
        return rng.choice(
            [
                [f"{x}.append({n})"],
                [f"{x}.append({n})"],
                [f"{x}.append({n})"],
                [f"{x}.insert(0, {n})"],
                [f"({u} := {x}).append({n})"],
                [f"({x} if a < b else {y}).append({n})"],
                [f"({x} or {y}).append({n})"],
                [f"[{x}, {y}][a % 2].append({n})"],
                [f"{{'k': {x}}}['k'].append({n})"],
                [f"list([{x}])[0].append({n})"],
                [f"{x}.sort()"],
                [f"{x}.reverse()"],
                [f"{x}.extend([{n}, 2])"],
                [f"{u} = {x}", f"{u} += [{n}]"],
                [f"{u} = {x}", f"{u}.append({n})"],
                [f"del {x}[:1]"],
                [f"{x}[:0] = [{n}]"],
                [f"{x}.clear()"],
                [f"b = {x}.pop() if {x} else b"],
                [f"{obj}.step({n})"],
                [f"{obj}.n = {n}"],
                [f"{obj}.n += {n}"],
                [f"{obj}.r.append({n})"],
                [f"for {u} in [{x}, {y}]:", f"    {u}.append({n})"],
                [f"for {u}, {u}_ in zip([{x}], [{y}]):", f"    {u}.append(len({u}_))"],
                [f"for {u}_, {u} in enumerate([{x}, {y}]):", f"    {u}.append({u}_)"],
                [f"for {u} in sorted([{x}, {y}], key=len):", f"    {u}.append({n})"],
                [f"for {u}_, {u} in {{1: {x}, 2: {y}}}.items():", f"    {u}.append({n})"],
                [f"for {u} in {{1: {x}, 2: {y}}}.values():", f"    {u}.append({n})"],
                [f"for {u} in reversed([{x}, {y}]):", f"    {u}.append({n})"],
                [f"for {u} in ({u} for {u} in [{x}]):", f"    {u}.append({n})"],
                [f"for {u} in [{obj}, {rng.choice(OBJECTS)}]:", f"    {u}.n += 1"],
                [f"{u} = [{u}.append({n}) for {u} in [{x}, {y}]]"],
                [f"with Entered({x}) as {u}:", f"    {u}.append({n})"],
                [f"with nullcontext({x}) as {u}:", f"    {u}.append({n})"],
                [f"match [{x}, {y}]:", f"    case [{u}, *_]:", f"        {u}.append({n})"],
                [f"match {{'k': {x}}}:", f"    case {{'k': {u}}}:", f"        {u}.append({n})"],
                [f"match {obj}:", f"    case Thing(r={u}):", f"        {u}.append({n})"],
                [f"def {u}():", f"    {x}.append({n})", f"{u}()"],
                [f"def {u}(v):", f"    v.append({n})", f"{u}({x})"],
                [f"def {u}(v={x}):", f"    v.append({n})", f"{u}()"],
                [f"{u} = lambda: {x}.append(1)", f"{u}()"],
                [f"{u} = [lambda: {x}.append(1)]", f"{u}[0]()"],
                [f"{u} = {x}.append", f"{u}({n})"],
                ["try:", f"    {x}.append({n})", f"    raise E({x})", "except E as e:", "    e.args[0].append(1)"],
            ]
        )  # fmt: skip

    def compound(self, depth: int) -> list[str]:
        rng = self.rng
        known = dict(self.nests), list(self.lists)
        body = ["    " + line for line in self.block(rng.randint(1, 3), depth + 1)]
        self.nests, self.lists = known  # what is bound in a branch may be unbound after it
        head = rng.choice([f"if {self.number()} % 2:", "for _ in range(2):", f"if a < {self.number()}:"])
        return [head, *body]


def swapped(source: str, rng: random.Random, swaps: int) -> str:
    """The program after random exchanges of statements of one list, legal or not."""
    tree = ast.parse(source)
    lists = statement_lists(tree)
    for _ in range(swaps):
        chosen = rng.choice(lists)
        place = rng.randrange(len(chosen) - 1)
        other = rng.randrange(place + 1, min(place + 4, len(chosen)))
        chosen.insert(place, chosen.pop(other))
    return ast.unparse(tree)


def outcome(source: str, seed: int) -> str | None:
    """What a program returns and does to its arguments, run from a random state; None if it raises or takes too long,
    since it does not matter which of two independent statements raises."""
    rng = random.Random(seed)
    names: dict[str, Any] = {"E": E, "Thing": Thing, "Box": Box, "Entered": Entered, "nullcontext": nullcontext}
    exec(compile(source, "<program>", "exec"), names)
    lists = [[rng.randrange(9) for _ in range(rng.randint(1, 3))] for _ in LISTS]
    objects = [Thing(rng.randrange(9), [rng.randrange(9)]) for _ in OBJECTS]
    try:
        with few_steps(3000):
            result = names["fn"](*lists, *objects, *(rng.randrange(9) for _ in NUMBERS))
    except Exception:
        return None
    shown = [(value.n, value.r) if isinstance(value, Thing) else value for value in (*result, *lists, *objects)]
    return repr(shown)


def outcomes(source: str) -> list[str | None] | None:
    """The outcomes of some runs; None for an invalid program."""
    try:
        return [outcome(source, seed) for seed in range(3)]
    except SyntaxError:
        return None


class Counts(NamedTuple):
    """Texts of a program by whether they have its hash, and whether this is wrong."""

    equal: int
    different: int
    contradictions: list[str]
    """Texts that have the hash of the program, but do something else."""
    broken: list[str]
    """Legal orders that do not have the hash of the program."""


def compare(seed: int) -> Counts:
    """A random program against random exchanges of its statements, its legal orders and its reorderings."""
    rng = random.Random(seed)
    source = ast.unparse(ast.parse(Aliasing(rng).generate()))
    expected, name = outcomes(source), code.build(source).hash
    legal = [reordered(source, rng, blocks) for _ in range(3)] + list(code.reorderings(source).sample(3, seed))
    texts = {swapped(source, rng, rng.randint(1, 2)): False for _ in range(6)} | dict.fromkeys(legal, True)
    texts.pop(source, None)
    equal = different = 0
    contradictions, broken = [], []
    for text, is_legal in texts.items():
        if code.build(text).hash != name:
            different += 1
            broken += [text] if is_legal else []
            continue
        equal += 1
        found = outcomes(text)
        pairs = zip(expected, found, strict=True) if expected and found else ()
        if any(one != other for one, other in pairs if one is not None and other is not None):
            contradictions.append(f"{source}\n\n{text}")
    return Counts(equal, different, contradictions, broken)
