"""Encodings of node order: sinusoids of the node numbers, and the distance from a source."""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.encodings.checks import SIZE, Domain, check_fields, check_graphs
from magnetite.encodings.results import NodeEncoding
from magnetite.graphs import Digraphs


@dataclass(frozen=True)
class Sinusoidal:
    """Sinusoids of the node numbers: `PE[v, 2j] = cos(v / base^{2j/d})`, `PE[v, 2j+1] = sin(v / base^{2j/d})`.

    Args:
        width: Size `d` of the encoding per node, even.
        base: Ratio of the longest to the shortest wavelength.

    >>> Sinusoidal(width=2)(Digraphs.from_edges([[0], [1]]))[0].mul(100).round().tolist()
    [[100.0, 0.0], [54.0, 84.0]]
    """

    width: Annotated[int, SIZE]
    base: Annotated[float, Domain(1, 1e30, above=True)] = 10_000.0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.width % 2:
            raise ValueError(f"width must be even (half cosines, half sines), got {self.width}")

    def __call__(self, graphs: Digraphs) -> NodeEncoding:
        """Encode every graph."""
        check_graphs(graphs)
        numbers = torch.arange(graphs.num_nodes, device=graphs.device) - graphs.node_ptr[graphs.node_graph]
        return NodeEncoding(node_ptr=graphs.node_ptr, values=self.of_numbers(numbers))

    def of_numbers(self, numbers: Int[Tensor, " n"]) -> Float[Tensor, "n d"]:
        """The encodings of nodes with these numbers."""
        exponent = torch.arange(0, self.width, 2, device=numbers.device, dtype=torch.float64) / self.width
        angle = numbers[:, None] / self.base**exponent
        return torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(1).float()


@dataclass(frozen=True)
class Depth:
    """Length of the shortest path from a node without in-edges, as an index for an embedding; in a tree, the depth.

    Nodes that cannot be reached from such a node (only from cycles) get the cap.

    Args:
        cap: Largest depth.

    >>> Depth(cap=2)(Digraphs.from_edges([[0, 1, 2], [1, 2, 3]]))[0].tolist()
    [0, 1, 2, 2]
    """

    cap: Annotated[int, SIZE] = 20

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, graphs: Digraphs) -> NodeEncoding:
        """Encode every graph."""
        check_graphs(graphs)
        source, target = graphs.edge_index
        entered = torch.zeros(graphs.num_nodes, dtype=torch.bool, device=graphs.device)
        entered[target[source != target]] = True
        depth = torch.where(entered, self.cap, 0)
        for _ in range(self.cap - 1):
            reached = depth.scatter_reduce(0, target, depth[source] + 1, "amin")
            if torch.equal(reached, depth):
                break
            depth = reached
        return NodeEncoding(node_ptr=graphs.node_ptr, values=depth.clamp(max=self.cap))
