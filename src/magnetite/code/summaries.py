"""Which nested functions a name may stand for, and what calling them does to variables of the functions around."""

from magnetite.code.draft import Draft, Source
from magnetite.code.effects import APPLY, BARRIER, USE, Effect
from magnetite.code.scopes import resolve


def summaries(draft: Draft) -> dict[int, list[Effect]]:
    """For every unit, the effects on variables that it does not own: its own, and those of all that it may call.

    Variables must have been led to their bindings.
    """
    direct: list[dict[Effect, None]] = [{} for _ in range(draft.units)]
    calls: list[set[int]] = [set() for _ in range(draft.units)]
    for block, (begin, end) in enumerate(draft.stretches()):
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


def share_functions(copies: list[tuple[Source, Source]]) -> None:
    """`h = g` makes `h` stand for the functions of `g`, and so on for copies of copies."""
    pairs = [(resolve(to), resolve(of)) for (to, part), (of, piece) in copies if part is None and piece is None]
    changed = True
    while changed:
        changed = False
        for to, of in pairs:
            new = [unit for unit in of.functions if unit not in to.functions]
            to.functions += new
            changed |= bool(new)
