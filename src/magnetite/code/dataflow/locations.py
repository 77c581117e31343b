"""Locations: variables and what is reachable through them, alias classes, and a bit for every write.

Every variable has a cell for the object behind it. A cell has fields, the references `x.attr` and `x[...]` that the
object holds as far as the function names them, and a shape with its parts, the cells of the objects that they refer to.
`r = xs` unifies the cells of both variables, `r = x.a` and `x.a = r` the cell of `r` with a part of `x`, and so on for
all their parts (Steensgaard 1996): flow-insensitively, in almost linear time. The unified cells are the alias classes.

What is put into a container is not unified with what else is there: in `t = [a, b]` the elements of `t` are a cell that
includes those of `a` and `b`, so that an access to an element is one to both, but an access to `a` is none to `b`. Only
their parts are unified, since what is stored into one by way of `t` may be found in it (Das 2000: one level of flow).

Every write to a variable or a cell is a bit; a location is the mask of all its writes. In long functions, variables
that share no cell are put into separate batches, each with its own bits, so that masks stay short.
"""

import builtins
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar

from magnetite.code.dataflow.effects import (
    ANY,
    APPLY,
    AUGMENT,
    BARRIER,
    DEEP_WRITE,
    HEAP_READ,
    HEAP_WRITE,
    INSERT,
    INVOKE,
    MUTATE,
    ORIGIN,
    READ,
    REARRANGE,
    SUBSCRIPT,
    USE,
    WRITE,
    Effect,
)
from magnetite.code.dataflow.scopes import Variable, resolve
from magnetite.code.dataflow.walk import Draft, Source

WORTHWHILE = 400
"""Number of cells touched by all accesses together from which it pays to look for cells that are touched alike."""

BATCH = 2048
"""Approximate number of writes per batch."""

Step = tuple[int, int, int, int, int]
"""`(node, batch, read, kill, gen)`: at the node, the bits `read` are accessed, `kill` is cleared, then `gen` is set."""

Access = tuple[int, Any, str | None]
"""A kind of effect on the heap, the variable that it begins at, and the selector."""

Touched = tuple[tuple["Cell", bool], ...]
"""Cells, and whether each is shared."""

_ON_HEAP = frozenset({HEAP_READ, HEAP_WRITE, DEEP_WRITE, MUTATE, INSERT, REARRANGE, AUGMENT})
_CALLS = frozenset({APPLY, USE, INVOKE})

T = TypeVar("T", "Cell", "Shape")


class Shape:
    """The parts of an object: the cells of the objects that its attributes and elements refer to."""

    __slots__ = ("forwarded", "parts", "shared")

    def __init__(self) -> None:
        self.forwarded: Shape | None = None
        self.parts: dict[str, Cell] = {}
        self.shared = False
        """Whether several objects have these parts."""


class Cell:
    """An object of the heap, or a field of one: the mask of its writes, and whether several names refer to it.

    Args:
        named: Whether a variable, an attribute or a subscript refers to it.
    """

    __slots__ = ("around", "below", "fields", "forwarded", "mask", "members", "named", "shape", "shared")

    def __init__(self, named: bool = True) -> None:
        self.forwarded: Cell | None = None
        self.fields: dict[str, Cell] = {}
        self.shape = Shape()
        self.members: list[Cell] = []
        """Other objects that this may be, where it was put into a container."""
        self.mask = 0
        self.named, self.shared = named, False
        self.below: tuple[tuple[Cell, bool], ...] = ()
        self.around: tuple[tuple[Cell, bool], ...] = ()

    def part(self, selector: str | None) -> "Cell":
        """The object behind an attribute or a subscript; the cell itself for None."""
        cell = find(self)
        if selector is None:
            return cell
        shape = find(cell.shape)
        found = shape.parts.get(ANY) or shape.parts.get(selector)
        if found is None or (selector == ANY and ANY not in shape.parts):
            found = _new_part(shape, selector)
        return find(found)

    def field(self, selector: str) -> "Cell":
        """The reference that an attribute or a subscript holds."""
        fields = find(self).fields
        found = fields.get(selector)
        if found is None:
            found = fields[selector] = Cell()
        return find(found)

    def either(self) -> list["Cell"]:
        """The cell, and all others that it may be."""
        first = find(self)
        if not first.members:
            return [first]
        found: dict[Cell, None] = {first: None}
        pending: list[Cell] = [first]
        while pending:
            for member in map(find, pending.pop().members):
                if member not in found:
                    found[member] = None
                    pending.append(member)
        return list(found)

    def reach(self) -> tuple[tuple["Cell", bool], ...]:
        """The cell, its fields and everything reachable from them, and whether each is shared; to be called when all
        aliases, fields and parts are known."""
        first = find(self)
        if not first.below:
            first.below = _spread(first, ())
        return first.below

    def near(self) -> tuple[tuple["Cell", bool], ...]:
        """The same without the elements."""
        first = find(self)
        if not first.around:
            first.around = _spread(first, first.either())
        return first.around


