"""Embeddings: what a node is, before anything is known about where it is."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.module import Module
from magnetite.nn.rows import as_rows


class Embedding(Module):
    """Base: `setup` makes the parameters once the model's width is known."""

    def setup(self, width: int) -> None:
        """Make the parameters."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Float[Tensor, "b n d"]:
        """One vector a slot."""
        raise NotImplementedError

    def several(self, batches: Sequence[Batch]) -> Float[Tensor, "rows d"]:
        """One vector a slot of batches of several shapes, as rows: what models call; by default, `forward` of each."""
        return as_rows([self(batch) for batch in batches])


class SameNodes(Embedding):
    """One learned vector for every node: only positions tell nodes apart."""

    def __init__(self) -> None:
        super().__init__()

    def setup(self, width: int) -> None:
        """Make the vector."""
        self.vector = torch.nn.Parameter(torch.randn(width) * 0.02)

    def forward(self, batch: Batch) -> Float[Tensor, "b n d"]:
        """The vector in every slot."""
        return self.vector.expand(*batch.mask.shape, -1)


class LinearNodes(Embedding):
    """`W x_v + b` of a node feature of the graphs."""

    def __init__(self, feature: str, channels: int):
        super().__init__()
        self.feature, self.channels = feature, channels

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(self.channels, width)

    def forward(self, batch: Batch) -> Float[Tensor, "b n d"]:
        """The feature, transformed."""
        values = node_feature(batch, self.feature).float()
        values = values[..., None] if values.ndim == 2 else values
        if values.shape[-1] != self.channels:
            raise ValueError(
                f"node feature {self.feature!r} has {values.shape[-1]} columns, this LinearNodes takes {self.channels}:"
                f" make it with channels={values.shape[-1]}"
            )
        return self.linear(values)


class CategoryNodes(Embedding):
    """`Σ_f E_f[x_{v,f}]`: the sum of one learned vector for each of several categories of a node.

    Numbers beyond a table's size share its last row, as depths beyond a cap do. In training, the categories named in
    `dropout` are replaced by number 0, the unknown, at their rate.
    """

    def __init__(self, sizes: Mapping[str, int], dropout: Mapping[str, float] | None = None):
        super().__init__()
        self.sizes, self.dropout = dict(sizes), dict(dropout or {})

    def setup(self, width: int) -> None:
        """Make the tables."""
        self.tables = torch.nn.ModuleDict({name: torch.nn.Embedding(size, width) for name, size in self.sizes.items()})

    def forward(self, batch: Batch) -> Float[Tensor, "b n d"]:
        """The sum of the looked-up vectors."""
        return torch.stack([self.tables[name](self._ids(batch, name)) for name in self.sizes]).sum(0)

    def _ids(self, batch: Batch, name: str) -> Int[Tensor, "b n"]:
        ids = node_feature(batch, name).long().clamp(0, self.sizes[name] - 1)
        rate = self.dropout.get(name, 0.0)
        return torch.where(torch.rand(ids.shape, device=ids.device) < rate, 0, ids) if self.training and rate else ids


class WireNodes(Embedding):
    """Sinusoidal codes of a comparator's two wires, `cos, sin(w / base^{2j/c})`, side by side, then linear.

    With `places`, in training, all wires of a network are moved on by the same random number of them, so that codes
    of wires that only longer networks have are known; `places=None` leaves the wires where they are. With `borders`,
    what each wire's distance from the first and from the last wire is, if below `borders`, stands beside the codes.
    """

    def __init__(
        self,
        channels: int = 64,
        base: float = 100.0,
        places: int | None = None,
        borders: int = 0,
        feature: str = "wires",
    ):
        super().__init__()
        self.channels, self.places, self.borders, self.feature = channels, places, borders, feature
        self.register_buffer("rates", base ** -(torch.arange(0, channels, 2) / channels), persistent=False)

    rates: Tensor

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(2 * self.channels + 4 * self.borders, width)

    def forward(self, batch: Batch) -> Float[Tensor, "b n d"]:
        """The codes, transformed."""
        return self.linear(self._codes(batch))

    def several(self, batches: Sequence[Batch]) -> Float[Tensor, "rows d"]:
        """The codes of all batches, transformed together."""
        return self.linear(as_rows([self._codes(batch) for batch in batches]))

    def _codes(self, batch: Batch) -> Float[Tensor, "b n c"]:
        wires = node_feature(batch, self.feature).long()
        moved = wires if self.places is None or not self.training else wires + self._steps(wires, self.places)
        angle = moved[..., None] * self.rates
        return torch.cat([angle.cos(), angle.sin(), self._near(wires)], dim=-1).flatten(2)

    def _near(self, wires: Int[Tensor, "b n 2"]) -> Float[Tensor, "b n 2 near"]:
        """For both ends, one of `borders` numbers is 1 where the wire is that far from it."""
        distances = torch.stack([wires, wires.amax((1, 2), keepdim=True) - wires], dim=-1)
        near = distances[..., None] == torch.arange(self.borders, device=wires.device)
        return near.flatten(-2).float()

    def _steps(self, wires: Int[Tensor, "b n 2"], places: int) -> Int[Tensor, "b 1 1"]:
        """How far each network is moved: any number that leaves its last wire among the places."""
        free = (places - wires.flatten(1).amax(1)).clamp(min=1)
        return (torch.rand(free.shape, device=wires.device) * free).long()[:, None, None]


def node_feature(batch: Batch, name: str) -> Tensor:
    """A node feature of the batch by name."""
    if name not in batch.node_features:
        known = ", ".join(batch.node_features) or "none"
        raise ValueError(f"the graphs have no node feature {name!r} (they have {known}): add it to node_features")
    return batch.node_features[name]
