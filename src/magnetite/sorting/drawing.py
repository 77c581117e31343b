"""Pictures of sorting networks: wires from left to right, comparators as vertical lines between two dots."""

from collections.abc import Sequence

Comparator = tuple[int, int]
WIRE_GAP = 24
COLUMN_GAP = 20


def columns(layers: Sequence[Sequence[Comparator]]) -> list[list[Comparator]]:
    """Split each layer into columns in which no two comparators overlap.

    Args:
        layers: The comparators of each parallel step.

    >>> columns([[(0, 2), (1, 3)], [(0, 1), (2, 3)]])
    [[(0, 2)], [(1, 3)], [(0, 1), (2, 3)]]
    """
    result: list[list[Comparator]] = []
    for layer in layers:
        cut: list[list[Comparator]] = []
        for pair in layer:
            low, high = min(pair), max(pair)
            free = (column for column in cut if all(high < min(other) or max(other) < low for other in column))
            column = next(free, None)
            if column is None:
                cut.append([pair])
            else:
                column.append(pair)
        result += cut
    return result


def ascii_art(length: int, layers: Sequence[Sequence[Comparator]]) -> str:
    """The network in text characters; an arrow head marks the wire of the larger value if that is the upper one.

    Args:
        length: Number of wires.
        layers: The comparators of each parallel step.

    >>> print(ascii_art(3, [[(0, 2)], [(0, 1)], [(1, 2)]]))
    0 ──●──●─────
        │  │
    1 ──┼──●──●──
        │     │
    2 ──●─────●──
    """
    drawn = columns(layers)
    margin = len(str(length - 1))
    lines = []
    for wire in range(length):
        marks = "──".join(_on_wire(wire, column) for column in drawn)
        lines.append(f"{wire:>{margin}} ──{marks}──")
        if wire < length - 1:
            crossed = (any(min(pair) <= wire < max(pair) for pair in column) for column in drawn)
            gaps = "  ".join("│" if crosses else " " for crosses in crossed)
            lines.append(f"{'':>{margin}}   {gaps}".rstrip())
    return "\n".join(lines)


def svg(length: int, layers: Sequence[Sequence[Comparator]]) -> str:
    """The network as an SVG image.

    Args:
        length: Number of wires.
        layers: The comparators of each parallel step.

    >>> svg(2, [[(0, 1)]]).count("<circle")
    2
    """
    drawn = columns(layers)
    width, height = COLUMN_GAP * (len(drawn) + 1), WIRE_GAP * (length + 1)
    shapes = [_line(0, WIRE_GAP * (wire + 1), width, WIRE_GAP * (wire + 1)) for wire in range(length)]
    for number, column in enumerate(drawn):
        x = COLUMN_GAP * (number + 1)
        for pair in column:
            low, high = (WIRE_GAP * (wire + 1) for wire in pair)
            shapes += [_line(x, low, x, high), _dot(x, low), _dot(x, high)]
            if high < low:
                shapes.append(f'<path d="M{x - 5},{high + 10} L{x},{high + 4} L{x + 5},{high + 10}" fill="none"/>')
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" stroke="black" stroke-width="1.5">\n{body}\n</svg>\n'
    )


def _on_wire(wire: int, column: Sequence[Comparator]) -> str:
    for low, high in column:
        if wire == high and high < low:
            return "▲"
        if wire in (low, high):
            return "●"
        if min(low, high) < wire < max(low, high):
            return "┼"
    return "─"


def _line(x1: int, y1: int, x2: int, y2: int) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _dot(x: int, y: int) -> str:
    return f'<circle cx="{x}" cy="{y}" r="3"/>'
