"""The position encoders that a training can be asked for by name, each with its options."""

from dataclasses import dataclass

from magnetite import nn
from magnetite.encodings import MagneticLaplacian, RandomWalk
from magnetite.linalg.potential import Potential, Relative
from magnetite.nn.positions import PositionEncoder


@dataclass(frozen=True)
class Room:
    """What the model has room for: width of a node's vector, heads and layers of attention."""

    width: int
    heads: int
    layers: int


@dataclass(frozen=True)
class EncodingChoice:
    """Base of the choices, each a frozen dataclass of options."""

    @property
    def pair_channels(self) -> int:
        """Features of pairs of nodes that the encoder gives to a head of pairs."""
        return 0

    def encoder(self, room: Room) -> PositionEncoder | None:
        """The encoder for a model."""
        raise NotImplementedError


@dataclass(frozen=True)
class NoEncoding(EncodingChoice):
    """Nodes know nothing of their position."""

    def encoder(self, room: Room) -> None:  # noqa: ARG002
        """There is none."""
        return


@dataclass(frozen=True)
class Magnetic(EncodingChoice):
    """MagLapNet over `k` eigenvectors; `potentials > 1` gives multi-q, `q·{1 … Q}`.

    `q` is relative to the graph unless `absolute`; `sign` is none, mlp or gnn.
    """

    k: int = 16
    q: float = 0.25
    absolute: bool = False
    potentials: int = 1
    attention: bool = True
    scaling: str = "none"
    dropout: float = 0.15
    sign: str = "none"

    def __post_init__(self) -> None:
        _check_sign(self.sign)
        if self.potentials < 1:
            raise ValueError(f"potentials={self.potentials} is no number of potentials: give 1, or more for multi-q")

    def encoding(self) -> MagneticLaplacian:
        """The eigenpairs that the encoder is fed with."""
        return MagneticLaplacian(self.k, potential(self.q, self.absolute, self.potentials))

    def encoder(self, room: Room) -> PositionEncoder:
        """The MagLapNet."""
        kind = SIGNS[self.sign]
        return nn.MagLapNet(
            self.k,
            room.width,
            self.encoding(),
            dropout=self.dropout,
            attention=self.attention,
            scaling=self.scaling,
            sign=None if kind is None else kind(),
        )


@dataclass(frozen=True)
class Combinatorial(EncodingChoice):
    """MagLapNet over `k` eigenvectors of the combinatorial Laplacian; without a `sign` net, training draws signs."""

    k: int = 16
    attention: bool = True
    scaling: str = "none"
    dropout: float = 0.15
    sign: str = "none"

    def __post_init__(self) -> None:
        _check_sign(self.sign)

    def encoder(self, room: Room) -> PositionEncoder:
        """The MagLapNet."""
        kind = SIGNS[self.sign]
        options = {"attention": self.attention, "scaling": self.scaling, "dropout": self.dropout}
        return nn.LaplacianEncoder(self.k, room.width, sign=None if kind is None else kind(), **options)


@dataclass(frozen=True)
class Walks(EncodingChoice):
    """Random walks summed to one vector a node; `restart = 0` leaves PageRank out."""

    steps: int = 3
    restart: float = 0.05
    reverse: bool = True

    def encoding(self) -> RandomWalk:
        """The features of pairs that the encoder is fed with."""
        return RandomWalk(self.steps, self.restart or None, self.reverse)

    def encoder(self, room: Room) -> PositionEncoder:
        """The encoder of nodes."""
        return nn.WalkEncoder(room.width, self.encoding())


@dataclass(frozen=True)
class RelativeWalks(Walks):
    """Random walks added to the logits of attention."""

    def encoder(self, room: Room) -> PositionEncoder:
        """The encoder of biases."""
        return nn.RelativeWalkEncoder(room.heads, room.layers, self.encoding())


@dataclass(frozen=True)
class MagneticAndWalks(Magnetic):
    """Magnetic eigenvectors for the nodes, and random walks added to the logits of attention."""

    steps: int = 3
    restart: float = 0.05

    def encoder(self, room: Room) -> PositionEncoder:
        """Both encoders."""
        walks = nn.RelativeWalkEncoder(room.heads, room.layers, RandomWalk(self.steps, self.restart or None))
        return nn.Combined([super().encoder(room), walks])


@dataclass(frozen=True)
class SingularVectors(EncodingChoice):
    """Singular vectors of the adjacency matrix, `k` of each side."""

    k: int = 16

    def encoder(self, room: Room) -> PositionEncoder:
        """The encoder of nodes."""
        return nn.SVDEncoder(self.k, room.width)


@dataclass(frozen=True)
class Sinusoids(EncodingChoice):
    """Sines of the node numbers as they are given."""

    def encoder(self, room: Room) -> PositionEncoder:
        """The encoder of nodes."""
        return nn.SinusoidalEncoder(room.width)


@dataclass(frozen=True)
class StablePositions(EncodingChoice):
    """SPE, which no choice of eigenvectors changes; `potentials > 1` gives multi-q, `q·{1 … Q}`.

    `nodes`, `bias` and `pairs` say where it goes: into the nodes, the attention, the head of pairs.
    """

    k: int = 16
    q: float = 0.25
    absolute: bool = False
    potentials: int = 1
    channels: int = 16
    hidden: int = 64
    nodes: bool = True
    bias: bool = False
    pairs: bool = False

    @property
    def pair_channels(self) -> int:
        """Real and imaginary parts of each channel."""
        return 2 * self.channels if self.pairs else 0

    def encoder(self, room: Room) -> PositionEncoder:
        """The SPE."""
        return nn.SPE(
            self.k,
            width=room.width if self.nodes else None,
            heads=room.heads if self.bias else None,
            layers=room.layers,
            pairs=self.pairs,
            channels=self.channels,
            hidden=self.hidden,
            encoding=MagneticLaplacian(self.k, potential(self.q, self.absolute, self.potentials)),
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


def _check_sign(name: str) -> None:
    if name not in SIGNS:
        raise ValueError(f"sign={name!r} is not known: choose one of {', '.join(SIGNS)}")


def potential(q: float, absolute: bool, count: int) -> Potential | tuple[Potential, ...]:
    """`q`, or `q·{1 … count}`, relative to each graph or absolute.

    >>> potential(0.25, absolute=False, count=1), potential(0.1, absolute=True, count=2)
    (Relative(q=0.25), (0.1, 0.2))
    """
    kind = float if absolute else Relative
    potentials = tuple(kind(q * number) for number in range(1, count + 1))
    return potentials[0] if count == 1 else potentials
