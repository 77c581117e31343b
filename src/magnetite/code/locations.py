"""From names to locations: bindings, aliases, and a bit for every write.

Every write of a variable or of a cell of the heap is a bit; a location is the mask of all its writes. Variables that
share nothing with each other do not need to share masks either: in long functions they are dealt into batches, each
with bits of its own, so that masks stay short.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from magnetite.code.draft import Draft
from magnetite.code.effects import (
    APPLY,
    AUGMENT,
    BARRIER,
    DEEP_WRITE,
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
from magnetite.code.summaries import share_functions, summaries

BATCH = 2048
"""Writes to a batch, about."""

Step = tuple[int, int, int, int, int]
"""At a node the bits `read` of a batch are accessed, then `kill` is cleared and `gen` is set:
(node, batch, read, kill, gen)."""

_ON_HEAP = frozenset({HEAP_READ, HEAP_WRITE, DEEP_WRITE, MUTATE, AUGMENT})


class Batch:
    """The writes to some variables and to what lies behind them: node and unit of each bit."""

    __slots__ = ("nodes", "owned", "places", "units")

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.units: list[int] = []
        self.places: list[Any] = []
        self.owned: dict[int, int] = {}
        """For every unit, the writes to its own variables."""


class Locations:
    """The locations of a draft, all writes numbered."""

    def __init__(self, draft: Draft):
        self.draft = draft
        self.batches = [Batch()]
        self.bits: dict[tuple[int, Any], int] = {}
        self.heap_masks: dict[tuple[Any, int, str | None], tuple[int, int]] = {}
        effects: list[Any] = [effect for effect in draft.log if effect[0] != BARRIER]
        self.roots = self._bind(effects)
        self.has_heap = any(
            effect[0] in _ON_HEAP and _writes_heap(effect) and (effect[0] != AUGMENT or draft.copies)
            for effect in effects
        )
        if self.has_heap:
            self._lay_out_heap(effects)
        nested = draft.units > 1 or draft.itself in self.roots
        self.summaries = summaries(draft) if nested else {}
        self._deal(effects)
        self._number_writes()
        self._sum_up()

    def _bind(self, effects: list[Any]) -> set[Variable]:
        """Lead every variable to its binding; the bindings."""
        variables = {effect[1] for effect in effects}
        for variable in variables:
            variable.root = resolve(variable)
        if self.draft.units > 1:
            share_functions(self.draft.copies)
        return {variable.root for variable in variables}

    def _lay_out_heap(self, effects: list[Any]) -> None:
        """Give every variable a cell with the parts that are named, and join those of aliases."""
        for root in self.roots:
            root.heap = Cell()
        unify((_cell(one), _cell(other)) for one, other in self.draft.copies)
        for kind, variable, selector, _ in effects:
            if selector is not None and kind in _ON_HEAP:
                variable.root.heap.part(selector)
                if kind in (HEAP_READ, HEAP_WRITE):
                    variable.root.heap.slot(selector)

    def _deal(self, effects: list[Any]) -> None:
        """Deal the variables of a long function into batches; those that reach a common cell stay together."""
        if len(effects) <= BATCH:
            return
        sizes = Counter(variable.root for _, variable, _, _ in effects)
        leaders: dict[Any, Any] = {}
        for root in sizes if self.has_heap else ():
            for cell, _ in root.heap.reach():
                leaders[_leader(leaders, root)] = _leader(leaders, cell)
        batches: dict[Any, int] = {}
        total = 0
        for root, size in sizes.items():
            total += size
            root.batch = batches.setdefault(_leader(leaders, root), total // BATCH)
        self.batches += [Batch() for _ in range(total // BATCH)]

    def _number_writes(self) -> None:
        draft = self.draft
        for block, (begin, end) in enumerate(draft.stretches()):
            unit = draft.unit_of[block]
            for effect in draft.log[begin:end]:
                kind = effect[0]
                if kind == WRITE:
                    self._number(effect, unit)
                    effect[1].root.writes += 1
                elif kind in _ON_HEAP:
                    self._number(effect, unit)
                elif self.summaries and kind in (APPLY, USE):
                    for applied in self._applied(effect, unit):
                        self._number(applied, unit)

    def _number(self, effect: Effect, unit: int) -> None:
        """Give the writes of an effect their bits."""
        kind, variable, selector, node = effect
        root: Any = variable.root
        if kind == WRITE:
            root.mask |= self._bit(node, root, root, unit)
        elif self.has_heap and _writes_heap(effect):
            for cell, _ in _touched(kind, root, selector):
                bit = self._bit(node, cell, root, unit)
                cell.mask |= bit
                root.through[cell] = root.through.get(cell, 0) | bit

    def _bit(self, node: int, place: Any, owner: Variable, unit: int) -> int:
        bit = self.bits.get((node, place))
        if bit is None:
            batch = self.batches[owner.batch]
            bit = self.bits[(node, place)] = 1 << len(batch.nodes)
            batch.nodes.append(node)
            batch.units.append(unit)
            batch.places.append(place)
            batch.owned[owner.scope.unit] = batch.owned.get(owner.scope.unit, 0) | bit
        return bit

    def _sum_up(self) -> None:
        """For every variable, what handing it on reads, and what binding it anew makes unreachable."""
        for root in self.roots:
            root.used = root.killed = root.mask
            if self.has_heap:
                alone = not find(root.heap).shared
                for cell, shared in root.heap.reach():
                    root.behind |= cell.mask
                    root.killed |= cell.mask if alone and not shared else 0
                root.used |= root.behind

    def _applied(self, effect: Effect, unit: int) -> Iterator[Effect]:
        """The effects that using a function has here, on variables that can be seen from here."""
        _, variable, _, node = effect
        functions = variable.root.functions
        around = self.draft.units_around(unit) if functions else ()
        for function in functions:
            for kind, touched, selector, _ in self.summaries[function]:
                if touched.scope.unit in around:
                    yield (kind, touched, selector, node)

    def steps(self, effect: Effect, unit: int) -> list[Step]:
        """An effect in bits."""
        kind = effect[0]
        if kind == BARRIER:
            return []
        found = [self._step(effect)]
        if self.summaries and kind in (APPLY, USE):
            # the function may or may not be called: it replaces nothing
            applied = [self._step(one) for one in self._applied(effect, unit)]
            found += [(node, batch, read, 0, gen) for node, batch, read, _, gen in applied]
        return found

    def _step(self, effect: Effect) -> Step:
        kind, variable, _, node = effect
        root: Any = variable.root
        if kind == USE:
            return (node, root.batch, root.used, 0, 0)
        if kind == READ:
            return (node, root.batch, root.mask, 0, 0)
        if kind == APPLY:
            return (node, root.batch, root.behind, 0, 0)
        if kind == WRITE:
            return (node, root.batch, root.mask, root.killed, self.bits[(node, root)])
        if not self.has_heap:
            return (node, root.batch, 0, 0, 0)
        return self._heap_step(effect)

    def _heap_step(self, effect: Effect) -> Step:
        """An access to the heap. A write replaces what stands there if it is sure to hit the same object: by the only
        variable that leads there, or by one that is bound once and wrote it before."""
        kind, variable, selector, node = effect
        root: Any = variable.root
        writes, gen = _writes_heap(effect), 0
        key = (root, kind, selector)
        if key not in self.heap_masks:
            read = kill = 0
            alone = writes and not find(root.heap).shared
            for cell, shared in _touched(kind, root, selector):
                read |= cell.mask
                if writes:
                    kill |= cell.mask if alone and not shared else root.through[cell] if root.writes <= 1 else 0
            self.heap_masks[key] = read, kill
        for cell, _ in _touched(kind, root, selector) if writes else ():
            gen = gen | self.bits[(node, cell)] if gen else self.bits[(node, cell)]
        return (node, root.batch, *self.heap_masks[key], gen)


def _writes_heap(effect: Effect) -> bool:
    """Whether an effect writes the heap: methods of modules do not, `x += …` only where `x` has aliases."""
    kind, variable, selector, _ = effect
    root = variable.root
    if kind == MUTATE:
        return root.is_local
    if kind == AUGMENT:
        return root.heap is None or root.heap.part(selector).shared  # before heaps are laid out, it might
    return kind in (HEAP_WRITE, DEEP_WRITE)


def _touched(kind: int, root: Any, selector: str | None) -> tuple[tuple[Cell, bool], ...]:
    """The cells that an effect on the heap accesses, each with whether it is shared."""
    if selector is None or kind not in (HEAP_READ, HEAP_WRITE):
        return root.heap.part(selector).reach()
    slot = root.heap.slot(selector)
    slots = ((slot, slot.shared),)
    return slots if kind == HEAP_WRITE else slots + root.heap.part(selector).reach()


def _cell(source: tuple[Variable, str | None]) -> Cell:
    root: Any = resolve(source[0])
    if root.heap is None:
        root.heap = Cell()
    return root.heap.part(source[1])


def _leader(leaders: dict[Any, Any], one: Any) -> Any:
    """The representative of a class; the way to it gets shorter."""
    leader = one
    while leader in leaders and leaders[leader] is not leader:
        leader = leaders[leader]
    while one is not leader:
        leaders[one], one = leader, leaders[one]
    return leader
