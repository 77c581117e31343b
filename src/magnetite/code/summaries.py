"""What calling a nested function does to the variables of the functions around it."""

from magnetite.code.draft import Draft
from magnetite.code.effects import APPLY, BARRIER, USE, Effect


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
