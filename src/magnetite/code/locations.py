"""From names to locations: bindings, alias classes, and a bit for every write.

Every write of a variable or of a cell of the heap is a bit; a location is the mask of all its writes.
"""

from collections.abc import Iterator
from typing import Any

from magnetite.code.draft import Draft
from magnetite.code.effects import (
    APPLY,
    AUGMENT,
    BARRIER,
    HEAP_READ,
    HEAP_WRITE,
    MUTATE,
    READ,
    USE,
    WRITE,
    Effect,
)
from magnetite.code.heaps import Cell, find, unify
from magnetite.code.scopes import Variable, resolve

Step = tuple[int, int, int, int]
"""At a node the bits `read` are accessed, then `kill` is cleared and `gen` is set: (node, read, kill, gen)."""


class Locations:
    """The locations of a draft, all writes numbered."""

    def __init__(self, draft: Draft):
        self.draft = draft
        self.writers: list[int] = []
        """The node of every bit."""
        self.units: list[int] = []
        """The unit that the write of every bit stands in."""
        self.owned: dict[int, int] = {}
        """For every unit, the writes to its own variables."""
        self.bits: dict[tuple[int, Any], int] = {}
        effects = [effect for effect in draft.log if effect[1] is not None]
        self._bind(effects)
        self.summaries = self._summarise(effects)
        self._name_parts(effects)
        self._number_writes()

    def _bind(self, effects: list[Effect]) -> None:
        """Lead every variable to its binding, and join aliases into heaps."""
        variables: set[Any] = {effect[1] for effect in effects}
        for variable in variables:
            variable.root = resolve(variable)
        for variable in variables:
            if variable.root.heap is None:
                variable.root.heap = Cell()
        sides = (tuple(_cell(*side) for side in copy) for copy in self.draft.copies)
        unify(sides)  # pyright: ignore

    def _summarise(self, effects: list[Effect]) -> dict[int, list[Effect]]:
        """What calling each unit does to variables of the units around it."""
        draft = self.draft
        if draft.units == 1 and all(effect[1].root is not draft.itself for effect in effects):  # pyright: ignore
            return {}
        direct: list[dict[Effect, None]] = [{} for _ in range(draft.units)]
        calls: list[set[int]] = [set() for _ in range(draft.units)]
        for block, (begin, end) in enumerate(draft.stretches()):
            unit = draft.unit_of[block]
            for kind, variable, selector, _ in draft.log[begin:end]:
                if variable is None:
                    continue
                if variable.root.scope.unit != unit:
                    direct[unit][(kind, variable.root, selector, 0)] = None
                if kind in (APPLY, USE):
                    calls[unit].update(variable.root.functions)
        return {unit: _closure(unit, direct, calls) for unit in range(draft.units)}

    def _name_parts(self, effects: list[Effect]) -> None:
        for kind, variable, selector, _ in effects:
            if selector is not None and kind in (HEAP_READ, HEAP_WRITE, MUTATE):
                variable.root.heap.part(selector)  # pyright: ignore

    def _number_writes(self) -> None:
        draft = self.draft
        for block, (begin, end) in enumerate(draft.stretches()):
            unit = draft.unit_of[block]
            for effect in draft.log[begin:end]:
                kind, variable, selector, node = effect
                if kind == WRITE:
                    root = variable.root  # pyright: ignore
                    root.writes += 1
                    root.mask |= self._bit(node, root, root, unit)
                elif kind in (HEAP_WRITE, MUTATE, AUGMENT):
                    self._number_heap_write(effect, unit)
                elif self.summaries and kind in (APPLY, USE):
                    for applied in self.applied(variable, node, unit):
                        if applied[0] == WRITE:
                            root = applied[1]
                            root.mask |= self._bit(node, root, root, unit)
                        else:
                            self._number_heap_write(applied, unit)

    def _number_heap_write(self, effect: Effect, unit: int) -> None:
        kind, variable, selector, node = effect
        root: Any = variable.root  # pyright: ignore
        if _writes_heap(kind, root):
            for cell in root.heap.part(selector).reach():
                bit = self._bit(node, cell, root, unit)
                cell.mask |= bit
                root.through[cell] = root.through.get(cell, 0) | bit

    def _bit(self, node: int, place: Any, owner: Variable, unit: int) -> int:
        key = (node, place)
        bit = self.bits.get(key)
        if bit is None:
            bit = self.bits[key] = 1 << len(self.writers)
            self.writers.append(node)
            self.units.append(unit)
            own = owner.scope.unit
            self.owned[own] = self.owned.get(own, 0) | bit
        return bit

    def places(self) -> list[int]:
        """For every bit, the number of the location that it writes."""
        numbers: dict[Any, int] = {}
        return [numbers.setdefault(place, len(numbers)) for _, place in self.bits]

    def applied(self, variable: Any, node: int, unit: int) -> Iterator[Effect]:
        """The effects that using a function has here, on variables that can be seen from here."""
        around = self.draft.units_around(unit)
        for function in variable.root.functions:
            for kind, touched, selector, _ in self.summaries[function]:
                if touched.scope.unit in around:  # pyright: ignore
                    yield (kind, touched, selector, node)

    def steps(self, effect: Effect, unit: int) -> list[Step]:
        """An effect in bits."""
        kind, variable, selector, node = effect
        if kind == BARRIER:
            return []
        root: Any = variable.root  # pyright: ignore
        if kind == READ:
            found = [(node, root.mask, 0, 0)]
        elif kind == USE:
            found = [(node, root.mask | _mask(root, None), 0, 0)]
        elif kind == WRITE:
            found = [(node, root.mask, root.mask | _owned(root), self.bits[(node, root)])]
        elif kind == HEAP_READ or (kind != APPLY and not _writes_heap(kind, root)):
            found = [(node, _mask(root, selector), 0, 0)] if kind != AUGMENT else []
        elif kind != APPLY:
            found = [self._heap_write(root, selector, node)]
        else:
            found = []
        if self.summaries and kind in (APPLY, USE) and root.functions:
            for applied in self.applied(variable, node, unit):
                found += [(at, read, 0, gen) for at, read, _, gen in self._weakly(applied, unit)]
        return found

    def _weakly(self, effect: Effect, unit: int) -> list[Step]:
        """The steps of an effect of a function that may or may not be called."""
        return [] if effect[0] == APPLY else self.steps(effect, unit) if effect[0] != USE else [_used(effect)]

    def _heap_write(self, root: Any, selector: str | None, node: int) -> Step:
        """A write to a heap replaces what stands there if it is sure to hit the same object: the only variable of its
        class, or one that is bound once."""
        read = kill = gen = 0
        alone = not find(root.heap).shared
        for cell in root.heap.part(selector).reach():
            read |= cell.mask
            gen |= self.bits[(node, cell)]
            if alone and not cell.shared:
                kill |= cell.mask
            elif root.writes <= 1:
                kill |= root.through[cell]
        return (node, read, kill, gen)


