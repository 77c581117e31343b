"""The tokens of a function, `kind="tokens"`: what a model without a graph reads, as a path of one node per token.

The text is written anew from the syntax tree, with the function's own name masked and without docstrings, so it has no
comments and one formatting. Identifiers and the words in strings are split as names are (`parseHTTP` into `parse`,
`http`); numbers, operators, line ends and changes of the indentation are tokens too. A sequence ends after `LONGEST`
tokens.
"""

import ast
import copy
import re
from collections.abc import Collection, Iterator
from itertools import islice, pairwise

from magnetite.code.ast_graph import has_docstring
from magnetite.code.corpus.words import words_of
from magnetite.code.graph import MASK, CodeGraph, Edge
from magnetite.code.source import Definition, recursion_guard

LONGEST = 512
"""Number of tokens after which a sequence ends."""

LINE_END, INDENT, DEDENT = "<line>", "<indent>", "<dedent>"

TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\*\*=?|//=?|>>=?|<<=?|->|:=|\.\.\.|[-+*/%&|^@=!<>]=|[^\w\s]")
"""An identifier or word, a number, an operator, or any other character."""


def token_graph(
    function: Definition,
    name: str | None = None,
    masked: Collection[ast.AST] = (),
    keep_docstrings: bool = False,
    longest: int = LONGEST,
) -> CodeGraph:
    """The tokens of a function as a path: attributes are the texts, depths count the words within one identifier.

    Args:
        function: The definition.
        name: Name of the graph; the function's name by default.
        masked: Syntax nodes whose name is replaced by `MASK`.
        keep_docstrings: Whether docstrings are read.
        longest: Number of tokens after which the sequence ends.

    >>> from magnetite import code
    >>> graph = code.build("def f(maxValue):\\n    return maxValue + 1", kind="tokens")
    >>> graph.attributes[:6], graph.depths[:6]
    (('def', '_mask_', '(', 'max', 'value', ')'), (0, 0, 0, 0, 1, 0))
    """
    found = list(islice(_split(tokens(function, masked, keep_docstrings)), longest))
    return CodeGraph(
        kind="tokens",
        name=name or function.name,
        types=tuple(
            "Name" if text[0].isidentifier() else "Num" if text[0].isdigit() else "unknown" for text, _ in found
        ),
        attributes=tuple(text for text, _ in found),
        depths=tuple(depth for _, depth in found),
        lines=(0,) * len(found),
        edges=tuple(Edge(first, second, "NEXT_TOKEN") for first, second in pairwise(range(len(found)))),
    )


def tokens(function: Definition, masked: Collection[ast.AST] = (), keep_docstrings: bool = False) -> Iterator[str]:
    """The tokens of a function one by one, with whole identifiers.

    Args:
        function: The definition.
        masked: Syntax nodes whose name is replaced by `MASK`.
        keep_docstrings: Whether docstrings are read.

    >>> tree = ast.parse("def f(a): return a.b").body[0]
    >>> " ".join(tokens(tree, [tree]))
    'def _mask_ ( a ) : <line> <indent> return a . b <line> <dedent>'
    """
    with recursion_guard():
        text = ast.unparse(_hidden(function, masked, keep_docstrings))
    level = 0
    for line in text.splitlines():
        found = TOKEN.findall(line)
        if not found:
            continue
        before, level = level, (len(line) - len(line.lstrip(" "))) // 4
        yield from [INDENT if level > before else DEDENT] * abs(level - before)
        yield from found
        yield LINE_END
    yield from [DEDENT] * level


def _split(found: Iterator[str]) -> Iterator[tuple[str, int]]:
    """The words of each token, with their position in it."""
    for token in found:
        words = words_of(token) if token != MASK and token[0].isidentifier() else []
        yield from zip(words or [token], range(len(words) or 1), strict=True)


def _hidden(function: Definition, masked: Collection[ast.AST], keep_docstrings: bool) -> Definition:
    """A copy of the definition with masked names, without docstrings."""
    copies: dict[int, ast.AST] = {}
    found = copy.deepcopy(function, copies)
    for node in masked:
        twin = copies[id(node)]
        setattr(twin, next(field for field in ("name", "attr", "id") if hasattr(twin, field)), MASK)
    if not keep_docstrings:
        for node in ast.walk(found):
            if has_docstring(node):
                node.body = node.body[1:] or [ast.Pass()]  # pyright: ignore[reportAttributeAccessIssue]
    return found
