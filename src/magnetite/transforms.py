"""Transforms for PyTorch Geometric that add encodings to `Data`."""

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from magnetite.encodings import SVD, MagneticLaplacian, RandomWalk
from magnetite.graphs import Digraphs
from magnetite.io.interop import check_pyg_name
from magnetite.linalg.potential import Potential, Relative


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

    def _add(self, data: Data, features: Tensor) -> None:
        """Set the node attribute, or append to `x` if `attr_name` is None."""
        if self.attr_name is not None:
            data[self.attr_name] = features
        elif data.x is None:
            data.x = features
        else:
            old = data.x[:, None] if data.x.ndim == 1 else data.x
            data.x = torch.cat([old, features.to(old)], dim=1)


@functional_transform("add_magnetic_laplacian_pe")
class AddMagneticLaplacianPE(_AddEncoding):
    """Add the real and imaginary parts of the k lowest eigenvectors of the magnetic Laplacian, `[n, 2k]`.

    Also sets `{attr_name}_values` and `{attr_name}_mask` of shape `[1, k]`, which a batch stacks to `[b, k]`. The
    columns of several potentials are concatenated, `[n, 2Qk]`.

    Args:
        k: Number of eigenvectors.
        q: Potential: a float in `[0, 0.5]`, a `Relative`, or a tuple of several.
        normalised: Whether to normalise the Laplacian by the degrees.
        convention: Definition of the Laplacian, see `magnetite.linalg.laplacian.CONVENTIONS`.
        attr_name: The attribute to set; None appends the vectors to `x` and sets nothing else.

    >>> AddMagneticLaplacianPE(k=2)(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).magnetic_pe.shape
    torch.Size([3, 4])
    """

    encoding: MagneticLaplacian

    def __init__(
        self,
        k: int,
        q: Potential | tuple[Potential, ...] = Relative(0.25),  # noqa: B008 (frozen)
        normalised: bool = True,
        convention: str = "paper",
        attr_name: str | None = "magnetic_pe",
    ):
        super().__init__(MagneticLaplacian(k, q, normalised, convention), attr_name)

    def forward(self, data: Data) -> Data:
        """Add the encoding to one graph."""
        pairs = self.encoding(Digraphs.from_pyg(data))
        self._add(data, torch.view_as_real(pairs.vectors).movedim(-1, 1).flatten(1))
        if self.attr_name is not None:
            data[f"{self.attr_name}_values"] = pairs.values.flatten(1)
            data[f"{self.attr_name}_mask"] = pairs.mask.flatten(1)
        return data


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
        attr_name: The attribute to set; None appends the features to `x`.

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

    def forward(self, data: Data) -> Data:
        """Add the encoding to one graph."""
        walks = self.encoding(Digraphs.from_pyg(data))
        start_landing = walks[0]
        self._add(data, torch.cat([start_landing.sum(0), start_landing.square().sum(0)], dim=1))
        if self.pairs:
            data[f"{self.attr_name}_pairs"] = walks.values
        return data


@functional_transform("add_svd_pe")
class AddSVDPE(_AddEncoding):
    """Add the scaled singular vectors `[U√S ‖ V√S]` of the adjacency matrix, `[n, 2 rank]`.

    Args:
        rank: Number of singular values.
        attr_name: The attribute to set; None appends the vectors to `x`.

    >>> AddSVDPE(rank=4)(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).svd_pe.shape
    torch.Size([3, 8])
    """

    encoding: SVD

    def __init__(self, rank: int, attr_name: str | None = "svd_pe"):
        super().__init__(SVD(rank), attr_name)

    def forward(self, data: Data) -> Data:
        """Add the encoding to one graph."""
        self._add(data, self.encoding(Digraphs.from_pyg(data)).values)
        return data
