"""The potential of one graph from what it shows above the noise: the rule behind `Adaptive`.

Notation: `W` symmetrised weights, `d` degrees, `a_uv = (w_uv − w_vu)/(w_uv + w_vu)` directions, and
`N_q = D^{-1/2} (W ⊙ exp(i2πq a)) D^{-1/2} = I − L_N`. Always in the paper's convention.

1. *Heights* `h = argmin Σ W_uv (h_v − h_u − a_uv)²`. To first order in q, the lowest eigenvector is `√d exp(−i2πq h)`:
   its phases span `2πqR` with `R = max h − min h` in a component. `R ≤ n − 1`, with equality on a path.
2. *Noise*. Randomly placed edges give `N_q` a bulk of eigenvalues of radius `2σ`, `σ² = ‖N‖_F²/n`, and with it noise in
   every eigenvector: an eigenvalue `λ > 2σ` belongs to a signal of strength `s = (λ + √(λ² − 4σ²))/2`, and a share
   `σ²/s²` of its eigenvector is noise (Baik, Ben Arous and Péché). A graph whose bulk reaches 1 has mean degree ≲ 4,
   and nothing to hide.
3. *Carried dimensions* `J(q)`: how many real dimensions of information the real and imaginary parts of the eigenvectors
   above the bulk carry, each weighted by its share of signal. The known vector `√d` does not count.

A quiet graph keeps `Relative(1/4)`, that is a quarter turn over the longest path that it could have. Otherwise q is the
largest of a quarter turn over the heights and its halves that keeps 90 % of the largest `J`; if none does, direction is
coherent around a cycle of classes, and q is the smallest of 1/12 … 1/2 that keeps 95 %.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi, sin
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.linalg.memory import check_memory
from magnetite.linalg.pairs import NodePairs
from magnetite.linalg.phase import weight_and_angle
from magnetite.linalg.sparse import compressed_rows, inner, mix
from magnetite.linalg.threads import in_pool, on_cores

QUARTER = 0.25
"""Turns that the phases of a graph may differ by, the paper's `q' = 1/4`."""

SMALL = 100
"""Smaller graphs keep `Relative(1/4)`, at which a single edge turns by 2^-6 rad: visible in single precision."""

GATE, MARGIN = 2.0, 0.5
"""Edges `2σ(1 + margin · n^(−2/3))` of the bulk: safely beyond it, and at its 99.8 % quantile (Tracy and Widom)."""

FINEST = 2.0**-8
"""Smallest turn of an edge in rad: one unit in the last place of a bfloat16 near 1."""

LEAST = 2.0**-5
"""Smallest span of the phases of such a graph in rad: twice what single precision needs, see `encodings.potentials`."""

CYCLES = (12, 8, 7, 6, 5, 4, 3, 2)
"""Lengths of cycles of classes whose potentials `1/length` are tried."""

HALVINGS = 7
"""Number of times that a quarter turn is halved at most."""

KEEP, TIED = 0.9, 0.95
"""Shares of the carried dimensions that count as all of them: for a quarter turn, and among cycles."""

STEPS = 30
"""Lanczos steps per potential: eigenvalues outside the bulk converge first, and nothing else is needed."""

VECTORS = 16
"""Eigenvectors above the noise that are counted at most."""

SPREAD = 0.1
"""An eigenvector that lives on a smaller share of the nodes (a pendant path, a hub) counts less in proportion."""

SOLVE_STEPS, QUICK_STEPS = 1000, 200
"""Steps of conjugate gradients after which heights count as unknown: for a potential, and for a warning."""

ACCURACY, QUICK_ACCURACY = 1e-9, 1e-4
"""Residual of the heights, relative to the right-hand side: for a potential, and for a warning of two digits."""

SOLVE_WORK = 200_000_000
"""Numbers that these steps may touch: a few seconds."""

LEVELS = 512
"""Directions of antiparallel edges of unequal weights are rounded to this part, for the choice of q only."""

BASIS_BYTES = 2**33
"""Memory for the vectors of all Lanczos steps, beyond which there are fewer steps: from four million nodes on."""

LARGE, AHEAD = 10_000, 32
"""From this number of nodes on, potentials are computed on several cores, and entries of vectors are prefetched."""

COMPLETE = 1e-5
"""A new vector of the basis shorter than this is rounding errors: the others span all that can be reached."""


def adaptive_potentials(pairs: NodePairs, device: torch.device | str = "cpu") -> Float[Tensor, " g"]:
    """The absolute potential of each graph by the rule above, at a quarter turn.

    Args:
        pairs: The node pairs of the graphs, on the CPU.
        device: Where eigenvectors of large graphs are computed.

    >>> from magnetite.linalg.pairs import pair_edges
    >>> path = pair_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.tensor([0, 3]), torch.tensor([4]), None)
    >>> adaptive_potentials(path).item() == 0.25 / 3
    True
    """
    noise = _noise(pairs)
    bound = torch.minimum(pairs.one_way, pairs.sizes).clamp(min=1).double()
    result = QUARTER / bound
    unclear = noise.directed & (noise.limited | (bound > pi / 2 / FINEST))

    def choose(graph: int) -> None:
        given = float(noise.sigma[graph]), float(bound[graph]), bool(noise.limited[graph])
        result[graph] = _Graph.of(pairs, graph).chosen(*given, torch.device(device))

    in_pool(choose, unclear.nonzero().squeeze(1).tolist())
    return result


def has_direction(pairs: NodePairs) -> Bool[Tensor, " g"]:
    """Whether a graph has one-way edges, or antiparallel ones of unequal weights."""
    return _noise(pairs).directed


def span_of_heights(pairs: NodePairs, graph: int) -> float | None:
    """`R` of one graph, over which the phases of its lowest eigenvector span `2πqR`; None if not found quickly."""
    found = _Graph.of(pairs, graph).heights(QUICK_STEPS, QUICK_ACCURACY)
    return None if found is None else found[1]


@dataclass(frozen=True)
class _Noise:
    sigma: Float[Tensor, " g"]
    limited: Bool[Tensor, " g"]
    directed: Bool[Tensor, " g"]


def _noise(pairs: NodePairs) -> _Noise:
    """`σ` of every graph, whether its bulk ends safely below 1, and whether it has a direction: O(m) for all graphs."""
    count = len(pairs.sizes)
    graph = torch.repeat_interleave(torch.arange(count), pairs.start.diff())
    used = torch.arange(len(graph)) - pairs.start[graph] < pairs.count[graph]
    graph, low, high = graph[used], pairs.low[used], pairs.high[used]
    weight, angle = weight_and_angle(pairs.forward[used], pairs.backward[used], 1.0)
    first = (pairs.sizes.cumsum(0) - pairs.sizes)[graph]
    proper = low != high
    degree = weight.new_zeros(int(pairs.sizes.sum())).index_add_(0, first + low, weight)
    degree.index_add_(0, (first + high)[proper], weight[proper])
    # The weights are close to 1 (see `linalg.scale`); tiny ones are divided one by one, since products underflow.
    square = (weight / degree[first + low]) * (weight / degree[first + high]) * (1 + proper.double())
    total = weight.new_zeros(count).index_add_(0, graph, square)
    node_graph = torch.repeat_interleave(torch.arange(count), pairs.sizes)
    touched = torch.bincount(node_graph[degree > 0], minlength=count).clamp(min=1).double()
    sigma = (total / touched).sqrt()
    limited = (2 * sigma * (1 + GATE * touched ** (-2 / 3)) < 1) & (pairs.sizes >= SMALL)
    directed = torch.zeros(count, dtype=torch.bool).index_put_((graph[angle != 0],), torch.tensor(True))
    return _Noise(sigma, limited, directed)


@dataclass(frozen=True)
class _Graph:
    """One graph in compressed sparse rows: both directions of every pair, weights `W`, and directions `a`."""

    size: int
    matrix: Any
    turn: np.ndarray
    degree: np.ndarray

    @classmethod
    def of(cls, pairs: NodePairs, graph: int) -> "_Graph":
        """Graph number `graph` of the pairs."""
        from scipy.sparse import csr_array

        begin, held, size = int(pairs.start[graph]), int(pairs.count[graph]), int(pairs.sizes[graph])
        own = slice(begin, begin + held)
        part = (pairs.low[own], pairs.high[own], pairs.forward[own], pairs.backward[own])
        low, high = part[0].numpy(), part[1].numpy()
        weight, angle = (tensor.numpy() for tensor in weight_and_angle(part[2], part[3], 1.0))
        proper = low != high
        row, column = np.concatenate([low, high[proper]]), np.concatenate([high, low[proper]])
        entries: Any = csr_array((np.arange(len(row)), (row, column)), shape=(size, size))  # sorts by counting
        data = np.concatenate([weight, weight[proper]])[entries.data]
        turn = np.concatenate([angle, -angle[proper]])[entries.data]
        matrix = csr_array((data, entries.indices.astype(np.int32), entries.indptr), shape=(size, size))
        return cls(size, matrix, turn, matrix.sum(axis=1))

    @property
    def row(self) -> np.ndarray:
        return np.repeat(np.arange(self.size), np.diff(self.matrix.indptr))

    def heights(self, steps: int, accuracy: float) -> tuple[np.ndarray, float] | None:
        """Heights with mean 0 in every component, and their largest span; None if they do not converge."""
        from scipy.sparse.csgraph import connected_components

        from magnetite.kernels.cpu.heights import solve_laplacian

        count, part = connected_components(self.matrix, directed=False)
        mass = np.maximum(np.bincount(part, self.degree, count), 1e-300)
        slope = np.bincount(self.row, self.matrix.data * self.turn, self.size)
        steps = min(steps, max(50, SOLVE_WORK // (self.size + self.matrix.nnz)))
        height, rows = np.empty(self.size), (self.matrix.indptr, self.matrix.indices)
        if not solve_laplacian(*rows, self.matrix.data, self.degree, -slope, height, steps, accuracy):
            return None
        height = height - (np.bincount(part, self.degree * height, count) / mass)[part]
        high, low = np.full(count, -np.inf), np.full(count, np.inf)
        np.maximum.at(high, part, height)
        np.minimum.at(low, part, height)
        return height, float((high - low).max())

    def winds(self) -> bool:
        """Whether there is a directed cycle."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        along = self.turn >= 0
        along |= np.abs(self.turn) < 1  # an antiparallel pair has both edges
        ends = self.row[along], self.matrix.indices[along]
        shape = (self.size, self.size)
        edges = csr_array((np.ones(len(ends[0]), np.int8), ends), shape=shape)
        return connected_components(edges, connection="strong")[0] < self.size

    def chosen(self, sigma: float, bound: float, limited: bool, device: torch.device) -> float:
        """The potential of this graph, given `σ` and the largest number of one-way edges on a path."""
        known = self.heights(SOLVE_STEPS, ACCURACY)
        if known is None and not limited:
            return QUARTER / bound
        height, span = (np.zeros(self.size), bound) if known is None else known
        span = bound if np.isclose(span, bound, rtol=1e-6) else span
        quiet = QUARTER / max(span, min(bound, pi / 2 / FINEST))
        quiet = max(quiet, LEAST / (2 * pi * max(span, 1)))
        if not limited:
            return quiet
        quarter = min(QUARTER, QUARTER / max(span, 1e-9))
        below = [q for q in quarter * 0.5 ** np.arange(HALVINGS) if q > quiet] + [quiet]
        above = [1 / length for length in CYCLES if 1 / length > 1.05 * quarter] if self.winds() else []
        carried = dict(zip(below + above, self.carried(height, sigma, np.array(below + above), device), strict=True))
        most = max(carried.values())
        if most == 0:
            return quiet
        enough = [q for q in below if carried[q] >= KEEP * most]
        return float(max(enough) if enough else min(q for q in above if carried[q] >= TIED * most))

    def carried(self, height: np.ndarray, sigma: float, potentials: np.ndarray, device: torch.device) -> list[float]:
        """The carried dimensions `J` at each potential."""
        from magnetite.kernels.cpu.lanczos import LANES

        root = np.sqrt(self.degree / self.degree.sum())
        # No node number enters, and reversing all edges conjugates the vector as it does the matrices.
        first = root * np.exp(2e3j * pi * height) * (1 + 0.5 * np.cos(17.3 * self.degree / self.degree.mean()))
        matrix, edge = self._matrix, _edge(sigma, self.degree)
        on_gpu = device.type == "cuda" and self.size > LARGE
        known = torch.from_numpy(root).to(device if on_gpu else "cpu")

        def work(some: np.ndarray) -> list[float]:
            given = matrix, first, some, edge
            found = self._highest_on_gpu(*given, device) if on_gpu else self._highest(*given)
            return [_carried(values, vectors, known, sigma, 2 * pi * q) for q, values, vectors in found]

        if on_gpu:
            return work(potentials)
        parts = [potentials[begin : begin + LANES] for begin in range(0, len(potentials), LANES)]
        several = self.size > LARGE and len(parts) * self._basis_bytes(STEPS) <= BASIS_BYTES
        return [each for part in (on_cores(work, parts) if several else map(work, parts)) for each in part]

    def _basis_bytes(self, steps: int) -> int:
        from magnetite.kernels.cpu.lanczos import LANES

        return 8 * LANES * (steps + 1) * self.size

    @property
    def _matrix(self) -> tuple[np.ndarray, ...]:
        """`N_q` as the kernel reads it, and its directions, of which `level` names one per entry."""
        scale = np.divide(1.0, np.sqrt(self.degree), out=np.zeros_like(self.degree), where=self.degree > 0)
        weights = (self.matrix.data * scale[self.row] * scale[self.matrix.indices]).astype(np.float32)
        rounded = np.rint(self.turn * LEVELS).astype(np.int64) + LEVELS
        there = np.bincount(rounded, minlength=2 * LEVELS + 1) > 0
        level = (there.cumsum() - 1).astype(np.int32)[rounded]
        turns = there.nonzero()[0] / LEVELS - 1
        return self.matrix.indptr, self.matrix.indices, level, weights, turns

    def _highest(
        self, matrix: tuple[np.ndarray, ...], first: np.ndarray, potentials: np.ndarray, edge: float
    ) -> Iterator[tuple[float, Tensor, Tensor]]:
        """Each potential, and the eigenpairs of `N_q` above the edge of the bulk, by Lanczos iteration."""
        from magnetite.kernels.cpu.lanczos import LANES, lanczos

        *rows, turns = matrix
        most = BASIS_BYTES // self._basis_bytes(0) - 1
        steps = max(1, min(STEPS, int((self.degree > 0).sum()), most))
        advice = "give q, such as q=0.1"
        check_memory(self._basis_bytes(steps), torch.device("cpu"), f"the choice of q for {self.size} nodes", advice)
        angle = np.zeros((len(turns), LANES))
        angle[:, : len(potentials)] = turns[:, None] * (2 * pi * potentials)
        basis = np.zeros((steps + 1, self.size, 2 * LANES), np.float32)
        unit = first / np.linalg.norm(first)
        basis[0, :, :LANES], basis[0, :, LANES:] = unit.real[:, None], unit.imag[:, None]
        diagonal, beside = np.zeros((2, steps, LANES))
        table = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        work = np.empty((self.size, 2 * LANES), np.float32), np.empty(2 * LANES, np.float32)
        lanczos(*rows, *table, basis, *work, diagonal, beside, COMPLETE, AHEAD if self.size > LARGE else 0)
        for lane, q in enumerate(potentials):
            values, part = _above(diagonal[:, lane], beside[:, lane], edge)
            real, imag = (basis[: len(part), :, place].T @ part for place in (lane, LANES + lane))
            yield float(q), torch.from_numpy(values), torch.complex(torch.from_numpy(real), torch.from_numpy(imag))

    def _highest_on_gpu(
        self,
        matrix: tuple[np.ndarray, ...],
        first: np.ndarray,
        potentials: np.ndarray,
        edge: float,
        device: torch.device,
    ) -> Iterator[tuple[float, Tensor, Tensor]]:
        """The same, one potential after the other, on a GPU."""
        start, columns, level, weights, turns = (torch.from_numpy(part).to(device) for part in matrix)
        steps = min(STEPS, int((self.degree > 0).sum()))
        basis = torch.empty((steps + 1, self.size), dtype=torch.complex64, device=device)
        basis[0] = torch.from_numpy(first / np.linalg.norm(first))
        diagonal, beside = torch.zeros((2, steps), dtype=torch.float64, device=device)
        for q in potentials:
            turn = torch.polar(torch.ones_like(turns), turns * (2 * pi * float(q))).to(basis.dtype)
            rows = compressed_rows(start, columns, weights * turn[level.long()])
            for step in range(steps):
                known = basis[: step + 1]
                new = (rows @ known[-1])[None]
                along = inner(new, known)
                diagonal[step] = along[0, -1].real
                new = new - mix(along, known)
                length = torch.linalg.vector_norm(new)
                going_on = length > COMPLETE
                beside[step] = torch.where(going_on, length, 0)
                basis[step + 1] = torch.where(going_on, new[0] / length, 0)
            values, part = _above(diagonal.cpu().numpy(), beside.cpu().numpy(), edge)
            mixed = mix(torch.from_numpy(part.T.copy()).to(basis), basis[: len(part)])
            yield float(q), torch.from_numpy(values).to(device), mixed.T


def _above(diagonal: np.ndarray, beside: np.ndarray, edge: float) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues above the edge of the tridiagonal matrix of an iteration, and their vectors in its basis."""
    from scipy.linalg import get_lapack_funcs

    ended, steps = np.flatnonzero(beside == 0), len(diagonal)
    kept = ended[0] + 1 if len(ended) else steps
    solve_tridiagonal: Any = get_lapack_funcs("stevd", (diagonal,))
    values, mix, _ = solve_tridiagonal(diagonal[:kept], beside[: max(kept - 1, 1)])
    chosen = (np.arange(kept) >= kept - VECTORS) & (values > edge)
    return values[chosen], mix[:, chosen].astype(np.float32)


def _edge(sigma: float, degree: np.ndarray) -> float:
    return 2 * sigma * (1 + MARGIN * float((degree > 0).sum()) ** (-2 / 3))


def _carried(values: Tensor, vectors: Tensor, root: Tensor, sigma: float, turn: float) -> float:
    """`J = Σ_i min(μ_i, 1) Σ_j (|c_ij|² + |c_i,j+k|²) r_j` for the Gram matrix `(μ, c)` of the vectors and their
    conjugates without their component along `root`, and the share `r_j` of signal in what is left of vector j.
    """
    if not len(values):
        return 0.0
    vectors = vectors.to(torch.complex128)
    along = root.to(vectors.dtype) @ vectors
    left = vectors - torch.outer(root.to(vectors.dtype), along)
    # At small q a vector is nearly `root`: its rest is summed up, since a difference of 1 would be rounding errors.
    rest = (left.abs() ** 2).sum(0).clamp(min=1e-12)
    strength = (values + (values**2 - 4 * sigma**2).clamp(min=0).sqrt()) / 2
    noise = sigma**2 / strength**2 * (rest + along.abs() ** 2 * sin(turn) ** 2)
    spread = 1 / (len(root) * (vectors.abs() ** 4).sum(0) + 1e-30)
    quality = (1 - noise / rest).clamp(0, 1) * (spread / SPREAD).clamp(max=1)
    left = left / rest.sqrt()
    both = torch.cat([left, left.conj()], dim=1)
    gram, turns = torch.linalg.eigh(both.mH @ both)
    return float(gram.clamp(0, 1) @ ((turns.abs() ** 2).mT @ torch.cat([quality, quality])))