def _cell(variable: Variable, selector: str | None) -> Cell:
    root: Any = resolve(variable)
    if root.heap is None:
        root.heap = Cell()
    return root.heap.part(selector)


def _mask(root: Any, selector: str | None) -> int:
    """All writes to what lies behind a variable, or to a part of it."""
    mask = 0
    for cell in root.heap.part(selector).reach():
        mask |= cell.mask
    return mask


def _owned(root: Any) -> int:
    """The writes to what only this variable leads to: gone when it is bound anew."""
    mask = 0
    if not find(root.heap).shared:
        for cell in root.heap.reach():
            if not cell.shared:
                mask |= cell.mask
    return mask


def _used(effect: Effect) -> Step:
    root: Any = effect[1]
    return (effect[3], root.mask | _mask(root, None), 0, 0)


def _writes_heap(kind: int, root: Any) -> bool:
    """Whether an effect writes its heap: methods of modules do not, `x += …` only where `x` has aliases."""
    if kind == MUTATE:
        return root.is_local
    return kind == HEAP_WRITE or (kind == AUGMENT and find(root.heap).shared)


def _closure(unit: int, direct: list[dict[Effect, None]], calls: list[set[int]]) -> list[Effect]:
    """The effects of a unit and of all units that it may call."""
    found: dict[Effect, None] = {}
    seen, pending = {unit}, [unit]
    while pending:
        current = pending.pop()
        found |= direct[current]
        new = calls[current] - seen
        seen |= new
        pending += new
    return list(found)
