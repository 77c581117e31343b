"""Heaps: what can be reached through variables, and which variables may reach the same.

Every variable has a cell for the object behind it. A cell has slots, the references `x.attr` and `x[...]` that the
object holds as far as the function names them, and parts, the cells of the objects that they lead to. `r = xs` makes
one cell of both variables' cells, `r = x.a` and `x.a = r` one of `r`'s cell and a part of `x`'s, and so on for all
their parts (Steensgaard's unification): flow-insensitively, and in almost linear time.
"""

from collections.abc import Iterable


class Cell:
    """An object of the heap, or a slot of one: the writes to it as a mask, and whether several names lead to it."""

    __slots__ = ("below", "forwarded", "mask", "parts", "shared", "slots")

    def __init__(self) -> None:
        self.forwarded: Cell | None = None
        self.slots: dict[str, Cell] = {}
        self.parts: dict[str, Cell] = {}
        self.mask = 0
        self.shared = False
        self.below: tuple[tuple[Cell, bool], ...] = ()

    def part(self, selector: str | None) -> "Cell":
        """The object behind an attribute or a subscript; the cell itself for None."""
        cell = find(self)
        return cell if selector is None else _entry(cell.parts, selector)

    def slot(self, selector: str) -> "Cell":
        """The reference that an attribute or a subscript is."""
        return _entry(find(self).slots, selector)

    def reach(self) -> tuple[tuple["Cell", bool], ...]:
        """The cell, its slots and all that they lead to, each with whether others may lead there too; to be asked
        when all aliases, slots and parts are known."""
        first = find(self)
        if not first.below:
            seen, pending = {first: first.shared}, [first]
            while pending:
                cell = pending.pop()
                for slot in map(find, cell.slots.values()):
                    seen[slot] = slot.shared or cell.shared
                for part in map(find, cell.parts.values()):
                    if part not in seen:
                        seen[part] = part.shared
                        pending.append(part)
            first.below = tuple(seen.items())
        return first.below


def _entry(cells: dict[str, Cell], selector: str) -> Cell:
    found = cells.get(selector)
    if found is None:
        found = cells[selector] = Cell()
    return find(found)


def find(cell: Cell) -> Cell:
    """The cell that stands for all those it was made one with; the way to it gets shorter."""
    leader = cell
    while leader.forwarded is not None:
        leader = leader.forwarded
    while cell.forwarded is not None:
        cell.forwarded, cell = leader, cell.forwarded
    return leader


def unify(pairs: Iterable[tuple[Cell, Cell]]) -> None:
    """Make one cell of each pair, and of their slots and parts of the same name."""
    pending = list(pairs)
    while pending:
        one, other = map(find, pending.pop())
        if one is other:
            continue
        if len(one.parts) + len(one.slots) > len(other.parts) + len(other.slots):
            one, other = other, one
        one.forwarded = other
        other.shared = True
        for mine, theirs in ((one.slots, other.slots), (one.parts, other.parts)):
            for selector, cell in mine.items():
                twin = theirs.setdefault(selector, cell)
                if twin is not cell:
                    pending.append((cell, twin))