def _new_part(shape: Shape, selector: str) -> Cell:
    """A new part; one that may be any part takes the place of all others."""
    cell = Cell()
    cell.shared = shape.shared
    others = list(shape.parts.values())
    if selector == ANY:
        shape.parts.clear()
    shape.parts[selector] = cell
    if selector == ANY:
        unify((cell, other) for other in others)
    return cell


def _spread(first: Cell, containers: Collection[Cell]) -> tuple[tuple[Cell, bool], ...]:
    """Everything reachable from a cell, but not through the elements of `containers`."""
    if not first.fields and not first.members and not find(first.shape).parts:
        return ((first, first.shared),)
    seen, pending = {first: first.shared}, [first]
    while pending:
        cell = pending.pop()
        shared = seen[cell]
        for field in map(find, cell.fields.values()):
            seen[field] = field.shared or shared or seen.get(field, False)
        following = [(find(member), True) for member in cell.members]
        for selector, part in find(cell.shape).parts.items():
            if selector != SUBSCRIPT or cell not in containers:
                part = find(part)
                following.append((part, part.shared or shared))
        for other, flag in following:
            if other not in seen or (flag and not seen[other]):
                seen[other] = flag
                pending.append(other)
    return tuple(seen.items())


def find(one: T) -> T:
    """The representative of a cell's alias class, or of a shape, with path compression."""
    leader: Any = one
    while leader.forwarded is not None:
        leader = leader.forwarded
    while one.forwarded is not None:
        one.forwarded, one = leader, one.forwarded  # pyright: ignore
    return leader


def unify(pairs: Iterable[tuple[Cell, Cell]]) -> None:
    """Unify the cells of each pair, and their fields and parts of the same name."""
    pending = list(pairs)
    while pending:
        one, other = map(find, pending.pop())
        if one is other:
            continue
        if len(one.fields) > len(other.fields):
            one, other = other, one
        one.forwarded = other
        other.shared |= one.shared or (one.named and other.named)
        other.named |= one.named
        other.members += one.members
        for selector, cell in one.fields.items():
            twin = other.fields.setdefault(selector, cell)
            if twin is not cell:
                pending.append((cell, twin))
        _join(one.shape, other.shape, pending)


def include(whole: Cell, member: Cell) -> None:
    """Let the whole, a part of a container, be possibly the member: an access to the one is an access to the other, but
    not the other way round. Below them, parts are unified: a part of either may be stored into through the other."""
    whole, member = find(whole), find(member)
    if whole is not member:
        whole.members.append(member)
        member.shared = True
        liken(whole, member, shared=False)


def liken(one: Cell, other: Cell, shared: bool = True) -> None:
    """Give two objects the same parts; `shared` if they are different objects."""
    pending: list[tuple[Cell, Cell]] = []
    _join(one.shape, other.shape, pending, shared)
    unify(pending)


