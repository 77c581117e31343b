"""The position encoders that a training can be asked for by name, each with its options."""

from dataclasses import dataclass
from typing import Any

from magnetite import nn
from magnetite.encodings import MagneticLaplacian, RandomWalk
from magnetite.linalg.potential import Relative
from magnetite.nn.positions import PositionEncoder


@dataclass(frozen=True)
class Room:
    """What the model has room for: width of a node's vector, heads and layers of attention."""

    width: int
    heads: int
    layers: int


@dataclass(frozen=True, kw_only=True)
class EncodingChoice:
    """Base of the choices, each a frozen dataclass of options.

    Beside any of them, `pair_steps > 0` gives random walks of so many steps to a head of pairs, as `p_k^{1/k}` with
    `pair_root`.
    """

    pair_steps: int = 0
    pair_root: bool = True

    def __post_init__(self) -> None:
        if self.pair_steps < 0:
            raise ValueError(f"pair_steps={self.pair_steps} is no number of steps: give 0 for none, or such as 16")

    @property
    def pair_channels(self) -> int:
        """Features of pairs of nodes that the encoder gives to a head of pairs."""
        return self.own_pair_channels + (self._pair_walks().pair_channels if self.pair_steps else 0)

    def encoder(self, room: Room) -> PositionEncoder | None:
        """The encoder for a model: the choice's own one, and the walks between pairs."""
        own = self.own_encoder(room)
        if not self.pair_steps:
            return own
        return self._pair_walks() if own is None else nn.Combined([own, self._pair_walks()])

    @property
    def own_pair_channels(self) -> int:
        """Those of the choice's own encoder."""
        return 0

    def own_encoder(self, room: Room) -> PositionEncoder | None:
        """The encoder that the choice stands for."""
        raise NotImplementedError

    def _pair_walks(self) -> nn.PairWalkEncoder:
        return nn.PairWalkEncoder(self.pair_steps, self.pair_root)


@dataclass(frozen=True)
class NoEncoding(EncodingChoice):
    """Nodes know nothing of their position."""

    def own_encoder(self, room: Room) -> None:  # noqa: ARG002
        """There is none."""
        return


@dataclass(frozen=True)
class Eigenvectors(EncodingChoice):
    """What every MagLapNet over `k` eigenvectors can be asked for; `sign` is none, mlp or gnn."""

    k: int = 16
    attention: bool = True
    scaling: str = "none"
    dropout: float = 0.15
    sign: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sign not in SIGNS:
            raise ValueError(f"sign={self.sign!r} is not known: choose one of {', '.join(SIGNS)}")

    def options(self) -> dict[str, Any]:
        """What the network is made with beside its sizes and its encoding."""
        sign = SIGNS[self.sign]
        parts = {"attention": self.attention, "scaling": self.scaling, "dropout": self.dropout}
        return {**parts, "sign": None if sign is None else sign()}


@dataclass(frozen=True)
class Magnetic(Eigenvectors):
    """MagLapNet over eigenvectors of relative potential `q`; `potentials > 1` gives multi-q, `q·{1 … Q}`."""

    q: float = 0.25
    potentials: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.encoding()  # which checks the rest

    def encoding(self) -> MagneticLaplacian:
        """The eigenpairs that the encoder is fed with."""
        return magnetic(self.k, self.q, self.potentials)

    def own_encoder(self, room: Room) -> PositionEncoder:
        """The MagLapNet."""
        return nn.MagLapNet(self.k, room.width, self.encoding(), **self.options())


@dataclass(frozen=True)
class Combinatorial(Eigenvectors):
    """MagLapNet over eigenvectors of the combinatorial Laplacian; without a `sign` net, training draws signs."""

    def own_encoder(self, room: Room) -> PositionEncoder:
        """The MagLapNet."""
        return nn.LaplacianEncoder(self.k, room.width, **self.options())


@dataclass(frozen=True)
class Walks(EncodingChoice):
    """Random walks summed to one vector a node; `restart = 0` leaves PageRank out."""

    steps: int = 3
    restart: float = 0.05
    reverse: bool = True

    def encoding(self) -> RandomWalk:
        """The features of pairs that the encoder is fed with."""
        return RandomWalk(self.steps, self.restart or None, self.reverse)

    def own_encoder(self, room: Room) -> PositionEncoder:
        """The encoder of nodes."""
        return nn.WalkEncoder(room.width, self.encoding())


