"""The ancestors and descendants of each node within some steps, as sparse pairs for large graphs."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from magnetite.encodings.checks import SIZE, Domain, check_fields, check_graphs
from magnetite.encodings.results import TopPairs
from magnetite.graphs import Digraphs
from magnetite.linalg.memory import check_memory


@dataclass(frozen=True)
class Relatives:
    """The nodes within `reach` steps along and against the edges of each node, nearest first, and itself.

    The two features of a pair `(u, v)` are `1 / d(u, v)` and `1 / d(v, u)`, the inverse distances along and against the
    edges, 0 where there is no path of at most `reach` edges. In an acyclic graph these are the descendants and the
    ancestors of `u`, to which `SparseAttention` lets a node attend.

    Args:
        reach: Largest number of steps.
        top: Largest number of nodes per node; if there are more, the nearest are kept.

    >>> Relatives(reach=1)(Digraphs.from_edges([[0, 1], [1, 2]])).landing[:, :3].tolist()
    [[0, 1, -1], [1, 2, 0], [2, 1, -1]]
    """

    reach: Annotated[int, Domain(1, 10_000)] = 4
    top: Annotated[int, SIZE] = 32

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def width(self) -> int:
        """Number of features per node pair."""
        return 2

    def __call__(self, graphs: Digraphs) -> TopPairs:
        """Encode every graph."""
        from magnetite.kernels.cpu.levels import nearest_relatives

        check_graphs(graphs)
        needed = graphs.num_nodes * self.top * 16
        check_memory(needed, torch.device("cpu"), f"{self} of {graphs}", "choose a smaller top")
        host = graphs.to("cpu")
        landing = np.empty((host.num_nodes, self.top), np.int64)
        values = np.empty((host.num_nodes, self.top, 2), np.float32)
        for graph, first, last in zip(host, host.node_ptr[:-1].tolist(), host.node_ptr[1:].tolist(), strict=True):
            rows = [
                _compressed(graph.edges[side].numpy(), graph.edges[1 - side].numpy(), last - first) for side in (0, 1)
            ]
            nearest_relatives(*rows[0], *rows[1], self.reach, landing[first:last], values[first:last])
        return TopPairs(
            node_ptr=host.node_ptr,
            landing=torch.from_numpy(landing),
            values=torch.from_numpy(values),
            lost=torch.zeros(host.num_nodes, 2),
        ).to(graphs.device)


def _compressed(row: np.ndarray, column: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Compressed rows, with sorted columns, so that ties do not depend on the order of the edges."""
    order = np.lexsort((column, row))
    start = np.concatenate([np.zeros(1, np.int64), np.bincount(row, minlength=size).cumsum()])
    return start, column[order].astype(np.int64)
