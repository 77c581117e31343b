"""Results of encodings: eigenpairs, one vector per node, or one vector per node pair; packed over many graphs.

`names` holds the names of the nodes where a result was read from a file by `magnetite.read`.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.packed import INTEGERS, NAME_AXES, REALS, Axis, Dtypes, Named, Packed, check_pairs, first_outside


@dataclass(frozen=True, eq=False, kw_only=True)
class Eigenpairs(Named):
    """The k lowest eigenpairs of each graph; with several potentials, every shape has an axis `Q` before `k`.

    Indexing with an integer gives the eigenpairs of one graph, without the axis `b`.

    Args:
        node_ptr: Where the nodes of each graph begin.
        name_bytes: The names of all nodes in UTF-8, one after the other; set them with `replace(names=…)`.
        name_lengths: Number of bytes of each node's name.
        name_ptr: Where the names of each graph begin in `name_bytes`, `[graphs + 1]`.
        values: Eigenvalues; `values[g, j]` belongs to column `j` of the vectors of graph `g`.
        vectors: Eigenvectors of all graphs, one row per node.
        mask: Which of the `k` eigenpairs exist; a graph of `n < k` nodes has `n`.
        group: Number of the group of equal eigenvalues, from 0, and −1 in padding. Within a group, the vectors are an
            arbitrary basis; only the projector `Σ γγᴴ` is unique.
        anchored: Whether the graph alone determines the phase of the vector, see `magnetite.linalg.phase.normalise`.
    """

    values: Float[Tensor, "*b k"]
    vectors: Shaped[Tensor, "n *q k"]
    mask: Bool[Tensor, "*b k"]
    group: Int[Tensor, "*b k"]
    anchored: Bool[Tensor, "*b k"]

    axes: ClassVar[dict[str, tuple[Axis, int]]] = {
        "values": ("graph", 0),
        "vectors": ("node", 0),
        "mask": ("graph", 0),
        "group": ("graph", 0),
        "anchored": ("graph", 0),
    }
    dtypes: ClassVar[dict[str, Dtypes]] = {
        "values": REALS,
        "vectors": (*REALS, torch.complex32, torch.complex64, torch.complex128),
        "mask": (torch.bool,),
        "group": INTEGERS,
        "anchored": (torch.bool,),
    }

    def check(self) -> None:
        """Raise a `ValueError` unless these are eigenpairs of many graphs, or of one."""
        if len(self) == 1 and self.values.ndim == self.vectors.ndim - 1:
            flat = {name: getattr(self, name)[None] for name, (axis, _) in self.axes.items() if axis == "graph"}
            Eigenpairs._trusted(node_ptr=self.node_ptr, vectors=self.vectors, **flat).check()
            return
        super().check()
        for name in ("values", "vectors", "mask", "group", "anchored"):
            shape = getattr(self, name).shape[1:]
            if shape != self.vectors.shape[1:] or len(shape) not in (1, 2):
                raise ValueError(
                    f"{name} must have the potentials and eigenpairs of the vectors, {list(self.vectors.shape[1:])}, "
                    f"in its last dimensions, got shape {list(getattr(self, name).shape)}"
                )
        if self.group.numel() and not (int(self.group.min()) >= -1 and int(self.group.max()) < self.group.shape[-1]):
            raise ValueError(f"group must be in −1…{self.group.shape[-1] - 1}, got {int(self.group.max())}")

    def __repr__(self) -> str:
        return f"Eigenpairs({len(self)} graphs, k={self.values.shape[-1]}, {self.vectors.dtype})"

    def one(self, position: int) -> "Eigenpairs":
        """One graph's eigenpairs: values `[k]`, vectors `[n, k]`."""
        if self.values.ndim < self.vectors.ndim:
            raise TypeError("these are one graph's eigenpairs: index values and vectors instead")
        part = self._slice(position, position + 1)
        flat = {name: getattr(part, name)[0] for name, (axis, _) in self.axes.items() if axis == "graph"}
        named = {name: getattr(part, name) for name in (*NAME_AXES, "name_ptr")}
        return Eigenpairs._trusted(node_ptr=part.node_ptr, vectors=part.vectors, **flat, **named)

    def determined(self, gap: float = 1e-4) -> Bool[Tensor, "*b k"]:
        """Which eigenvectors are unique: they exist, their phase is anchored, and no other eigenvalue is within `gap`.

        If `k < n`, the eigenvalue after the last of the `k` is unknown, so the last vector never counts as unique. The
        root is found from the first eigenvector, so if that is not unique, none is.
        """
        values = self.values.masked_fill(~self.mask, torch.inf)
        distance = torch.nn.functional.pad(values.diff(dim=-1).nan_to_num(nan=torch.inf), (1, 1), value=torch.inf)
        apart = (distance[..., 1:] > gap) & (distance[..., :-1] > gap)
        apart[..., -1:] &= self.sizes.view(-1, *[1] * (apart.ndim - 1)) <= apart.shape[-1]
        return apart & self.mask & self.anchored & apart[..., :1]

    def projectors(self) -> list[Shaped[Tensor, "n n"]]:
        """For one graph: `P_g = Σ_{j∈g} γ_j γ_jᴴ` of each group of equal eigenvalues, independent of the basis.

        The last group may continue beyond `k`; with `k ≥ n` all are complete and add up to the identity.
        """
        if self.vectors.ndim != 2 or self.values.ndim != 1:
            raise TypeError(
                "projectors need eigenpairs of one graph and one potential: index them first, as in pairs[0]"
            )
        columns = [self.vectors[:, self.group == number] for number in range(int(self.group.max()) + 1)]
        return [column @ column.mH for column in columns]


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeEncoding(Named):
    """One vector per node: `encoding[i]` is `[n, d]`.

    Args:
        node_ptr: Where the nodes of each graph begin.
        name_bytes: The names of all nodes in UTF-8, one after the other; set them with `replace(names=…)`.
        name_lengths: Number of bytes of each node's name.
        name_ptr: Where the names of each graph begin in `name_bytes`, `[graphs + 1]`.
        values: The vectors of the nodes of all graphs.
    """

    values: Shaped[Tensor, "n ..."]

    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"values": ("node", 0)}

    def __repr__(self) -> str:
        return f"NodeEncoding({len(self)} graphs, {tuple(self.values.shape)})"

    def one(self, position: int) -> Shaped[Tensor, "n ..."]:
        """The vectors of one graph."""
        return self._slice(position, position + 1).values


