"""CodeGraph: the directed graph of one function, whichever builder made it."""

from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from magnetite.code.vocabulary import EDGE_NAME_NUMBER, EDGE_TYPE_NUMBER, NODE_TYPE_NUMBER
from magnetite.graphs import Digraphs

if TYPE_CHECKING:
    import networkx as nx


class Edge(NamedTuple):
    """A typed, named edge from node `source` to node `target`."""

    source: int
    target: int
    type: str
    name: str = ""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CodeGraph:
    """One function as a directed graph. Node 0 is the function; every column has one entry a node.

    `attributes` holds names and constants as text and None where a node has neither, so the constant `None` (the text
    "None") differs from no attribute. `lines` counts from the source's first line, 0 where a node has no line.

    >>> from magnetite import code
    >>> graph = code.build("def f(a, b):\\n    return a + b")
    >>> graph
    CodeGraph(f, dataflow, 11 nodes, 13 edges)
    >>> graph.hash == code.build("def f(a, b):\\n    return b + a").hash
    True
    """

    kind: str
    name: str
    types: tuple[str, ...]
    attributes: tuple[str | None, ...]
    depths: tuple[int, ...]
    lines: tuple[int, ...]
    edges: tuple[Edge, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.types)

    def __repr__(self) -> str:
        return f"CodeGraph({self.name}, {self.kind}, {len(self)} nodes, {len(self.edges)} edges)"

    @cached_property
    def hash(self) -> str:
        """Canonical hash: equal for graphs that differ only in the numbering of their nodes; see `code.hashing`."""
        from magnetite.code.hashing import canonical_hash

        return canonical_hash(self)

    @cached_property
    def digraphs(self) -> Digraphs:
        """A container of this one graph, with the numbers of `code.vocabulary` as features.

        Attributes are open-ended text and stay in `attributes`.
        """
        columns = list(zip(*self.edges, strict=True)) or [(), (), (), ()]
        sources, targets, types, names = columns
        graph = Digraphs.from_edges(torch.tensor([sources, targets], dtype=torch.int32), num_nodes=len(self))
        return graph.replace(
            node_features={
                "node_type": torch.tensor([NODE_TYPE_NUMBER.get(name, 0) for name in self.types]),
                "depth": torch.tensor(self.depths),
            },
            edge_features={
                "edge_type": torch.tensor([EDGE_TYPE_NUMBER[name] for name in types], dtype=torch.int64),
                "edge_name": torch.tensor([EDGE_NAME_NUMBER.get(name, 0) for name in names], dtype=torch.int64),
            },
        )

    def to_networkx(self) -> "nx.MultiDiGraph":
        """With `type`, `attribute`, `depth` and `line` on the nodes, `type` and `name` on the edges."""
        import networkx as nx

        graph = nx.MultiDiGraph(kind=self.kind, name=self.name)
        rows = zip(self.types, self.attributes, self.depths, self.lines, strict=True)
        for node, (kind, attribute, depth, line) in enumerate(rows):
            graph.add_node(node, type=kind, attribute=attribute, depth=depth, line=line)
        for source, target, kind, name in self.edges:
            graph.add_edge(source, target, type=kind, name=name)
        return graph

    def to_pyg(self) -> Any:
        """As a PyG `Data`, with the features of `digraphs`."""
        return self.digraphs.to_pyg()[0]

    def to_svg(self) -> str:
        """Drawn in layers, as the text of an SVG file."""
        # Bound at run time: the drawing imports this file.
        return import_module("magnetite.code.drawing").to_svg(self)
