"""The edges `CFG_NEXT`: which statement may follow which, as far as data and control flow ask for it.

`Si → Sj` in a list iff a write inside `Si` reaches an access inside `Sj` without going round a loop that the list lies
in; sources of a list hang on its entry, its sinks lead to what follows. Barriers cut a list into stretches: what stands
before one leads to it, and it leads to what stands after. There is no transitive reduction.
"""

from magnetite.code.draft import Draft
from magnetite.code.flow import MAX_EDGES


class ControlEdges:
    """`CFG_NEXT`: a dependency DAG inside each block; sources hang on its entry, sinks lead to what follows."""

    def __init__(self, draft: Draft, writes: dict[tuple[int, int], bool]):
        self.draft = draft
        self.edges: dict[tuple[int, int], None] = {}
        self.follows: dict[int, dict[int, set[int]]] = {}
        """For every list, the statements that depend on each of its statements."""
        self.exits: dict[int, list[int]] = {}
        self.list_exits: dict[int, list[int]] = {}
        self.list_sources: dict[int, list[int]] = {}
        self.breaks: dict[int, list[int]] = {}
        self.detained: dict[int, list[int]] = {}
        rows = draft.rows
        pairs = {(rows[write][6], rows[access][6]) for (write, access), same_call in writes.items() if same_call}
        for one, other in pairs:
            if one != other:
                self._depend(one, other)
        for number in range(len(draft.lists) - 1, -1, -1):
            self._finish_list(number)
        self._connect([0], self._sources(draft.shapes[0]["body"]))

    def _depend(self, one: int, other: int) -> None:
        """Let a statement that accesses depend on one that writes, in the list in which they (or those around them)
        stand together; not if the write comes later in it."""
        draft, place = self.draft, self.draft.place
        while one != other:
            first, second = place.get(one), place.get(other)
            if first is None and second is None:
                return
            if first is not None and second is not None and first[0] == second[0]:
                if first[1] < second[1]:
                    self.follows.setdefault(first[0], {}).setdefault(one, set()).add(other)
                return
            depth = -1 if first is None else draft.lists[first[0]].depth
            if second is None or (first is not None and depth >= draft.lists[second[0]].depth):
                one = draft.lists[first[0]].parent  # pyright: ignore
            else:
                other = draft.lists[second[0]].parent

    def _finish_list(self, number: int) -> None:
        """The edges inside a list whose inner lists are finished."""
        draft, statements = self.draft, self.draft.lists[number].statements
        for statement in statements:
            self.exits[statement] = self._finish_statement(statement)
        if len(statements) == 1:
            self.list_sources[number], self.list_exits[number] = statements, self.exits[statements[0]]
            return
        follows = self.follows.get(number, {})
        for statement, dependants in follows.items():
            self._connect(self.exits[statement], dependants)
        stretch: list[int] = []
        barrier: int | None = None
        for statement in [*statements, None]:
            if statement is not None and statement not in draft.barriers:
                stretch.append(statement)
                continue
            inside = set(stretch)
            targets = {target for one in stretch for target in follows.get(one, ()) if target in inside}
            sources = [one for one in stretch if one not in targets]
            sinks = [one for one in stretch if not follows.get(one, set()) & inside]
            if barrier is None:
                self.list_sources[number] = sources or ([] if statement is None else [statement])
            else:
                self._connect(self.exits[barrier], sources or ([] if statement is None else [statement]))
            ends = [way for one in sinks for way in self.exits[one]]
            if statement is None:
                self.list_exits[number] = ends if stretch or barrier is None else self.exits[barrier]
            elif stretch:
                self._connect(ends, [statement])
            stretch, barrier = [], statement

    def _finish_statement(self, index: int) -> list[int]:
        """The edges between a statement and its lists; the nodes from which control leaves it."""
        kind, shape = self.draft.rows[index][0], self.draft.shapes.get(index)
        if shape is None:
            return [] if kind in ("Return", "Raise", "Break", "Continue") else [index]
        if kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            self._connect([index], self._sources(shape["body"]))
            return [index]
        if kind in ("Try", "TryStar"):
            return self._finish_try(index, shape)
        if kind == "Match":
            return self._finish_match(index, shape["cases"])
        self._connect([index], self._sources(shape["body"]))
        ends = self._ends(shape["body"])
        if kind in ("With", "AsyncWith"):
            return ends
        otherwise = shape["orelse"]
        self._connect([index], self._sources(otherwise))
        skipped = self._ends(otherwise) if otherwise else [] if index in self.draft.complete else [index]
        if kind == "If":
            return ends + skipped
        self._connect(ends, [index])
        ways = self.draft.ways.get(index, [])
        self._connect([way for name, way in ways if name == "continue"], [index])
        return skipped + [way for name, way in ways if name == "break"] + self.breaks.get(index, [])

    def _finish_match(self, index: int, cases: list[int]) -> list[int]:
        draft, ends, before = self.draft, [], index
        for number in cases:
            case = draft.lists[number].owner
            self._connect([before], [case])
            self._connect([case], self.list_sources[number])
            ends += self.list_exits[number]
            before = case
        return ends if index in draft.complete else [*ends, before]

    def _finish_try(self, index: int, shape: dict[str, list[int]]) -> list[int]:
        draft = self.draft
        self._connect([index], self._sources(shape["body"]))
        ends = self._ends(shape["body"])
        if shape["orelse"]:
            self._connect(ends, self._sources(shape["orelse"]))
            ends = self._ends(shape["orelse"])
        thrown = [index, *draft.lists[shape["body"][0]].statements]
        for number in shape["handlers"]:
            handler = draft.lists[number].owner
            self._connect(thrown, [handler])
            self._connect([handler], self.list_sources[number])
            ends = ends + self.list_exits[number]
            thrown = [handler]
        if not shape["finalbody"]:
            return ends
        unmatched = [] if index in draft.complete else thrown[:1]
        detained = [way for _, way in draft.ways.get(index, [])] + self.detained.get(index, [])
        self._connect([*ends, *unmatched, *detained], self._sources(shape["finalbody"]))
        leaving = self._ends(shape["finalbody"])
        for kind, meets in draft.onward.get(index, []):
            self._lead_on(kind, meets, leaving)
        return leaving

    def _lead_on(self, kind: str, meets: int, leaving: list[int]) -> None:
        """Let `break`, `continue` or `return` go on after a `finally`."""
        if meets < 0:
            return
        if self.draft.rows[meets][0] in ("Try", "TryStar"):
            self.detained.setdefault(meets, []).extend(leaving)
        elif kind == "break":
            self.breaks.setdefault(meets, []).extend(leaving)
        else:
            self._connect(leaving, [meets])

    def _sources(self, lists: list[int]) -> list[int]:
        return [source for number in lists for source in self.list_sources[number]]

    def _ends(self, lists: list[int]) -> list[int]:
        return [end for number in lists for end in self.list_exits[number]]

    def _connect(self, sources, targets) -> None:
        for source in sources:
            for target in targets:
                self.edges[(source, target)] = None
        if len(self.edges) > MAX_EDGES:
            raise ValueError(
                f"the function {self.draft.name!r} has more than {MAX_EDGES:,} CFG_NEXT edges: "
                "it is too large for a data-flow graph; split it, or use kind='ast'"
            )
