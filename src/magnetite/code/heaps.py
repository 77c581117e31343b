"""Heaps: what can be reached through variables, and which variables may reach the same.

Every variable has a cell for what lies behind it, and every cell has parts, `x.attr` and `x[...]`, as far as the
function names them. `r = xs` makes one cell of both variables' cells, `r = x.a` one of `r`'s cell and a part of `x`'s,
and so on for all their parts (Steensgaard's unification): flow-insensitively, and in almost linear time.
"""

from collections.abc import Iterable


class Cell:
    """A piece of the heap: its parts, the writes to it as a mask, and whether several names lead to it."""

    __slots__ = ("below", "forwarded", "mask", "parts", "shared")

    def __init__(self) -> None:
        self.forwarded: Cell | None = None
        self.parts: dict[str, Cell] = {}
        self.mask = 0
        self.shared = False
        self.below: tuple[Cell, ...] = ()

    def part(self, selector: str | None) -> "Cell":
        """The cell itself, or the one behind an attribute or a subscript."""
        cell = find(self)
        if selector is None:
            return cell
        found = cell.parts.get(selector)
        if found is None:
            found = cell.parts[selector] = Cell()
        return find(found)

    def reach(self) -> tuple["Cell", ...]:
        """The cell and all its parts, those of parts too; to be asked when all aliases and parts are known."""
        cell = find(self)
        if not cell.below:
            seen = {cell: None}
            pending = [cell]
            while pending:
                for part in pending.pop().parts.values():
                    part = find(part)
                    if part not in seen:
                        seen[part] = None
                        pending.append(part)
            cell.below = tuple(seen)
        return cell.below


def find(cell: Cell) -> Cell:
    """The cell that stands for all those it was made one with; the way to it gets shorter."""
    leader = cell
    while leader.forwarded is not None:
        leader = leader.forwarded
    while cell.forwarded is not None:
        cell.forwarded, cell = leader, cell.forwarded
    return leader


def unify(pairs: Iterable[tuple[Cell, Cell]]) -> None:
    """Make one cell of each pair, and of the parts of the same name."""
    pending = list(pairs)
    while pending:
        one, other = map(find, pending.pop())
        if one is other:
            continue
        if len(one.parts) > len(other.parts):
            one, other = other, one
        one.forwarded = other
        other.shared = True
        for selector, part in one.parts.items():
            twin = other.parts.get(selector)
            if twin is None:
                other.parts[selector] = part
            else:
                pending.append((part, twin))
