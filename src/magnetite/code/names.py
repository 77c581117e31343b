"""Every place where a function names a variable, and which variable it means."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from magnetite.code.scopes import Scope, ScopeKind, Variable, resolve

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Occurrence:
    """A variable's name in a field of a node, or at one place of a field that is a list."""

    variable: Variable
    node: ast.AST
    field: str
    place: int | None = None

    @property
    def is_local(self) -> bool:
        """Whether the name stands for a variable of the function or of one inside it; known once all was read."""
        meant = resolve(self.variable)
        return meant.bound and meant.scope.kind in ("function", "comprehension")

    def write(self, name: str) -> None:
        """Put another name here."""
        if self.place is None:
            setattr(self.node, self.field, name)
        else:
            getattr(self.node, self.field)[self.place] = name


@dataclass
class Names(ast.NodeVisitor):
    """Reads a function and lists the occurrences of names in it, each in its scope."""

    scope: Scope = field(default_factory=lambda: Scope("module", None, 0))
    occurrences: list[Occurrence] = field(default_factory=list)
    calls: list[tuple[Variable, ast.Call]] = field(default_factory=list)
    """Calls by name."""
    definitions: list[tuple[Variable, FunctionNode]] = field(default_factory=list)
    """Functions by name."""

    @classmethod
    def of(cls, function: FunctionNode) -> "Names":
        """Of a function that stands in a module of its own."""
        names = cls()
        names.visit(function)
        return names

    def visit_Name(self, node: ast.Name) -> None:
        """A use, or a binding in the scope at hand."""
        self._note(node, "id", binds=not isinstance(node.ctx, ast.Load))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """`:=` binds outside all comprehensions."""
        self.visit(node.value)
        here, self.scope = self.scope, self.scope.for_walrus()
        self.visit(node.target)
        self.scope = here

    def visit_FunctionDef(self, node: FunctionNode) -> None:
        """The name, decorators, defaults and annotations belong outside; parameters and body inside."""
        self.definitions.append((self._note(node, "name"), node))
        self._visit_all([*node.decorator_list, *_outer_parts(node.args), node.returns])
        self._enter("function", [*getattr(node, "type_params", ()), *parameters(node.args), *node.body])

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Defaults belong outside."""
        self._visit_all(_outer_parts(node.args))
        self._enter("function", [*parameters(node.args), node.body])

    def visit_arg(self, node: ast.arg) -> None:
        """A parameter; its annotation was read outside."""
        self._note(node, "arg")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Bases and decorators belong outside."""
        self._note(node, "name")
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        self._enter("class", [*getattr(node, "type_params", ()), *node.body])

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """The first iterable belongs outside."""
        first, *rest = node.generators
        self.visit(first.iter)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._enter("comprehension", [first.target, *first.ifs, *rest, *elements])

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Global(self, node: ast.Global) -> None:
        """The names mean those of the module."""
        self.scope.declared_global.update(node.names)
        self._note_list(node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        """The names mean those of a function around."""
        self.scope.declared_nonlocal.update(node.names)
        self._note_list(node)

    def visit_alias(self, node: ast.alias) -> None:
        """`import a.b` binds `a`, which cannot be renamed; all other imports can take another name."""
        variable = self.scope.binding(node.asname or node.name.split(".")[0], imported=True)
        fixed = "." in node.name and node.asname is None
        self.occurrences.append(Occurrence(variable, node, "name" if fixed else "asname"))

    def visit_Call(self, node: ast.Call) -> None:
        """Remember calls by name, whose keywords name parameters."""
        if isinstance(node.func, ast.Name):
            self.calls.append((self.scope.variable(node.func.id), node))
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        """Handlers, patterns and type parameters bind a plain string."""
        for bound in BINDING_FIELDS.get(type(node).__name__, ()):
            if getattr(node, bound) is not None:
                self._note(node, bound)
        super().generic_visit(node)

    def _note(self, node: ast.AST, name: str, binds: bool = True) -> Variable:
        text = getattr(node, name)
        variable = self.scope.binding(text) if binds else self.scope.variable(text)
        self.occurrences.append(Occurrence(variable, node, name))
        return variable

    def _note_list(self, node: ast.Global | ast.Nonlocal) -> None:
        for place, name in enumerate(node.names):
            self.occurrences.append(Occurrence(self.scope.variable(name), node, "names", place))

    def _enter(self, kind: ScopeKind, nodes: Iterable[ast.AST | None]) -> None:
        outer, self.scope = self.scope, Scope(kind, self.scope, 0)
        self._visit_all(nodes)
        self.scope = outer

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)


BINDING_FIELDS = {
    "ExceptHandler": ("name",),
    "MatchAs": ("name",),
    "MatchStar": ("name",),
    "MatchMapping": ("rest",),
    "TypeVar": ("name",),
    "ParamSpec": ("name",),
    "TypeVarTuple": ("name",),
}
"""Fields that hold the name of a variable as a plain string."""


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function."""
    single = [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *single]


def _outer_parts(arguments: ast.arguments) -> list[ast.expr | None]:
    return [*arguments.defaults, *arguments.kw_defaults, *(arg.annotation for arg in parameters(arguments))]