@dataclass(frozen=True, eq=False, kw_only=True)
class PairEncoding(Named):
    """One vector per ordered node pair: `encoding[i]` is `[n, n, f]`, start × landing × feature.

    Args:
        node_ptr: Where the nodes of each graph begin.
        name_bytes: The names of all nodes in UTF-8, one after the other; set them with `replace(names=…)`.
        name_lengths: Number of bytes of each node's name.
        name_ptr: Where the names of each graph begin in `name_bytes`, `[graphs + 1]`.
        pair_ptr: Where the node pairs of each graph begin.
        values: The vectors of the node pairs of all graphs, start node by start node.
    """

    pair_ptr: Int[Tensor, " starts"]
    values: Float[Tensor, "pairs f"]

    pointers: ClassVar[tuple[str, ...]] = ("node_ptr", "pair_ptr")
    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"values": ("pair", 0)}
    dtypes: ClassVar[dict[str, Dtypes]] = {"values": REALS}

    def check(self) -> None:
        """Raise a `ValueError` unless there is one vector per ordered node pair."""
        super().check()
        check_pairs(self, self.pair_ptr)
        if self.values.ndim != 2:
            raise ValueError(f"values must have shape [pairs, features], got {list(self.values.shape)}")

    def __repr__(self) -> str:
        return f"PairEncoding({len(self)} graphs, {self.values.shape[-1]} features)"

    def one(self, position: int) -> Float[Tensor, "n n f"]:
        """The vectors of one graph."""
        part = self._slice(position, position + 1)
        size = int(part.node_ptr[-1])
        return part.values.view(size, size, -1)


@dataclass(frozen=True, eq=False, kw_only=True)
class TopPairs(Named):
    """One vector for some node pairs: those of each start node with its likeliest landing nodes.

    Args:
        node_ptr: Where the nodes of each graph begin.
        name_bytes: The names of all nodes in UTF-8, one after the other; set them with `replace(names=…)`.
        name_lengths: Number of bytes of each node's name.
        name_ptr: Where the names of each graph begin in `name_bytes`, `[graphs + 1]`.
        landing: Landing nodes of each start node, as node numbers within the graph; −1 if there are fewer.
        values: Features of these node pairs.
        lost: By how much an exact probability may exceed its value, per start node and feature.
    """

    landing: Int[Tensor, "n top"]
    values: Float[Tensor, "n top f"]
    lost: Float[Tensor, "n f"]

    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"landing": ("node", 0), "values": ("node", 0), "lost": ("node", 0)}
    dtypes: ClassVar[dict[str, Dtypes]] = {"landing": INTEGERS, "values": REALS, "lost": REALS}

    def check(self) -> None:
        """Raise a `ValueError` unless every landing node is in the graph of its start node."""
        super().check()
        landing, values, lost = self.landing.shape, self.values.shape, self.lost.shape
        if len(landing) != 2 or values[:2] != landing or len(values) != 3 or lost != (values[0], values[2]):
            raise ValueError(
                f"landing, values and lost must have shapes [n, top], [n, top, f] and [n, f], got {list(landing)}, "
                f"{list(values)} and {list(lost)}"
            )
        node = first_outside(self.landing.T.long() + 1, self.node_ptr, self.sizes + 1)  # −1 stands for no node
        if node is not None:
            raise ValueError(f"landing nodes of node {node} are outside its graph: {self.landing[node].tolist()}")

    def __repr__(self) -> str:
        return f"TopPairs({len(self)} graphs, top {self.landing.shape[1]}, {self.values.shape[-1]} features)"


RESULTS: dict[str, type[Packed]] = {kind.__name__: kind for kind in (Eigenpairs, NodeEncoding, PairEncoding, TopPairs)}
"""The kinds of results by the name stored in their files."""