def _join(one: Shape, other: Shape, pending: list[tuple[Cell, Cell]], shared: bool = False) -> None:
    """Make two shapes one; add the parts that become one to `pending`."""
    one, other = find(one), find(other)
    shared |= one.shared or other.shared
    if one is not other:
        if len(one.parts) > len(other.parts):
            one, other = other, one
        one.forwarded = other
        for selector, cell in one.parts.items():
            twin = other.parts.setdefault(selector, cell)
            if twin is not cell:
                pending.append((cell, twin))
        if ANY in other.parts and len(other.parts) > 1:
            cells = list(other.parts.values())
            other.parts = {ANY: cells[0]}
            pending += [(cells[0], cell) for cell in cells]
    if shared:
        other.shared = True
        for cell in other.parts.values():
            find(cell).shared = True


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
        self.heap_masks: dict[Access, tuple[int, int]] = {}
        self.read: dict[Access, Touched] = {}
        self.written: dict[Access, Touched] = {}
        """The cells that each access to the heap reads and writes."""
        effects: list[Any] = [effect for effect in draft.log if effect[0] != BARRIER]
        self.roots = self._bind(effects)
        effects = self._call_methods(effects)
        self.has_heap = any(
            effect[0] in _ON_HEAP and _writes_heap(effect) and (effect[0] != AUGMENT or draft.copies or draft.held)
            for effect in effects
        )
        if self.has_heap:
            self._build_heap(effects)
        nested = draft.units > 1 or draft.itself in self.roots
        outward = self._outward_effects() if self.has_heap and draft.units > 1 else {}
        self.summaries = _summaries(draft, outward) if nested else {}
        if self.has_heap:
            self._find_touched([*effects, *outward.values()])
        self._assign_batches(effects)
        self._number_writes()
        self._reachable_writes()

    def _bind(self, effects: list[Any]) -> set[Variable]:
        """Resolve every variable; return the bindings."""
        variables = {effect[1] for effect in effects}
        for variable in variables:
            variable.root = resolve(variable)
        return {variable.root for variable in variables}

    def _call_methods(self, effects: list[Any]) -> list[Any]:
        """Let a call by the name of a method that changes its receiver do so."""
        if not any(root.method for root in self.roots):
            return effects
        self.draft.log = [
            (MUTATE, *effect[1:]) if _calls_method(effect) and not _calls_function(effect) else effect
            for effect in self.draft.log
        ]
        found = [effect for effect in self.draft.log if effect[0] != BARRIER]
        return found + [(MUTATE, *effect[1:]) for effect in found if _calls_method(effect)]

    def _build_heap(self, effects: list[Any]) -> None:
        """Give every variable a cell with the parts that are named, and unify those of aliases."""
        for root in self.roots:
            root.heap = Cell(named=root.name != "<value>")
        draft = self.draft
        unify((_cell(one), _cell(other)) for one, other in draft.copies)
        held = draft.held + draft.extended + _kept_iterators(draft)
        if held:
            plain = _plain_variables(held, effects if draft.units > 1 else [])
            for whole, member in held:
                if not _cannot_change(member, plain):
                    include(_cell(whole), _cell(member))
        for one, other in draft.alike:
            liken(_cell(one), _cell(other))
        accesses = _accesses(effects)
        for _, root, selector in accesses:
            root.heap.part(selector)
        for kind, root, selector in accesses:
            if selector is not None and kind in (HEAP_READ, HEAP_WRITE):
                for cell in root.heap.either():
                    cell.field(selector)

    def _find_touched(self, effects: list[Any]) -> None:
        """Find the cells that every access touches. One cell stands for all that the same accesses touch."""
        accesses: dict[Access, None] = {(HEAP_READ, root, None): None for root in self.roots}
        for access in accesses | _accesses(effects):
            self.read[access] = _read(*access)
            self.written[access] = _written(*access) if _writes_heap((*access, 0)) else ()
        if sum(map(len, self.read.values())) < WORTHWHILE:
            return
        touching: dict[Cell, list[int]] = {}
        for sign, found in ((2, self.read), (-2, self.written)):
            for number, touched in enumerate(found.values(), 1):
                for cell, shared in touched:
                    touching.setdefault(cell, []).append(sign * number + shared)
        groups: dict[tuple[int, ...], Cell] = {}
        for cell, numbers in touching.items():
            groups.setdefault(tuple(numbers), cell)
        if len(groups) < len(touching):
            kept = set(groups.values())
            for found in (self.read, self.written):
                for access, touched in found.items():
                    found[access] = tuple([one for one in touched if one[0] in kept])

    def _outward_effects(self) -> dict[int, Effect]:
        """For every nested function, one effect on all objects that it reaches by variables of its own, or of a nested
        function around it, and that other units reach too."""
        draft = self.draft
        units: dict[Cell, set[int]] = {}
        pairs = draft.held + draft.copies + draft.alike
        for root in {*self.roots, *(source[0].root for pair in pairs for source in pair)}:
            if root.heap is not None:
                for cell, _ in root.heap.reach():
                    units.setdefault(cell, set()).add(root.scope.unit)
        read: dict[int, dict[Cell, bool]] = {}
        written: dict[int, dict[Cell, bool]] = {}
        for access, unit in self._own_accesses():
            read.setdefault(unit, {}).update((cell, True) for cell, _ in _read(*access) if len(units[cell]) > 1)
            if _writes_heap((*access, 0)):
                found = written.setdefault(unit, {})
                found.update((cell, True) for cell, _ in _written(*access) if len(units[cell]) > 1)
        effects: dict[int, Effect] = {}
        for unit, cells in read.items():
            changed = written.get(unit, {})
            if cells or changed:
                whole: Any = Variable("<value>", draft.scope.module).bind()
                whole.heap = Cell(named=False)
                whole.heap.below, whole.heap.around = tuple((cells | changed).items()), tuple(changed.items())
                effects[unit] = (REARRANGE if changed else HEAP_READ, whole, None, 0)
        return effects

    def _own_accesses(self) -> set[tuple[Access, int]]:
        """The accesses of nested functions to the heap behind variables of nested functions."""
        found: set[tuple[Access, int]] = set()
        for block, (begin, end) in enumerate(self.draft.spans()):
            unit = self.draft.unit_of[block]
            for kind, variable, selector, _ in self.draft.log[begin:end] if unit else ():
                if (kind == USE or kind in _ON_HEAP) and variable.root.scope.unit > 0:
                    found.add(((HEAP_READ if kind == USE else kind, variable.root, selector), unit))
                elif kind in (APPLY, INVOKE) and variable.root.method and variable.root.scope.unit > 0:
                    found.add(((MUTATE, variable.root, None), unit))
        return found

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
                elif self.summaries and kind in _CALLS:
                    for applied in self._applied(effect, unit):
                        self._number(applied, unit)

    def _number(self, effect: Effect, unit: int) -> None:
        """Assign bits to the writes of an effect."""
        kind, variable, selector, node = effect
        root: Any = variable.root
        if kind == WRITE:
            root.mask |= self._bit(node, root, root, unit)
        elif self.has_heap and kind in _ON_HEAP:
            for cell, _ in self.written[(kind, root, selector)]:
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
                for cell, shared in self.read[(HEAP_READ, root, None)]:
                    root.behind |= cell.mask
                    root.killed |= cell.mask if alone and not shared else 0
                root.used |= root.behind

    def _applied(self, effect: Effect, unit: int) -> Iterator[Effect]:
        """The effects of a function that is used here on the variables visible from here."""
        called, variable, _, node = effect
        functions = _called(called, variable.root)
        if not functions:
            return
        if _calls_method(effect):
            yield (MUTATE, variable, None, node)
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
        if self.summaries and kind in _CALLS:
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
        if kind == INVOKE:
            return (node, root.batch, 0, 0, 0)
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
        access, gen = (kind, root, selector), 0
        written = self.written[access]
        if access not in self.heap_masks:
            read = kill = 0
            alone = not find(root.heap).shared
            for cell, _ in self.read[access]:
                read |= cell.mask
            for cell, shared in written:
                kill |= cell.mask if alone and not shared else root.through[cell] if root.writes <= 1 else 0
            self.heap_masks[access] = read, kill
        for cell, _ in written:
            gen = gen | self.bits[(node, cell)] if gen else self.bits[(node, cell)]
        return (node, root.batch, *self.heap_masks[access], gen)


