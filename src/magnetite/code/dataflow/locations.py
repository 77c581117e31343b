"""Locations: variables and what is reachable through them, alias classes, and a bit for every write.

Every variable has a cell for the object behind it. A cell has fields, the references `x.attr` and `x[...]` that the
object holds as far as the function names them, and parts, the cells of the objects that they refer to. `r = xs` unifies
the cells of both variables, `r = x.a` and `x.a = r` the cell of `r` with a part of `x`, and so on for all their parts
(Steensgaard 1996): flow-insensitively, in almost linear time. The unified cells are the alias classes.

Every write to a variable or a cell is a bit; a location is the mask of all its writes. In long functions, variables
that share no cell are put into separate batches, each with its own bits, so that masks stay short.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from magnetite.code.dataflow.effects import (
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
from magnetite.code.dataflow.scopes import Variable, resolve
from magnetite.code.dataflow.walk import Draft, Source

BATCH = 2048
"""Approximate number of writes per batch."""

Step = tuple[int, int, int, int, int]
"""`(node, batch, read, kill, gen)`: at the node, the bits `read` are accessed, `kill` is cleared, then `gen` is set."""

_ON_HEAP = frozenset({HEAP_READ, HEAP_WRITE, DEEP_WRITE, MUTATE, AUGMENT})


class Cell:
    """An object of the heap, or a field of one: the mask of its writes, and whether several names refer to it."""

    __slots__ = ("below", "fields", "forwarded", "mask", "parts", "shared")

    def __init__(self) -> None:
        self.forwarded: Cell | None = None
        self.fields: dict[str, Cell] = {}
        self.parts: dict[str, Cell] = {}
        self.mask = 0
        self.shared = False
        self.below: tuple[tuple[Cell, bool], ...] = ()

    def part(self, selector: str | None) -> "Cell":
        """The object behind an attribute or a subscript; the cell itself for None."""
        cell = find(self)
        return cell if selector is None else _entry(cell.parts, selector)

    def field(self, selector: str) -> "Cell":
        """The reference that an attribute or a subscript holds."""
        return _entry(find(self).fields, selector)

    def reach(self) -> tuple[tuple["Cell", bool], ...]:
        """The cell, its fields and everything reachable from them, and whether each is shared; to be called when all
        aliases, fields and parts are known."""
        first = find(self)
        if not first.below:
            seen, pending = {first: first.shared}, [first]
            while pending:
                cell = pending.pop()
                for field in map(find, cell.fields.values()):
                    seen[field] = field.shared or cell.shared
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
    """The representative of a cell's alias class, with path compression."""
    leader = cell
    while leader.forwarded is not None:
        leader = leader.forwarded
    while cell.forwarded is not None:
        cell.forwarded, cell = leader, cell.forwarded
    return leader


def unify(pairs: Iterable[tuple[Cell, Cell]]) -> None:
    """Unify the cells of each pair, and their fields and parts of the same name."""
    pending = list(pairs)
    while pending:
        one, other = map(find, pending.pop())
        if one is other:
            continue
        if len(one.parts) + len(one.fields) > len(other.parts) + len(other.fields):
            one, other = other, one
        one.forwarded = other
        other.shared = True
        for mine, theirs in ((one.fields, other.fields), (one.parts, other.parts)):
            for selector, cell in mine.items():
                twin = theirs.setdefault(selector, cell)
                if twin is not cell:
                    pending.append((cell, twin))


class Batch:
    """The writes to some variables and to the heap behind them: node, unit and location of each bit."""

    __slots__ = ("nodes", "owned", "targets", "units")

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.units: list[int] = []
        self.targets: list[Any] = []
        self.owned: dict[int, int] = {}
        """For every unit, the mask of the writes to its own variables."""


