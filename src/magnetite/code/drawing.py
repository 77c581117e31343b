"""Pictures of code graphs as SVG: labelled boxes, edges coloured by type, a legend."""

from collections.abc import Sequence
from html import escape
from itertools import accumulate, pairwise

from magnetite.code.graph import CodeGraph, Edge
from magnetite.code.layout import LAYOUTS, Point

COLOURS = {
    "FIELD": "#9aa0a6",
    "CFG_NEXT": "#1a73e8",
    "LAST_WRITE": "#188038",
    "CALCULATED_FROM": "#e37400",
    "CALLS": "#a142f4",
    "NEXT_TOKEN": "#d93025",
}
"""The colour of each edge type that is drawn; inverse edges are omitted."""

LETTER, LINE, PADDING, MARGIN = 6.8, 15.0, 8.0, 20.0
"""Width of a letter, height of a line of text, space around text, space around a graph."""
LONGEST_LABEL = 28
EDGE_NAMES_UP_TO = 150
"""Number of nodes up to which edge names are written; in larger graphs they are shown on hover only."""


def to_svg(graphs: CodeGraph | Sequence[CodeGraph], layout: str = "auto") -> str:
    """One graph, or several side by side, as an SVG image with titles and a legend.

    Args:
        graphs: One or more graphs.
        layout: "auto" for graphviz where it is installed, "layers" for the built-in layout.
    """
    graphs = [graphs] if isinstance(graphs, CodeGraph) else graphs
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    panels = [_panel(graph, layout) for graph in graphs]
    lefts = list(accumulate((width + 2 * MARGIN for _, width, _ in panels), initial=MARGIN))
    top = MARGIN + 2 * LINE
    legend, legend_width = _legend([kind for kind in COLOURS if any(e.type == kind for g in graphs for e in g.edges)])
    shapes = [_moved(MARGIN, MARGIN, legend)]
    shapes += [_moved(left, top, body) for left, (body, _, _) in zip(lefts, panels, strict=False)]
    width = max(lefts[-1] - MARGIN, legend_width + 2 * MARGIN)
    return _document(width, top + max(height for _, _, height in panels) + MARGIN, shapes)


def _panel(graph: CodeGraph, layout: str) -> tuple[str, float, float]:
    """The SVG elements of one graph, their width and height."""
    labels = [
        (kind,) if attribute is None else (kind, shown(attribute))
        for kind, attribute in zip(graph.types, graph.attributes, strict=True)
    ]
    sizes = [(LETTER * max(map(len, lines)) + 2 * PADDING, LINE * len(lines) + PADDING) for lines in labels]
    edges = [edge for edge in graph.edges if edge.type in COLOURS]
    placed = LAYOUTS[layout]([(edge.source, edge.target) for edge in edges], sizes)
    named = len(labels) <= EDGE_NAMES_UP_TO
    shapes = [_arrow(edge, sizes, route, named) for edge, route in zip(edges, placed.edges, strict=True)]
    shapes += [
        _box(node, lines, centre, size, graph.lines[node])
        for node, (lines, centre, size) in enumerate(zip(labels, placed.nodes, sizes, strict=True))
    ]
    title = f"{graph.kind}: {graph.name}"
    body = _text(0, LINE, title, 'font-weight="bold"') + _moved(0, 2 * LINE, "\n".join(shapes))
    return body, max(placed.width, LETTER * len(title)), placed.height + 2 * LINE