def _writes_heap(effect: Effect) -> bool:
    """Whether an effect writes the heap: methods of modules do not, `x += …` only where `x` has aliases."""
    kind, variable, selector, _ = effect
    root = variable.root
    if kind in (MUTATE, INSERT, REARRANGE):
        return root.is_local
    if kind == AUGMENT:
        part = None if root.heap is None else root.heap.part(selector)
        return part is None or part.shared or bool(part.members)  # None: the heap is not built yet
    return kind in (HEAP_WRITE, DEEP_WRITE)


def _read(kind: int, root: Any, selector: str | None) -> tuple[tuple[Cell, bool], ...]:
    """The cells that an effect on the heap reads, and whether each is shared."""
    if kind in (HEAP_READ, HEAP_WRITE) and selector is not None:
        fields = _fields(root.heap, selector)
        return fields if kind == HEAP_WRITE else fields + root.heap.part(selector).reach()
    part = root.heap.part(selector)
    return part.near() if kind == INSERT else part.reach()


def _written(kind: int, root: Any, selector: str | None) -> tuple[tuple[Cell, bool], ...]:
    """The cells that an effect on the heap writes, and whether each is shared."""
    if kind == HEAP_WRITE and selector is not None:
        return _fields(root.heap, selector)
    part = root.heap.part(selector)
    return part.near() if kind in (INSERT, REARRANGE) else part.reach()


def _fields(heap: Cell, selector: str) -> tuple[tuple[Cell, bool], ...]:
    """The references that an object, which may be any of several, holds in one of its fields."""
    first = heap.field(selector)
    others = [cell.field(selector) for cell in heap.either()[1:]] if find(heap).members else []
    return ((first, first.shared), *((field, True) for field in others if field is not first))


def _calls_method(effect: Effect) -> bool:
    """Whether an effect may call a method, by another name, that changes its receiver."""
    return effect[0] in (APPLY, INVOKE) and effect[1].root.method