@dataclass(frozen=True)
class RelativeWalks(Walks):
    """Random walks added to the logits of attention; with `nodes`, summed to one vector a node as well.

    Nodes without features need both: attention mixes what is equal to what is equal, whatever its weights.
    """

    nodes: bool = True

    def own_encoder(self, room: Room) -> PositionEncoder:
        """The encoder of biases, beside that of nodes."""
        biases = nn.RelativeWalkEncoder(room.heads, room.layers, self.encoding())
        return nn.Combined([super().own_encoder(room), biases]) if self.nodes else biases


@dataclass(frozen=True)
class MagneticAndWalks(Magnetic):
    """Magnetic eigenvectors for the nodes, and random walks added to the logits of attention."""

    steps: int = 3
    restart: float = 0.05

    def own_encoder(self, room: Room) -> PositionEncoder:
        """Both encoders."""
        walks = nn.RelativeWalkEncoder(room.heads, room.layers, RandomWalk(self.steps, self.restart or None))
        return nn.Combined([super().own_encoder(room), walks])


@dataclass(frozen=True)
class SingularVectors(EncodingChoice):
    """Singular vectors of the adjacency matrix, `k` of each side."""

    k: int = 16

    def own_encoder(self, room: Room) -> PositionEncoder:
        """The encoder of nodes."""
        return nn.SVDEncoder(self.k, room.width)


@dataclass(frozen=True)
class Sinusoids(EncodingChoice):
    """Sines of the node numbers as they are given."""

    def own_encoder(self, room: Room) -> PositionEncoder:
        """The encoder of nodes."""
        return nn.SinusoidalEncoder(room.width)


@dataclass(frozen=True)
class StablePositions(EncodingChoice):
    """SPE, which no choice of eigenvectors changes, of relative potential `q`; `potentials > 1` gives multi-q.

    `nodes`, `bias` and `pairs` say where it goes: into the nodes, the attention, the head of pairs.
    """

    k: int = 16
    q: float = 0.25
    potentials: int = 1
    channels: int = 16
    hidden: int = 64
    nodes: bool = True
    bias: bool = False
    pairs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        magnetic(self.k, self.q, self.potentials)  # which checks them

    @property
    def own_pair_channels(self) -> int:
        """Real and imaginary parts of each channel."""
        return 2 * self.channels if self.pairs else 0

    def own_encoder(self, room: Room) -> PositionEncoder:
        """The SPE."""
        return nn.SPE(
            self.k,
            width=room.width if self.nodes else None,
            heads=room.heads if self.bias else None,
            layers=room.layers,
            pairs=self.pairs,
            channels=self.channels,
            hidden=self.hidden,
            encoding=magnetic(self.k, self.q, self.potentials),
        )


@dataclass(frozen=True)
class MultiPotential(StablePositions):
    """SPE over several potentials: from all of them together, the lengths of walks can be read."""

    potentials: int = 5


SIGNS = {"none": None, "mlp": nn.SignMLP, "gnn": nn.SignGNN}
"""What makes a MagLapNet independent of signs."""

ENCODINGS: dict[str, type[EncodingChoice]] = {
    "magnetic": Magnetic,
    "laplacian": Combinatorial,
    "walks": Walks,
    "relative-walks": RelativeWalks,
    "magnetic+walks": MagneticAndWalks,
    "svd": SingularVectors,
    "sinusoidal": Sinusoids,
    "spe": StablePositions,
    "multi-q": MultiPotential,
    "none": NoEncoding,
}
"""The encodings by the names that the command line uses."""


def magnetic(k: int, q: float, potentials: int) -> MagneticLaplacian:
    """The encoding of relative potential `q`, or of `q·{1 … potentials}`.

    >>> magnetic(4, 0.25, 1).q, magnetic(4, 0.1, 2).q
    (Relative(q=0.25), (Relative(q=0.1), Relative(q=0.2)))
    """
    if potentials < 1:
        raise ValueError(f"potentials={potentials} is no number of potentials: give 1, or more for multi-q")
    several = tuple(Relative(q * number) for number in range(1, potentials + 1))
    return MagneticLaplacian(k, several[0] if potentials == 1 else several)
