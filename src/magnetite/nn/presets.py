"""The paper's configurations for naming functions: SAT as its authors trained it, and SAT++."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from magnetite.nn.embeddings import CategoryEdges, CategoryNodes
from magnetite.nn.encoders import MagLapNet, PositionEncoder, SignGNN
from magnetite.nn.gnn import GCN, GNN
from magnetite.nn.heads import SequenceHead
from magnetite.nn.models import DigraphTransformer

PUBLISHED_PARAMETERS = 14_378_069
"""What the paper's authors report for SAT++ with magnetic encodings on OGB's Code2."""


@dataclass(frozen=True)
class CodeSizes:
    """How many of each feature a data set of functions has; as they are, those of OGB's Code2.

    The last two words are the unknown one and the end.
    """

    nodes: Mapping[str, int] = field(default_factory=lambda: {"node_type": 98, "attribute": 10_030, "depth": 21})
    edges: Mapping[str, int] = field(default_factory=lambda: {"edge_type": 2, "edge_direction": 2})
    words: int = 5_002
    length: int = 5


def sat(sizes: CodeSizes | None = None, width: int = 256, layers: int = 4) -> DigraphTransformer:
    """SAT: query and key from a GCN with edge features, ReLU, the mean of the nodes; no positions but the depth.

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
    """SAT++: query and key from a GNN that knows directions, GELU, a token for the graph, dropped attributes.

    `position` is, unless another one is given, that of the paper's best result: 25 eigenvectors of the magnetic
    Laplacian, through a SignNet with a GNN. At evaluation the unknown word and the end are lowered.

    >>> sat_plus_plus().parameter_count
    14408213
    """
    sizes = sizes if sizes is not None else CodeSizes()
    lowered = {sizes.words - 2: 0.75, sizes.words - 1: 0.45}
    return DigraphTransformer(
        width,
        layers,
        head=SequenceHead(sizes.words, sizes.length, lowered=lowered),
        position=position if position is not None else MagLapNet(k=25, width=width, sign=SignGNN()),
        embedding=CategoryNodes(sizes.nodes, dropout={"attribute": 0.15}),
        local=GNN(width, edge_features=CategoryEdges(sizes.edges)),
        degree_scaled=True,
    )