def _calls_function(effect: Effect) -> bool:
    """Whether an effect may call a nested function."""
    return bool(_called(effect[0], effect[1].root))


def _kept_iterators(draft: Draft) -> list[tuple[Source, Source]]:
    """Let iterators that are bound or put away, not used up at once, hold what they read."""
    if not draft.lazy:
        return []
    found: dict[Variable, None] = {}
    pairs = draft.copies + draft.held + draft.extended + draft.alike
    pending = [variable for _, (variable, path) in pairs if not path and variable in draft.lazy]
    while pending:
        variable = pending.pop()
        if variable not in found:
            found[variable] = None
            pending += [one for one, path in draft.lazy[variable] if not path and one in draft.lazy]
    return [((one, (ORIGIN,)), source) for one in found for source in draft.lazy[one]]


def _accesses(effects: list[Any]) -> dict[Access, None]:
    """The distinct accesses to the heap among effects."""
    return {(kind, variable.root, selector): None for kind, variable, selector, _ in effects if kind in _ON_HEAP}


def _plain_variables(held: list[tuple[Source, Source]], effects: list[Any]) -> set[Variable]:
    """The variables among what is held that are only ever bound to numbers and strings.

    Args:
        held: Pairs of a whole and a member.
        effects: Where there are nested functions, which may bind variables of others, all effects.
    """
    elsewhere = {one.root for kind, one, _, _ in effects if kind == WRITE and one.root is not one}
    pending = [member[0].root for _, member in held]
    found: set[Variable] = set()
    while pending:
        root = pending.pop()
        if root.plain and root.plain == root.rebound and root not in found and root not in elsewhere:
            found.add(root)
            pending += [one.root for one in root.plain_from]
    wrong = found
    while wrong:
        wrong = {root for root in found if any(one.root not in found for one in root.plain_from)}
        found -= wrong
    return found


def _cannot_change(source: Source, plain: set[Variable]) -> bool:
    """Whether a source is a number, a string or a function of Python's own."""
    root = source[0].root
    return root in plain or (not root.bound and hasattr(builtins, root.name))


def _cell(source: Source) -> Cell:
    variable, path = source
    root: Any = variable.root
    if root.heap is None:
        root.heap = Cell(named=root.name != "<value>")
    cell = find(root.heap)
    for selector in path:
        cell = cell.part(selector)
    return cell


def _leader(leaders: dict[Any, Any], one: Any) -> Any:
    """The representative of a set, with path compression."""
    leader = one
    while leader in leaders and leaders[leader] is not leader:
        leader = leaders[leader]
    while one is not leader:
        leaders[one], one = leader, leaders[one]
    return leader


def _summaries(draft: Draft, outward: dict[int, Effect]) -> dict[int, list[Effect]]:
    """For every unit, the effects on variables of other units and on objects that they share, its own and those of all
    units that it may call."""
    direct: list[dict[Effect, None]] = [{} for _ in range(draft.units)]
    for unit, effect in outward.items():
        direct[unit][effect] = None
    calls: list[set[int]] = [set() for _ in range(draft.units)]
    for block, (begin, end) in enumerate(draft.spans()):
        unit = draft.unit_of[block]
        for kind, variable, selector, _ in draft.log[begin:end]:
            if kind == BARRIER:
                continue
            root = variable.root
            if root.scope.unit != unit:
                direct[unit][(kind, root, selector, 0)] = None
                if kind in _CALLS and kind != USE and root.method:
                    direct[unit][(MUTATE, root, None, 0)] = None
            if kind in _CALLS:
                calls[unit].update(_called(kind, root))
    for unit, effects in draft.deferred.items():
        for kind, variable, selector, _ in effects:
            if kind in _CALLS:
                calls[unit].update(_called(kind, variable.root))
            if kind != BARRIER and variable.root.scope.kind != "comprehension":
                direct[unit][(kind, variable.root, selector, 0)] = None
            elif kind in _ON_HEAP or kind == USE:
                direct[unit][(HEAP_READ if kind == USE else kind, variable.root, selector, 0)] = None
    return {unit: _closure(unit, direct, calls) for unit in range(draft.units)}


def _called(kind: int, root: Variable) -> list[int]:
    """The functions that an effect may call: passing a variable on calls those that it refers to, a call also those
    that may have come to it through containers, arguments and results."""
    if kind == USE or not root.kept:
        return root.functions
    return root.kept if kind == INVOKE else [*dict.fromkeys(root.functions + root.kept)]


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