class Locations:
    """The locations of a function, with all writes numbered.

    Args:
        draft: The walked function.
    """

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
            self._build_heap(effects)
        nested = draft.units > 1 or draft.itself in self.roots
        self.summaries = _summaries(draft) if nested else {}
        self._assign_batches(effects)
        self._number_writes()
        self._reachable_writes()

    def _bind(self, effects: list[Any]) -> set[Variable]:
        """Resolve every variable; return the bindings."""
        variables = {effect[1] for effect in effects}
        for variable in variables:
            variable.root = resolve(variable)
        if self.draft.units > 1:
            _share_functions(self.draft.copies)
        return {variable.root for variable in variables}

    def _build_heap(self, effects: list[Any]) -> None:
        """Give every variable a cell with the parts that are named, and unify those of aliases."""
        for root in self.roots:
            root.heap = Cell()
        unify((_cell(one), _cell(other)) for one, other in self.draft.copies)
        for kind, variable, selector, _ in effects:
            if selector is not None and kind in _ON_HEAP:
                variable.root.heap.part(selector)
                if kind in (HEAP_READ, HEAP_WRITE):
                    variable.root.heap.field(selector)

    def _assign_batches(self, effects: list[Any]) -> None:
        """Put the variables of a long function into batches; those that reach a common cell stay together."""
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
        for block, (begin, end) in enumerate(draft.spans()):
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
        """Assign bits to the writes of an effect."""
        kind, variable, selector, node = effect
        root: Any = variable.root
        if kind == WRITE:
            root.mask |= self._bit(node, root, root, unit)
        elif self.has_heap and _writes_heap(effect):
            for cell, _ in _touched(kind, root, selector):
                bit = self._bit(node, cell, root, unit)
                cell.mask |= bit
                root.through[cell] = root.through.get(cell, 0) | bit

    def _bit(self, node: int, target: Any, owner: Variable, unit: int) -> int:
        bit = self.bits.get((node, target))
        if bit is None:
            batch = self.batches[owner.batch]
            bit = self.bits[(node, target)] = 1 << len(batch.nodes)
            batch.nodes.append(node)
            batch.units.append(unit)
            batch.targets.append(target)
            batch.owned[owner.scope.unit] = batch.owned.get(owner.scope.unit, 0) | bit
        return bit

    def _reachable_writes(self) -> None:
        """For every variable, the writes that passing it on reads, and those that rebinding it makes unreachable."""
        for root in self.roots:
            root.used = root.killed = root.mask
            if self.has_heap:
                alone = not find(root.heap).shared
                for cell, shared in root.heap.reach():
                    root.behind |= cell.mask
                    root.killed |= cell.mask if alone and not shared else 0
                root.used |= root.behind

    def _applied(self, effect: Effect, unit: int) -> Iterator[Effect]:
        """The effects of a function that is used here on the variables visible from here."""
        _, variable, _, node = effect
        functions = variable.root.functions
        if not functions:
            return
        around = {unit}
        while unit >= 0:
            unit = self.draft.unit_parents[unit]
            around.add(unit)
        for function in functions:
            for kind, touched, selector, _ in self.summaries[function]:
                if touched.scope.unit in around:
                    yield (kind, touched, selector, node)

    def steps(self, effect: Effect, unit: int) -> list[Step]:
        """An effect as steps on masks.

        Args:
            effect: An entry of the log.
            unit: The unit that it belongs to.
        """
        kind = effect[0]
        if kind == BARRIER:
            return []
        found = [self._step(effect)]
        if self.summaries and kind in (APPLY, USE):
            # the function may or may not be called, so it kills nothing
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
        """An access to the heap. A write kills earlier ones where it must hit the same object: through the only
        variable that refers to it, or through one that is bound once and wrote it before."""
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
        return root.heap is None or root.heap.part(selector).shared  # None: the heap is not built yet
    return kind in (HEAP_WRITE, DEEP_WRITE)


def _touched(kind: int, root: Any, selector: str | None) -> tuple[tuple[Cell, bool], ...]:
    """The cells that an effect on the heap accesses, and whether each is shared."""
    if selector is None or kind not in (HEAP_READ, HEAP_WRITE):
        return root.heap.part(selector).reach()
    field = root.heap.field(selector)
    fields = ((field, field.shared),)
    return fields if kind == HEAP_WRITE else fields + root.heap.part(selector).reach()


def _cell(source: Source) -> Cell:
    root: Any = resolve(source[0])
    if root.heap is None:
        root.heap = Cell()
    return root.heap.part(source[1])


def _leader(leaders: dict[Any, Any], one: Any) -> Any:
    """The representative of a set, with path compression."""
    leader = one
    while leader in leaders and leaders[leader] is not leader:
        leader = leaders[leader]
    while one is not leader:
        leaders[one], one = leader, leaders[one]
    return leader


def _summaries(draft: Draft) -> dict[int, list[Effect]]:
    """For every unit, the effects on variables of other units, its own and those of all units that it may call."""
    direct: list[dict[Effect, None]] = [{} for _ in range(draft.units)]
    calls: list[set[int]] = [set() for _ in range(draft.units)]
    for block, (begin, end) in enumerate(draft.spans()):
        unit = draft.unit_of[block]
        for kind, variable, selector, _ in draft.log[begin:end]:
            if kind == BARRIER:
                continue
            root = variable.root
            if root.scope.unit != unit:
                direct[unit][(kind, root, selector, 0)] = None
            if kind in (APPLY, USE):
                calls[unit].update(root.functions)
    return {unit: _closure(unit, direct, calls) for unit in range(draft.units)}


def _closure(unit: int, direct: list[dict[Effect, None]], calls: list[set[int]]) -> list[Effect]:
    found: dict[Effect, None] = {}
    seen, pending = {unit}, [unit]
    while pending:
        current = pending.pop()
        found |= direct[current]
        new = calls[current] - seen
        seen |= new
        pending += new
    return list(found)


def _share_functions(copies: list[tuple[Source, Source]]) -> None:
    """`h = g` lets `h` refer to the functions of `g`, and so on for copies of copies."""
    pairs = [(resolve(to), resolve(of)) for (to, part), (of, piece) in copies if part is None and piece is None]
    changed = True
    while changed:
        changed = False
        for to, of in pairs:
            new = [unit for unit in of.functions if unit not in to.functions]
            to.functions += new
            changed |= bool(new)
