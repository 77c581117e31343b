"""The paper's configurations for naming functions: SAT as its authors trained it, and SAT++."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from magnetite.code.graph import EDGE_NAMES, EDGE_TYPES, NODE_TYPES
from magnetite.nn.embeddings import CategoryEdges, CategoryNodes
from magnetite.nn.encoders import MagLapNet, PositionEncoder, SignGNN
from magnetite.nn.gnn import GCN, GNN
from magnetite.nn.heads import SequenceHead
from magnetite.nn.models import DigraphTransformer

PUBLISHED_PARAMETERS = 14_378_069
"""Number of parameters that the paper's authors report for SAT++ with magnetic encodings on OGB's Code2."""


NODES = {"node_type": len(NODE_TYPES), "attribute": 10_030, "depth": 21}
EDGES = {
    "dataflow": {"edge_type": len(EDGE_TYPES), "edge_name": len(EDGE_NAMES)},
    "ast": {"edge_type": len(EDGE_TYPES), "edge_direction": 2},
    "ast-directed": {"edge_type": len(EDGE_TYPES)},
    "tokens": {"edge_type": len(EDGE_TYPES)},
    "dataflow-sequential": {"edge_type": len(EDGE_TYPES), "edge_name": len(EDGE_NAMES)},
}
"""The edge features that distinguish the edges of each kind of graph."""


@dataclass(frozen=True)
class CodeSizes:
    """Vocabulary sizes of a data set of functions; by default, all graphs of `magnetite.code` fit.

    Args:
        nodes: Number of categories of each node feature, by name.
        edges: Number of categories of each edge feature, by name.
        words: Number of words of function names; the last two are "unknown" and "end of name".
        length: Number of words per name.

    >>> from magnetite import code
    >>> graph = code.build("def f(a):\\n    return a", kind="ast-directed").digraphs
    >>> sat_plus_plus(CodeSizes.of("ast-directed", words=12), width=32, layers=1)(graph).shape
    torch.Size([1, 5, 12])
    """

    nodes: Mapping[str, int] = field(default_factory=NODES.copy)
    edges: Mapping[str, int] = field(default_factory=EDGES["ast"].copy)
    words: int = 5_002
    length: int = 5

    @classmethod
    def of(cls, kind: str, attributes: int = NODES["attribute"], words: int = 5_002, length: int = 5) -> "CodeSizes":
        """The sizes of graphs of one kind, with the edge features that distinguish their edges.

        Args:
            kind: "dataflow", "ast", "ast-directed", "tokens" or "dataflow-sequential".
            attributes: Number of categories of attributes, `len(vocabulary)`.
            words: Number of words of function names; the last two are "unknown" and "end of name".
            length: Number of words per name.
        """
        if kind not in EDGES:
            raise ValueError(f"kind must be one of {', '.join(map(repr, EDGES))}, got {kind!r}")
        return cls(NODES | {"attribute": attributes}, EDGES[kind], words, length)


PUBLISHED_SIZES = CodeSizes(NODES | {"node_type": 98}, {"edge_type": 2, "edge_direction": 2})
"""The sizes of OGB's own node and edge types, with which the published number of parameters was counted."""


def sat(sizes: CodeSizes | None = None, width: int = 256, layers: int = 4) -> DigraphTransformer:
    """SAT as its authors trained it: a GCN for queries and keys, ReLU, a mean readout, and no positions but the depth.

    Args:
        sizes: Vocabulary sizes; `CodeSizes()` by default.
        width: Size of a node's state.
        layers: Number of layers.

    >>> sat(PUBLISHED_SIZES).parameter_count
    14035122
    """
    sizes = sizes if sizes is not None else CodeSizes()
    return DigraphTransformer(
        width,
        layers,
        head=SequenceHead(sizes.words, sizes.length, readout="mean"),
        embedding=CategoryNodes(sizes.nodes),
        dropout=0.2,
        activation="relu",
        local=GCN(width, edge_features=CategoryEdges(sizes.edges)),
        degree_scaled=True,
    )


def sat_plus_plus(
    sizes: CodeSizes | None = None, width: int = 256, layers: int = 4, position: PositionEncoder | None = None
) -> DigraphTransformer:
    """SAT++: a directed GNN for queries and keys, GELU, a graph token, and dropout of node attributes.

    `model.head.lowered` lowers the probabilities of the words "unknown" and "end of name", by the offsets that the
    paper's authors tuned on validation for the data-flow graph.

    Args:
        sizes: Vocabulary sizes; `CodeSizes()` by default.
        width: Size of a node's state.
        layers: Number of layers.
        position: Position encoder; by default that of the paper's best result, a SignNet with a GNN over 25
            eigenvectors of the magnetic Laplacian.

    >>> sat_plus_plus(PUBLISHED_SIZES).parameter_count
    14408213
    """
    sizes = sizes if sizes is not None else CodeSizes()
    lowered = {sizes.words - 2: 0.75, sizes.words - 1: 0.45}
    return DigraphTransformer(
        width,
        layers,
        head=SequenceHead(sizes.words, sizes.length, lowered=lowered),
        position=position if position is not None else MagLapNet(25, width, scaling="none", sign=SignGNN()),
        embedding=CategoryNodes(sizes.nodes, dropout={"attribute": 0.15}),
        local=GNN(width, edge_features=CategoryEdges(sizes.edges)),
        degree_scaled=True,
    )
