"""Random small programs that stay within what the data-flow graph assumes, and a way to run them."""

import random

NAMES = ("a", "b", "c", "x", "y", "z")


def program(rng: random.Random) -> str:
    """A function `f(a, b, c)` of assignments, stores, loops, conditions, with, try and calls; it always ends."""
    start = ["x, y, z = 0, 1, 2", "xs, d, o = [3, 4], {0: 1, 1: 2}, Box()"]
    return "\n".join(
        ["def f(a, b, c):", *_indent([*start, *_block(rng, 3, 0), "return a, b, c, x, y, z, xs, d, vars(o)"])]
    )


def run(source: str, values: list[int]) -> object:
    """The function's result on these arguments, or the type of what it raised."""
    space: dict = {"Box": Box, "Pause": Pause}
    exec(compile(source, "<program>", "exec"), space)
    try:
        return space["f"](*values)
    except (ZeroDivisionError, KeyError, IndexError, AttributeError) as error:
        return type(error).__name__


class Box:
    """Something with two attributes."""

    def __init__(self) -> None:
        self.p, self.q = 5, 6


class Pause:
    """Something for `with`."""

    def __enter__(self) -> int:
        return 7

    def __exit__(self, *_: object) -> None:
        return None


def _block(rng: random.Random, most: int, depth: int) -> list[str]:
    return [line for _ in range(rng.randint(1, most)) for line in _statement(rng, depth)]


def _statement(rng: random.Random, depth: int) -> list[str]:
    simple = [_assign, _augment, _store_attribute, _store_item, _append, _load_attribute, _load_item, _length, _pop]
    compound = [_if, _for, _while, _with, _try, _nested]
    return rng.choice(simple if depth > 1 or rng.random() < 0.7 else compound)(rng, depth)


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _value(rng: random.Random, depth: int = 0) -> str:
    if depth > 1 or rng.random() < 0.4:
        return rng.choice([*NAMES, str(rng.randint(0, 4))])
    operator = rng.choice(["+", "-", "*", "&", "|", "^"])
    return f"({_value(rng, depth + 1)} {operator} {_value(rng, depth + 1)})"


def _test(rng: random.Random) -> str:
    return f"{_value(rng)} {rng.choice(['==', '!=', '<', '>='])} {_value(rng)}"


def _assign(rng: random.Random, _: int) -> list[str]:
    return [f"{rng.choice(NAMES)} = {_value(rng)}"]


def _augment(rng: random.Random, _: int) -> list[str]:
    return [f"{rng.choice(NAMES)} {rng.choice(['+=', '-=', '*='])} {rng.choice(NAMES)} % 5"]


def _store_attribute(rng: random.Random, _: int) -> list[str]:
    return [f"o.{rng.choice('pq')} = {_value(rng)}"]


def _store_item(rng: random.Random, _: int) -> list[str]:
    return [f"d[{_value(rng)} & 1] = {_value(rng)}"]


def _append(rng: random.Random, _: int) -> list[str]:
    return [f"xs.append({_value(rng)})"]


def _load_attribute(rng: random.Random, _: int) -> list[str]:
    return [f"{rng.choice(NAMES)} = o.{rng.choice('pq')} {rng.choice('+*-')} {_value(rng)}"]


def _load_item(rng: random.Random, _: int) -> list[str]:
    return [f"{rng.choice(NAMES)} = d[{_value(rng)} & 1]"]


def _length(rng: random.Random, _: int) -> list[str]:
    return [f"{rng.choice(NAMES)} = {rng.choice(['len', 'max'])}(xs) {rng.choice('+*-')} {rng.choice(NAMES)}"]


def _pop(rng: random.Random, _: int) -> list[str]:
    return ["xs.append(0)", f"{rng.choice(NAMES)} = xs.pop() {rng.choice('+*-')} {_value(rng)}"]


def _if(rng: random.Random, depth: int) -> list[str]:
    lines = [f"if {_test(rng)}:", *_indent(_block(rng, 3, depth + 1))]
    return lines if rng.random() < 0.5 else [*lines, "else:", *_indent(_block(rng, 3, depth + 1))]


def _for(rng: random.Random, depth: int) -> list[str]:
    stop = rng.choice([[], [f"if {_test(rng)}:", "    break"], [f"if {_test(rng)}:", "    continue"]])
    return [f"for {rng.choice(NAMES)} in range(3):", *_indent([*_block(rng, 3, depth + 1), *stop, *_block(rng, 2, 2)])]


def _while(rng: random.Random, depth: int) -> list[str]:
    return ["n = 0", "while n < 3:", *_indent(["n += 1", *_block(rng, 3, depth + 1)])]


def _with(rng: random.Random, depth: int) -> list[str]:
    return [f"with Pause() as {rng.choice(NAMES)}:", *_indent(_block(rng, 3, depth + 1))]


def _try(rng: random.Random, depth: int) -> list[str]:
    risky = f"{rng.choice(NAMES)} = 7 // {rng.choice(NAMES)}"
    body = [*_block(rng, 2, depth + 1), risky, *_block(rng, 1, depth + 1)]
    return ["try:", *_indent(body), "except ZeroDivisionError:", *_indent(_block(rng, 2, depth + 1))]


def _nested(rng: random.Random, _: int) -> list[str]:
    name = rng.choice(NAMES)
    lines = ["def g(u):", f"    nonlocal {name}", f"    {name} = u + {rng.choice(NAMES)}", "    return u * 2"]
    return [*lines, f"{rng.choice(NAMES)} = g({_value(rng)})"]
