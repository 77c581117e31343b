"""Transforms for PyTorch Geometric that add encodings to `Data`, or to each graph of a `Batch`."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from magnetite.encodings import SVD, Eigenpairs, MagneticLaplacian, RandomWalk
from magnetite.graphs import Digraphs
from magnetite.io.interop import check_pyg_name
from magnetite.linalg.potential import Adaptive, Potential


class _AddEncoding(BaseTransform):
    """A transform that applies one encoding; its `repr` lists every parameter, which PyG needs to cache results."""

    def __init__(self, encoding: Any, attr_name: str | None):
        if attr_name is not None:
            check_pyg_name(attr_name)
        self.encoding = encoding
        self.attr_name = attr_name

    def __repr__(self) -> str:
        parameters = {field.name: getattr(self.encoding, field.name) for field in fields(self.encoding)}
        shown = ", ".join(f"{name}={value!r}" for name, value in {**parameters, "attr_name": self.attr_name}.items())
        return f"{type(self).__name__}({shown})"

    def forward(self, data: Any) -> Any:
        """Add the encoding to a graph, or to each graph of a batch."""
        if isinstance(data, HeteroData):
            raise TypeError(
                f"{type(self).__name__} needs graphs of one type, got HeteroData: use data.to_homogeneous()"
            )
        if not isinstance(data, Data):
            raise TypeError(f"{type(self).__name__} needs PyG's Data or Batch, got {type(data).__name__}")
        if not isinstance(data, Batch):
            self._encode([data])
            return data
        try:
            items: list[Any] = data.to_data_list()
        except RuntimeError:
            raise ValueError("the Batch has no slices of its graphs: make it with Batch.from_data_list") from None
        self._encode(items)
        batch: Any = Batch.from_data_list(items)
        for name in data.keys():  # noqa: SIM118 (iterating over a Data gives pairs)
            if name not in batch:  # attributes of the batch that do not belong to one of its graphs
                batch[name] = data[name]
        return batch

    def _encode(self, items: Sequence[Data]) -> None:
        """Encode all graphs together, on their device, and set the attributes of each."""
        bare = []
        for each in items:
            if each.edge_index is None:
                raise ValueError(f"{type(each).__name__} has no edge_index: set it, or convert its adj_t first")
            bare.append(Data(edge_index=each.edge_index, edge_weight=each.edge_weight, num_nodes=each.num_nodes))
        encoded = self.encoding(Digraphs.from_pyg(bare).to(bare[0].edge_index.device))
        for number, item in enumerate(items):
            self._set(item, encoded[number])

    def _set(self, data: Data, encoded: Any) -> None:
        """Set the attributes of a graph, given its part of the encoding."""
        raise NotImplementedError

    def _add(self, data: Data, features: Tensor) -> None:
        """Set the node attribute, or append to `x` if `attr_name` is None; integers in `x` become floats."""
        if self.attr_name is not None:
            data[self.attr_name] = features
        elif data.x is None:
            data.x = features
        else:
            old = data.x[:, None] if data.x.ndim == 1 else data.x
            data.x = torch.cat([old, features.to(old.device)], dim=1)


@functional_transform("add_magnetic_laplacian_pe")
class AddMagneticLaplacianPE(_AddEncoding):
    """Add the real and imaginary parts of the k lowest eigenvectors of the magnetic Laplacian, `[n, 2k]`.

    Also sets `{attr_name}_values` and `{attr_name}_mask` of shape `[1, k]`, which a batch stacks to `[b, k]`. The
    columns of several potentials are concatenated, `[n, 2Qk]`.

    Args:
        k: Number of eigenvectors.
        q: Potential: `Adaptive()`, a float in `[0, 0.5]`, a `Relative`, or a tuple of several.
        normalised: Whether to normalise the Laplacian by the degrees.
        convention: Definition of the Laplacian, see `magnetite.linalg.laplacian.CONVENTIONS`.
        attr_name: The attribute to set; None appends the vectors to `x` and sets nothing else; an `x` of integers
            becomes one of floats.

    >>> AddMagneticLaplacianPE(k=2)(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).magnetic_pe.shape
    torch.Size([3, 4])
    """

    encoding: MagneticLaplacian

    def __init__(
        self,
        k: int,
        q: Potential | tuple[Potential, ...] = Adaptive(),  # noqa: B008 (frozen)
        normalised: bool = True,
        convention: str = "paper",
        attr_name: str | None = "magnetic_pe",
    ):
        super().__init__(MagneticLaplacian(k, q, normalised, convention), attr_name)

    def _set(self, data: Data, encoded: Eigenpairs) -> None:
        self._add(data, torch.view_as_real(encoded.vectors).movedim(-1, 1).flatten(1))
        if self.attr_name is not None:
            data[f"{self.attr_name}_values"] = encoded.values.reshape(1, -1)
            data[f"{self.attr_name}_mask"] = encoded.mask.reshape(1, -1)


@functional_transform("add_directed_walk_pe")
class AddDirectedWalkPE(_AddEncoding):
    """Add sums over the start nodes of directional walks: `Σ_u p(u→v)` and `Σ_u p(u→v)²` of every feature.

    The shape is `[n, 4(steps+1)]`.

    Args:
        steps: Number of steps.
        restart: Restart probability of PageRank; None leaves PageRank out.
        reverse: Whether to include walks against the edges.
        pairs: Whether to also set `{attr_name}_pairs`, the features of all node pairs, `[n², 2(steps+1)]`, with row
            `u·n + v` for start `u` and landing node `v`; a batch concatenates them.
        attr_name: The attribute to set; None appends the features to `x`; an `x` of integers becomes one of floats.

    >>> AddDirectedWalkPE(steps=1)(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).walk_pe.shape
    torch.Size([3, 8])
    """

    encoding: RandomWalk

    def __init__(
        self,
        steps: int = 3,
        restart: float | None = 0.05,
        reverse: bool = True,
        pairs: bool = False,
        attr_name: str | None = "walk_pe",
    ):
        if pairs and attr_name is None:
            raise ValueError("pairs=True needs an attr_name, got None")
        super().__init__(RandomWalk(steps, restart, reverse), attr_name)
        self.pairs = pairs

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, pairs={self.pairs!r})"

    def _set(self, data: Data, encoded: Float[Tensor, "n n c"]) -> None:
        self._add(data, torch.cat([encoded.sum(0), encoded.square().sum(0)], dim=1))
        if self.pairs:
            data[f"{self.attr_name}_pairs"] = encoded.flatten(0, 1)


@functional_transform("add_svd_pe")
class AddSVDPE(_AddEncoding):
    """Add the scaled singular vectors `[U√S ‖ V√S]` of the adjacency matrix, `[n, 2 rank]`.

    Args:
        rank: Number of singular values.
        attr_name: The attribute to set; None appends the vectors to `x`; an `x` of integers becomes one of floats.

    >>> AddSVDPE(rank=4)(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).svd_pe.shape
    torch.Size([3, 8])
    """

    encoding: SVD

    def __init__(self, rank: int, attr_name: str | None = "svd_pe"):
        super().__init__(SVD(rank), attr_name)

    def _set(self, data: Data, encoded: Float[Tensor, "n c"]) -> None:
        self._add(data, encoded)
