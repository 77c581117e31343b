"""Scopes and variables: which binding a name refers to.

Names are resolved after the whole function has been read, since a binding further down makes a name local. Until then a
`Variable` stands for "this name, seen from this scope"; `resolve` finds the variable of the scope that binds it.
"""

from typing import Any, Literal

ScopeKind = Literal["module", "class", "function", "comprehension", "types"]


class Variable:
    """A name as seen from one scope, and the results of the analysis of the variable that it refers to."""

    __slots__ = (
        *(
            "bound",
            "functions",
            "imported",
            "kept",
            "method",
            "name",
            "plain",
            "plain_from",
            "rebound",
            "root",
            "scope",
        ),
        *("batch", "behind", "heap", "killed", "mask", "through", "used", "writes"),
    )

    def __init__(self, name: str, scope: "Scope"):
        self.name, self.scope = name, scope
        self.bound = False
        """Whether this scope binds the name."""
        self.imported = False
        """Whether only imports bind it."""
        self.functions: list[int] = []
        """Units (functions, lambdas, methods of a class) that the name may refer to."""
        self.kept: list[int] = []
        """Units that the objects behind the variable may refer to."""
        self.method = False
        """Whether it may refer to a method that changes its receiver."""
        self.root: Variable = self
        self.plain = 0
        """How many of its bindings are evidently to numbers or strings, provided that all of `plain_from` are such."""
        self.plain_from: list[Variable] = []
        self.rebound = 0
        """Number of bindings, those that are made from inner scopes excepted."""
        # Filled in by `locations`.
        self.batch = self.mask = self.used = self.behind = self.killed = self.writes = 0
        self.heap: Any = None
        self.through: dict[object, int] = {}

    def bind(self, imported: bool = False) -> "Variable":
        """Record a binding."""
        self.imported = imported and (self.imported or not self.bound)
        self.bound = True
        self.rebound += 1
        return self

    @property
    def is_local(self) -> bool:
        """Whether the function (or one inside it) binds the variable to something other than a module."""
        return self.bound and not self.imported


class Scope:
    """A namespace of the source.

    Args:
        kind: What opens the scope.
        parent: The scope around it, None for the module.
        unit: The function body that it belongs to.
    """

    __slots__ = ("declared_global", "declared_nonlocal", "first_parameter", "kind", "names", "parent", "unit")

    def __init__(self, kind: ScopeKind, parent: "Scope | None", unit: int):
        self.kind, self.parent, self.unit = kind, parent, unit
        self.names: dict[str, Variable] = {}
        self.declared_global: set[str] = set()
        self.declared_nonlocal: set[str] = set()
        self.first_parameter: str | None = None

    def variable(self, name: str) -> Variable:
        """The name as seen from here."""
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = Variable(name, self)
        return found

    def binding(self, name: str, imported: bool = False) -> Variable:
        """The name where this scope binds it; a `global` or `nonlocal` name is bound where its declaration says."""
        if name in self.declared_global:
            self.module.variable(name).bind(imported)
        elif name not in self.declared_nonlocal:
            return self.variable(name).bind(imported)
        return self.variable(name)

    def for_walrus(self) -> "Scope":
        """The scope in which `:=` binds: outside all comprehensions."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def function(self) -> "Scope | None":
        """The innermost function around this scope, to which `super()` refers."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "function":
            scope = scope.parent
        return scope

    @property
    def module(self) -> "Scope":
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


def resolve(variable: Variable) -> Variable:
    """The variable that a name refers to; one of the module if nothing in the function binds it.

    >>> module = Scope("module", None, 0)
    >>> outer = Scope("function", module, 0)
    >>> inner = Scope("function", outer, 1)
    >>> resolve(inner.variable("x")) is outer.binding("x")
    False
    >>> resolve(inner.variable("x")) is outer.variable("x")
    True
    """
    name, scope = variable.name, variable.scope
    if variable.bound and name not in scope.declared_global:
        return variable
    while scope.parent is not None:
        if name in scope.declared_global:
            return scope.module.variable(name)
        scope = scope.parent
        found = scope.names.get(name)
        if found is not None and found.bound and scope.kind != "class" and name not in scope.declared_global:
            return found
    return scope.variable(name)
