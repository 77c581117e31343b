"""Renaming: other names for the variables of a function, scope by scope."""

import ast
import keyword
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from magnetite.code.dataflow.scopes import Scope, ScopeKind, Variable, resolve
from magnetite.code.source import parse_function, recursion_guard, text_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

INTROSPECTION = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""Functions that see the names of variables."""

KEPT = frozenset({"self", "cls"})
"""Conventional names, which `random_names` keeps."""

BINDING_FIELDS = {"MatchMapping": "rest"} | dict.fromkeys(
    ("ExceptHandler", "MatchAs", "MatchStar", "TypeVar", "ParamSpec", "TypeVarTuple"), "name"
)
"""Fields that hold the name of a variable as a plain string."""


def rename(source: str, names: Mapping[str, str], name: str | None = None) -> str:
    """Rename variables of one function: parameters, locals, targets of loops and comprehensions, imports.

    Globals, attributes and class members keep their names, also where a variable of the same name is renamed. Keyword
    arguments follow the parameters of the function and of those inside it. Comments and formatting are not preserved.

    Args:
        source: Python source that defines the function.
        names: New name of each variable.
        name: Name or qualified name of the function; needed where the source defines several.

    >>> print(rename("def f(xs):\\n    return [x.n for x in xs]", {"x": "item", "xs": "items"}))
    def f(items):
        return [item.n for item in items]
    """
    tree, function = parse_function(source, name)
    with recursion_guard():
        found = Names.of(function)
    _check(found, names)
    for definition, call in _calls(function, found):
        _rename_keywords(call, definition, names)
    for occurrence in found.occurrences:
        if occurrence.is_local and occurrence.variable.name in names:
            occurrence.write(names[occurrence.variable.name])
    return text_of(tree)


def random_names(source: str, seed: int, name: str | None = None) -> dict[str, str]:
    """Random new names for all variables of a function but `self` and `cls`, to be given to `rename`.

    Args:
        source: Python source that defines the function.
        seed: Seed of the random numbers.
        name: Name or qualified name of the function; needed where the source defines several.

    >>> random_names("def f(self, a, b): return a + b", seed=0)
    {'a': 'v6', 'b': 'v8'}
    """
    with recursion_guard():
        found = Names.of(parse_function(source, name)[1])
    taken = {occurrence.variable.name for occurrence in found.occurrences}
    old = [variable for variable in _variables(found) if variable not in KEPT]
    fresh = [word for word in (f"v{number}" for number in range(2 * len(taken) + 1)) if word not in taken]
    return dict(zip(old, random.Random(seed).sample(fresh, len(old)), strict=True))


def _variables(found: "Names") -> list[str]:
    """The names that can be replaced: those of local variables, except modules imported by a dotted name."""
    dotted = {use.variable.name for use in found.occurrences if isinstance(use.node, ast.alias) and use.field == "name"}
    return sorted({use.variable.name for use in found.occurrences if use.is_local} - dotted)


def _check(found: "Names", names: Mapping[str, str]) -> None:
    variables = _variables(found)
    for old, new in names.items():
        if old not in variables:
            raise ValueError(f"{old!r} is not a variable of the function: choose from {', '.join(variables) or 'none'}")
        if not new.isidentifier() or keyword.iskeyword(new) or new == "_":
            raise ValueError(f"{new!r} cannot be the name of a variable: choose an identifier for {old!r}")
    if len(set(names.values())) < len(names):
        raise ValueError(f"the new names must be distinct, got {', '.join(sorted(names.values()))}")
    kept = {use.variable.name for use in found.occurrences if not (use.is_local and use.variable.name in names)}
    for new in kept & set(names.values()):
        raise ValueError(f"{new!r} is already in use in the function: choose another name")
    for looking in kept & INTROSPECTION:
        raise ValueError(f"the function calls {looking}, which sees the names of variables: they cannot be renamed")


def _calls(function: FunctionNode, found: "Names") -> Iterator[tuple[FunctionNode, ast.Call]]:
    """Calls of the function, by its name or as a method of its first parameter, and of functions inside it."""
    defined: dict[Variable, list[FunctionNode]] = {}
    for variable, definition in found.definitions:
        defined.setdefault(resolve(variable), []).append(definition)
    for variable, call in found.calls:
        yield from ((definition, call) for definition in defined.get(resolve(variable), ()))
    first = next((argument.arg for argument in parameters(function.args)), None)
    for node in ast.walk(function):
        match node:
            case ast.Call(ast.Attribute(ast.Name(receiver), attr)) if receiver == first and attr == function.name:
                yield function, node


def _rename_keywords(call: ast.Call, definition: FunctionNode, names: Mapping[str, str]) -> None:
    """Rename the keywords that name parameters of the called function."""
    known = {argument.arg for argument in parameters(definition.args)}
    for argument in call.keywords:
        if argument.arg in known:
            argument.arg = names.get(argument.arg, argument.arg)


@dataclass(frozen=True)
class Occurrence:
    """A variable's name in a field of a syntax node, or at one index of a field that is a list."""

    variable: Variable
    node: ast.AST
    field: str
    index: int | None = None

    @property
    def is_local(self) -> bool:
        """Whether the name refers to a variable of the function or of one inside it; valid when all has been read."""
        root = resolve(self.variable)
        return root.bound and root.scope.kind in ("function", "comprehension")

    def write(self, name: str) -> None:
        """Replace the name."""
        if self.index is None:
            setattr(self.node, self.field, name)
        else:
            getattr(self.node, self.field)[self.index] = name


@dataclass
class Names(ast.NodeVisitor):
    """Collects the occurrences of names in a function, each in its scope."""

    scope: Scope = field(default_factory=lambda: Scope("module", None, 0))
    occurrences: list[Occurrence] = field(default_factory=list)
    calls: list[tuple[Variable, ast.Call]] = field(default_factory=list)
    """Calls by name."""
    definitions: list[tuple[Variable, FunctionNode]] = field(default_factory=list)
    """Functions by name."""

    @classmethod
    def of(cls, function: FunctionNode) -> "Names":
        """The names of a function in a module of its own."""
        names = cls()
        names.visit(function)
        return names

    def visit_Name(self, node: ast.Name) -> None:
        """A use, or a binding in the current scope."""
        self._note(node, "id", binds=not isinstance(node.ctx, ast.Load))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """`:=` binds outside all comprehensions."""
        self.visit(node.value)
        here, self.scope = self.scope, self.scope.for_walrus()
        self.visit(node.target)
        self.scope = here

    def visit_FunctionDef(self, node: FunctionNode) -> None:
        """Name, decorators, defaults and annotations are outside, parameters and body inside."""
        self.definitions.append((self._note(node, "name"), node))
        self._visit_all([*node.decorator_list, *_outer_parts(node.args), node.returns])
        self._enter("function", [*getattr(node, "type_params", ()), *parameters(node.args), *node.body])

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Defaults are outside."""
        self._visit_all(_outer_parts(node.args))
        self._enter("function", [*parameters(node.args), node.body])

    def visit_arg(self, node: ast.arg) -> None:
        """A parameter; its annotation has been read outside."""
        self._note(node, "arg")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Bases and decorators are outside."""
        self._note(node, "name")
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        self._enter("class", [*getattr(node, "type_params", ()), *node.body])

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """The first iterable is outside."""
        first, *rest = node.generators
        self.visit(first.iter)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._enter("comprehension", [first.target, *first.ifs, *rest, *elements])

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Global(self, node: ast.Global) -> None:
        """The names refer to the module."""
        self.scope.declared_global.update(node.names)
        self._note_list(node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        """The names refer to an enclosing function."""
        self.scope.declared_nonlocal.update(node.names)
        self._note_list(node)

    def visit_alias(self, node: ast.alias) -> None:
        """`import a.b` binds `a`, which cannot be renamed; all other imports can."""
        variable = self.scope.binding(node.asname or node.name.split(".")[0], imported=True)
        fixed = "." in node.name and node.asname is None
        self.occurrences.append(Occurrence(variable, node, "name" if fixed else "asname"))

    def visit_Call(self, node: ast.Call) -> None:
        """Record calls by name, whose keywords name parameters."""
        if isinstance(node.func, ast.Name):
            self.calls.append((self.scope.variable(node.func.id), node))
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        """Handlers, patterns and type parameters bind a plain string."""
        bound = BINDING_FIELDS.get(type(node).__name__)
        if bound is not None and getattr(node, bound) is not None:
            self._note(node, bound)
        super().generic_visit(node)

    def _note(self, node: ast.AST, name: str, binds: bool = True) -> Variable:
        text = getattr(node, name)
        variable = self.scope.binding(text) if binds else self.scope.variable(text)
        self.occurrences.append(Occurrence(variable, node, name))
        return variable

    def _note_list(self, node: ast.Global | ast.Nonlocal) -> None:
        for index, name in enumerate(node.names):
            self.occurrences.append(Occurrence(self.scope.variable(name), node, "names", index))

    def _enter(self, kind: ScopeKind, nodes: Iterable[ast.AST | None]) -> None:
        outer, self.scope = self.scope, Scope(kind, self.scope, 0)
        self._visit_all(nodes)
        self.scope = outer

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function."""
    single = [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *single]


def _outer_parts(arguments: ast.arguments) -> list[ast.expr | None]:
    return [*arguments.defaults, *arguments.kw_defaults, *(arg.annotation for arg in parameters(arguments))]
