"""Mutated Python sources: a graph for every function, or an error of one line; never a crash."""

import sysconfig
from pathlib import Path

import numpy as np

from magnetite import code
from tests.fuzz import refusing

CASES = 3_000
LONGEST = 4_000
"""Bytes of a source that are kept."""

FILES = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
TOKENS = (
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        ",",
        "=",
        ":=",
        "*",
        "**",
        "@",
        "->",
        ".",
        "...",
        "\n",
        "\n    ",
        "\n\t",
        "\\\n",
    ),
    *(
        "def f():",
        "class A:",
        "lambda:",
        "yield",
        "await",
        "async ",
        "for x in x:",
        "with x as y:",
        "match x:",
        "case _:",
    ),
    *(
        "try:",
        "except:",
        "finally:",
        "except*",
        "global x",
        "nonlocal x",
        "del x",
        "return",
        "import x",
        "from . import *",
    ),
    *(
        "x",
        "x[0]",
        "x.append(x)",
        "x += [x]",
        "(x := x)",
        "[x for x in x]",
        "f'{x!r:{x}}'",
        "'",
        '"""',
        "#",
        "0x",
        "1e999",
    ),
    *("\0", "\ufeff", "\udc80", "\x0c", "é", "𝔵", "type X = x", "def f[T](): pass"),
)
NESTS = (
    ("(", ")"),
    ("[", "]"),
    ("-", ""),
    ("not ", ""),
    ("x(", ")"),
    ("lambda: ", ""),
    ("x if x else ", "x"),
    ("x.", ""),
)
NESTS += (("x[", "]"), ("{x: ", "}"), ("x + ", ""), ("(x := ", ")"), ("[x for x in ", "]"), ("*", ""), ("await ", ""))


def case(random: np.random.Generator, folder: Path) -> None:
    text = _deep(random) if random.random() < 0.15 else _mutated(random)
    kind = "ast" if random.random() < 0.3 else "dataflow"
    path = folder / "source.py"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with refusing():
        for graph in code.build_all(path, kind=kind):
            assert len(graph.hash) == 32
    with refusing():
        code.build(text, kind=kind)
    with refusing():
        list(code.reorderings(text, limit=2))


def _mutated(random: np.random.Generator) -> str:
    """A piece of a module of the standard library with some bytes or tokens changed."""
    text = FILES[random.integers(len(FILES))].read_text("utf-8", "surrogateescape")
    starts = [0] + [k + 1 for k in range(len(text) - 4) if text.startswith("\ndef ", k)]
    begin = starts[random.integers(len(starts))]
    text = text[begin : begin + LONGEST]
    for _ in range(random.integers(1, 6)):
        place, length = int(random.integers(len(text) + 1)), int(random.integers(0, 12))
        token = TOKENS[random.integers(len(TOKENS))] if random.random() < 0.7 else chr(random.integers(256))
        match random.integers(4):
            case 0:
                text = text[:place] + token + text[place:]
            case 1:
                text = text[:place] + token + text[place + length :]
            case 2:
                text = text[:place] + text[place + length :]
            case _:
                other = int(random.integers(len(text) + 1))
                text = text[:place] + text[other : other + 8 * length] + text[place:]
    return text


def _deep(random: np.random.Generator) -> str:
    """A function with a deeply nested expression or block."""
    depth = int(10 ** random.uniform(1, 4))
    if random.random() < 0.3:
        heads = ["if x:", "for x in x:", "while x:", "with x:", "def f(x):", "class A:", "try:"]
        depth = min(depth, 300)
        lines = [" " * k + heads[random.integers(len(heads))] for k in range(depth)]
        return "def fn(x):\n" + "".join(f" {line}\n" for line in lines) + " " * (depth + 1) + "x.append(x)\n"
    chosen = [NESTS[random.integers(len(NESTS))] for _ in range(random.integers(1, 4))]
    nests = [chosen[k % len(chosen)] for k in range(depth)]
    expression = "".join(left for left, _ in nests) + "x" + "".join(right for _, right in reversed(nests))
    return f"def fn(x):\n    y = {expression}\n    y.append(x)\n    return y\n"
