"""Eigenpairs of the magnetic and the combinatorial Laplacian."""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.encodings.checks import SIZE, Domain, check_dtype, check_fields, check_graphs, later
from magnetite.encodings.potentials import settled
from magnetite.encodings.results import Eigenpairs
from magnetite.encodings.solve import solve
from magnetite.graphs import Digraphs
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.memory import check_memory
from magnetite.linalg.phase import convention_named
from magnetite.linalg.potential import Adaptive, Potential, checked_potential
from magnetite.packed import starts

PARALLEL = Domain(choices=("summed", "once"))
"""What several edges from one node to another weigh together."""


@dataclass(frozen=True)
class MagneticLaplacian:
    """The k lowest eigenpairs of the magnetic Laplacian, whose phases encode the directions of the edges.

    `L_N = I − (D_s^{-1/2} A_s D_s^{-1/2}) ⊙ exp(iΘ)` with `Θ[u,v] = ±2πq` along a one-way edge, or
    `L_U = D_s − A_s ⊙ exp(iΘ)`. Eigenpairs are computed and verified in double precision. With `q = 0` the Laplacian is
    real.

    Args:
        k: Number of eigenpairs.
        q: Potential: `Adaptive()`, absolute (a number in `[0, 0.5]`), `Relative(q')`, or a tuple or list of these,
            which adds an axis `Q` before `k`.
        normalised: Whether to use `L_N` instead of `L_U`.
        convention: How weights and directions become a matrix, a name in `magnetite.linalg.phase.CONVENTIONS`.
        root: Name of the graph feature that holds the root node of each graph, at which phases are zero; by default
            the root is the foremost source.
        dtype: Type of the result, float32 or float64.
        precision: "double", or "single" to let a GPU compute in single precision: faster, with residuals below 2e-5,
            but less accurate for vectors of close eigenvalues.
        parallel: What several edges from one node to another weigh: "summed", or "once" for the largest of them alone.

    >>> path = Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])
    >>> pairs = MagneticLaplacian(k=2)(path)
    >>> pairs[0].vectors[:, 0].angle().rad2deg().round().tolist()
    [0.0, -30.0, -60.0, -90.0]
    """

    k: Annotated[int, SIZE]
    q: Potential | tuple[Potential, ...] = Adaptive()  # noqa: RUF009 (frozen)
    normalised: bool = True
    convention: str = "paper"
    root: str | None = None
    dtype: torch.dtype = torch.float32
    precision: str = "double"
    parallel: Annotated[str, PARALLEL] = later("summed")

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "q", checked_potential(self.q))
        convention_named(self.convention)
        check_dtype(self.dtype)
        if self.precision not in ("double", "single"):
            raise ValueError(f"precision must be 'double' or 'single', got {self.precision!r}")

    def __call__(self, graphs: Digraphs) -> Eigenpairs:
        """Encode every graph."""
        potentials = self.q if isinstance(self.q, tuple) else (self.q,)
        check_graphs(graphs)
        graphs = merged(graphs) if self.parallel == "once" else graphs
        parts = [self._single(graphs, q) for q in settled(graphs, potentials)]
        if not isinstance(self.q, tuple):
            return parts[0]
        stacked = {name: torch.stack([getattr(part, name) for part in parts], dim=1) for name in Eigenpairs.axes}
        return Eigenpairs(node_ptr=graphs.node_ptr, **stacked)

    def _single(self, graphs: Digraphs, q: Potential | Tensor) -> Eigenpairs:
        operator = Operator(q, self.normalised, self.convention)
        return _encode(graphs, self.k, operator, self.dtype.to_complex(), self.root, self.precision == "single")


@dataclass(frozen=True)
class Laplacian:
    """The k lowest eigenpairs of the combinatorial Laplacian `L_N = I − D_s^{-1/2} A_s D_s^{-1/2}`, ignoring direction.

    The vectors are real; the sign of each is chosen as in `MagneticLaplacian`.

    Args:
        k: Number of eigenpairs.
        normalised: Whether to use `L_N` instead of `L_U = D_s − A_s`.
        root: Name of the graph feature that holds the root node of each graph; by default the foremost source.
        dtype: Type of the result, float32 or float64.
        parallel: What several edges from one node to another weigh: "summed", or "once" for the largest of them alone.

    >>> Laplacian(k=2, normalised=False)(Digraphs.from_edges([[0, 2], [1, 3]])).values.tolist()
    [[0.0, 0.0]]
    """

    k: Annotated[int, SIZE]
    normalised: bool = True
    root: str | None = None
    dtype: torch.dtype = torch.float32
    parallel: Annotated[str, PARALLEL] = later("summed")

    def __post_init__(self) -> None:
        check_fields(self)
        check_dtype(self.dtype)

    def __call__(self, graphs: Digraphs) -> Eigenpairs:
        """Encode every graph."""
        check_graphs(graphs)
        graphs = merged(graphs) if self.parallel == "once" else graphs
        return _encode(graphs, self.k, Operator(0, self.normalised), self.dtype, self.root)


def merged(graphs: Digraphs) -> Digraphs:
    """The graphs with one edge in place of several from one node to another, of the largest of their weights.

    Args:
        graphs: The graphs; features of edges are left out.

    >>> merged(Digraphs.from_edges([[0, 0, 1], [1, 1, 0]])).edges.tolist()
    [[0, 1], [1, 0]]
    """
    source, target = graphs.edges.long() + graphs.node_ptr[graphs.edge_graph]
    keys, place = torch.unique(source * graphs.num_nodes + target, return_inverse=True)  # sorted, so graph by graph
    kept = torch.zeros(len(keys), dtype=torch.long, device=graphs.device)
    graph = kept.scatter(0, place, graphs.edge_graph.long())
    counts = torch.zeros_like(graphs.sizes).index_add(0, graph, torch.ones_like(graph))
    edges = torch.stack([keys // max(1, graphs.num_nodes), keys % max(1, graphs.num_nodes)]) - graphs.node_ptr[graph]
    weights = graphs.weights
    if weights is not None:
        weights = weights.new_zeros(len(keys)).scatter_reduce(0, place, weights, "amax", include_self=False)
    return graphs.replace(
        edges=edges.to(graphs.edges.dtype), edge_ptr=starts(counts), weights=weights, edge_features={}
    )


def _encode(
    graphs: Digraphs, k: int, operator: Operator, dtype: torch.dtype, root_name: str | None, single: bool = False
) -> Eigenpairs:
    check_graphs(graphs)
    needed = graphs.num_nodes * k * dtype.itemsize
    check_memory(needed, graphs.device, f"k={k} for {graphs.num_nodes} nodes", "choose a smaller k, or fewer graphs")
    return solve(graphs, operator, None if root_name is None else _roots(graphs, root_name), k, dtype, single)


def _roots(graphs: Digraphs, name: str) -> Int[Tensor, " b"]:
    if name not in graphs.graph_features:
        known = ", ".join(graphs.graph_features) or "none"
        raise ValueError(
            f"the graphs have no graph feature {name!r} for the roots, only: {known}; add it, or omit root"
        )
    roots = graphs.graph_features[name].long()
    wrong = ((roots < 0) | (roots >= graphs.sizes)).nonzero()
    if wrong.numel():
        graph = int(wrong[0])
        raise ValueError(
            f"root {int(roots[graph])} of graph {graph} is not one of its nodes 0…{int(graphs.sizes[graph]) - 1}"
        )
    return roots