def shown(text: str, longest: int = LONGEST_LABEL) -> str:
    """Text for a picture: unprintable characters are escaped, long text is truncated.

    Args:
        text: Any text.
        longest: Maximum number of characters.

    >>> shown("a\\nb"), shown(""), shown("x" * 40)
    ('a\\\\nb', "''", 'xxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    head = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[: longest + 1]) or "''"
    return head if len(head) <= longest else head[: longest - 1] + "…"


def _box(node: int, lines: Sequence[str], centre: Point, size: Point, line: int) -> str:
    (x, y), (width, height) = centre, size
    frame = (
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
        f'fill="{"#e8f0fe" if len(lines) > 1 else "#ffffff"}" stroke="#5f6368"/>'
    )
    first = y - LINE * (len(lines) - 1) / 2 + 4
    words = [
        _text(x, first + LINE * row, text, 'text-anchor="middle"' + (' font-weight="bold"' if row else ""))
        for row, text in enumerate(lines)
    ]
    return "".join([f"<g><title>node {node}, line {line}</title>", frame, *words, "</g>"])


def _arrow(edge: Edge, sizes: Sequence[Point], route: Sequence[Point], named: bool) -> str:
    colour, name = COLOURS[edge.type], f"{edge.type} {edge.name}".strip()
    if edge.source == edge.target:
        (x, y), (width, height) = route[0], sizes[edge.source]
        right, reach = x + width / 2, x + width / 2 + 18
        curve = f"M{right:.1f},{y - height / 4:.1f} C{reach:.1f},{y - height:.1f} {reach:.1f},{y + height:.1f} "
        curve, beside = curve + f"{right:.1f},{y + height / 4:.1f}", (reach, y)
    else:
        shift = 3.0 * (list(COLOURS).index(edge.type) - 2)  # keep parallel edges apart
        points = [(x + shift, y) for x, y in route]
        points[0] = _border(route[0], route[1], sizes[edge.source], shift)
        points[-1] = _border(route[-1], route[-2], sizes[edge.target], shift)
        curve, beside = _curve(points), _near_end(points[-2], points[-1])
    text = _text(*beside, edge.name, f'font-size="8" fill="{colour}" text-anchor="middle"') if named else ""
    path = f'<path d="{curve}" fill="none" stroke="{colour}" marker-end="url(#{edge.type})"/>'
    return f"<g><title>{escape(name)}</title>{path}{text}</g>"


def _border(centre: Point, towards: Point, size: Point, shift: float) -> Point:
    """Where the line from the centre of a box towards a point leaves the box, shifted along that side.

    >>> _border((0, 0), (0, 50), (20, 10), shift=3), _border((0, 0), (50, 0), (20, 10), shift=9)
    ((3.0, 5.0), (10.0, 5.0))
    """
    (x, y), (dx, dy) = centre, (towards[0] - centre[0], towards[1] - centre[1])
    across, up = size[0] / 2, size[1] / 2
    if abs(dx) * up > abs(dy) * across:  # through the left or right side
        part = across / abs(dx)
        return x + part * dx, y + max(-up, min(up, part * dy + shift))
    part = up / abs(dy) if dy else 0.0
    return x + max(-across, min(across, part * dx + shift)), y + part * dy


def _curve(points: Sequence[Point]) -> str:
    start = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    bends = [
        f"C{x0:.1f},{(y0 + y1) / 2:.1f} {x1:.1f},{(y0 + y1) / 2:.1f} {x1:.1f},{y1:.1f}"
        for (x0, y0), (x1, y1) in pairwise(points)
    ]
    return " ".join([start, *bends])


def _near_end(one: Point, two: Point) -> Point:
    """The point of the curve at 0.7, where edges from the same node have separated."""
    return one[0] + 0.784 * (two[0] - one[0]), one[1] + 0.658 * (two[1] - one[1])


def _legend(kinds: Sequence[str]) -> tuple[str, float]:
    """A coloured line and the name of each edge type, and the width of the legend."""
    lefts = list(accumulate((LETTER * len(kind) + 3 * MARGIN for kind in kinds), initial=0.0))
    shapes = [
        f'<path d="M{left:.0f},-4 h24" stroke="{COLOURS[kind]}" stroke-width="3"/>' + _text(left + 30, 0, kind)
        for left, kind in zip(lefts, kinds, strict=False)
    ]
    return "".join(shapes), lefts[-1]


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _moved(x: float, y: float, body: str) -> str:
    return f'<g transform="translate({x:.1f},{y:.1f})">\n{body}\n</g>'


def _document(width: float, height: float, shapes: Sequence[str]) -> str:
    heads = "".join(
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,1 L8,4 L0,7 z" fill="{colour}"/></marker>'
        for kind, colour in COLOURS.items()
    )
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="11">\n'
        f'<defs>{heads}</defs>\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )
