"""Readers of users' graphs: edge lists, CSV, GraphML, GML, node-link JSON and `.npz`, each as an `EdgeList`.

A file is read right or refused with the place of the mistake. Nothing in it is executed, and reading it needs memory in
proportion to its size. To add a format, write a function in a file of its own and name its extension in `READERS`.
"""

from collections.abc import Callable
from pathlib import Path

from magnetite.io.interop import EdgeList
from magnetite.io.readers.arrays import read_npz
from magnetite.io.readers.attributes import Weight
from magnetite.io.readers.gml import read_gml
from magnetite.io.readers.graphml import read_graphml
from magnetite.io.readers.node_link import read_node_link
from magnetite.io.readers.rows import Nodes, read_csv, read_edge_list, read_nodes

FREE_NODES = 2**20
"""A file may have this number of nodes, or one node per byte if that is more."""


def read_edges(path: Path, weight: Weight = True, nodes: Nodes | None = None) -> EdgeList:
    """Read one graph in any format of `READERS`, with the names of its nodes if the format has names.

    Args:
        path: The file.
        weight: The edge attribute of the weights; True for one called weight, False for none.
        nodes: The nodes, for formats of `ROWS`, which have edges only.
    """
    if path.suffix in ROWS:
        return ROWS[path.suffix][0](path, weight, nodes)
    return DOCUMENTS[path.suffix][0](path, weight)


def check_cost(path: Path, num_nodes: int) -> None:
    """Raise an error if a small file claims to have a huge graph, because encoding it could exhaust the memory."""
    size = path.stat().st_size
    if num_nodes > max(FREE_NODES, size):
        raise ValueError(
            f"it has {num_nodes} nodes in {size} bytes: a file may have {FREE_NODES} nodes or one per byte; leave out "
            "isolated nodes, or build the graph with Digraphs.from_edges"
        )


LINES = "one `source target` or `source target weight` per line"
CELLS = "one `source,target` or `source,target,weight` per line, separated by"
ROWS: dict[str, tuple[Callable[[Path, Weight, Nodes | None], EdgeList], str]] = {
    ".txt": (read_edge_list, LINES),
    ".edges": (read_edge_list, LINES),
    ".edgelist": (read_edge_list, LINES),
    ".csv": (read_csv, f"{CELLS} commas or semicolons"),
    ".tsv": (read_csv, f"{CELLS} tabs"),
}
DOCUMENTS: dict[str, tuple[Callable[[Path, Weight], EdgeList], str]] = {
    ".graphml": (read_graphml, "a GraphML graph"),
    ".gml": (read_gml, "a GML graph"),
    ".json": (read_node_link, "node-link data with `nodes` and `links` or `edges`, as written by networkx"),
    ".npz": (read_npz, "a SciPy sparse matrix or arrays edge_index [2, m], edge_weight, num_nodes"),
}
READERS = {extension: content for extension, (_, content) in (ROWS | DOCUMENTS).items()}
"""The expected content of each format, by file extension."""

__all__ = ["FREE_NODES", "READERS", "ROWS", "Nodes", "Weight", "check_cost", "read_edges", "read_nodes"]
