"""The paper's configurations for naming functions: SAT as its authors trained it, and SAT++."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from magnetite.nn.embeddings import CategoryEdges, CategoryNodes
from magnetite.nn.encoders import MagLapNet, PositionEncoder, SignGNN
from magnetite.nn.gnn import GCN, GNN
from magnetite.nn.heads import SequenceHead
from magnetite.nn.models import DigraphTransformer

PUBLISHED_PARAMETERS = 14_378_069
"""Number of parameters that the paper's authors report for SAT++ with magnetic encodings on OGB's Code2."""


@dataclass(frozen=True)
class CodeSizes:
    """Vocabulary sizes of a data set of functions; the defaults are those of OGB's Code2.

    Args:
        nodes: Number of categories of each node feature, by name.
        edges: Number of categories of each edge feature, by name.
        words: Number of words of function names; the last two are "unknown" and "end of name".
        length: Number of words per name.
    """

    nodes: Mapping[str, int] = field(default_factory=lambda: {"node_type": 98, "attribute": 10_030, "depth": 21})
    edges: Mapping[str, int] = field(default_factory=lambda: {"edge_type": 2, "edge_direction": 2})
    words: int = 5_002
    length: int = 5


def sat(sizes: CodeSizes | None = None, width: int = 256, layers: int = 4) -> DigraphTransformer:
    """SAT as its authors trained it: a GCN for queries and keys, ReLU, a mean readout, and no positions but the depth.

    Args:
        sizes: Vocabulary sizes; those of OGB's Code2 by default.
        width: Size of a node's state.
        layers: Number of layers.

    >>> sat().parameter_count
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

    At evaluation, the logits of the words "unknown" and "end of name" are lowered.

    Args:
        sizes: Vocabulary sizes; those of OGB's Code2 by default.
        width: Size of a node's state.
        layers: Number of layers.
        position: Position encoder; by default that of the paper's best result, a SignNet with a GNN over 25
            eigenvectors of the magnetic Laplacian.

    >>> sat_plus_plus().parameter_count
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
