"""Advice: which encoding, potential and size suit some graphs, why, and what each encoding would cost."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.encodings.checks import check_graphs
from magnetite.encodings.potentials import node_pairs
from magnetite.encodings.spectral import Laplacian, MagneticLaplacian
from magnetite.encodings.svd import DENSE_UP_TO, PART, SVD
from magnetite.encodings.walks import KERNEL_UP_TO, RandomWalk
from magnetite.graphs import Digraphs
from magnetite.linalg.adaptive import SMALL, has_direction
from magnetite.linalg.eigen_cpu import ENGINE_UP_TO
from magnetite.linalg.memory import total_memory
from magnetite.linalg.potential import Adaptive

LARGE = 1000
"""Mean number of nodes from which 8 eigenvectors are advised: those below the noise would only add noise."""

SMALL_K, LARGE_K = 16, 8

POTENTIALS = tuple(Adaptive(0.25 * number) for number in range(1, 6))
"""The potentials of `multi-q`."""

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes"))

COLUMNS = ("encoding", "direction", "time", "memory", "note")


@dataclass(frozen=True)
class Alternative:
    """One encoding, and what it costs.

    Args:
        name: Its name on the command line and in configurations.
        encoding: The encoding.
        direction: Whether it shows the direction of edges.
        seconds: Expected time on the CPU.
        bytes: Expected memory, results included.
        note: What to know about it.
    """

    name: str
    encoding: Any
    direction: bool
    seconds: float
    bytes: float
    note: str


@dataclass(frozen=True, repr=False)
class Advice:
    """An encoding for some graphs, the reason, and the cost of it and of the others; printed as a table.

    Args:
        encoding: The encoding to use.
        name: Its name on the command line and in configurations.
        q: Absolute potential of each graph; None if the encoding has none.
        k: Number of eigenvectors.
        scaling: How eigenvectors reach a network: `nodes` multiplies them by `√n`.
        reason: Why.
        alternatives: All encodings with their costs, the advised one first.
    """

    encoding: Any
    name: str
    q: Float[Tensor, " b"] | None
    k: int
    scaling: str
    reason: str
    alternatives: tuple[Alternative, ...]

    def rows(self) -> list[tuple[str, ...]]:
        """The table without its header."""
        return [
            (each.name, "yes" if each.direction else "no", _time(each.seconds), _size(each.bytes), each.note)
            for each in self.alternatives
        ]

    def summary(self) -> str:
        """The advice and the reason, in a few lines."""
        q = "" if self.q is None else f", q = {_range(self.q)}"
        return f"{self.encoding}\n{self.name}: k = {self.k}{q}, scaling = {self.scaling}\n{self.reason}"

    def __repr__(self) -> str:
        table = [COLUMNS, *self.rows()]
        widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        return "\n".join([self.summary(), "", *lines])


def advise(graphs: Digraphs) -> Advice:
    """Which encoding, potential and number of eigenvectors suit these graphs, and what each encoding would cost.

    Directed graphs get the magnetic Laplacian at the potential of `Adaptive`, undirected ones the combinatorial
    Laplacian, which has the same information at less cost. Costs are those of a formula, see `seconds_and_bytes`.

    Args:
        graphs: Graphs, of which only the structure is looked at.

    >>> advice = advise(Digraphs.from_edges([[0, 1, 2], [1, 2, 3]]))
    >>> advice.name, advice.k, advice.scaling, advice.q.tolist()
    ('magnetic', 4, 'nodes', [0.08333333333333333])
    """
    check_graphs(graphs)
    sizes = graphs.sizes.double().cpu()
    largest, mean = (int(sizes.max()), float(sizes.mean())) if len(graphs) else (0, 0.0)
    k = max(1, min(LARGE_K if mean >= LARGE else SMALL_K, largest))
    pairs = node_pairs(graphs)
    directed = bool(has_direction(pairs).any())
    q = Adaptive().of_pairs(pairs) if directed else None
    encodings: dict[str, tuple[Any, bool, str]] = {
        "magnetic": (MagneticLaplacian(k), True, "eigenvectors; any size"),
        "multi-q": (MagneticLaplacian(k, POTENTIALS), True, "five potentials; more columns"),
        "walks": (RandomWalk(), True, "node pairs: n² numbers per graph"),
        "svd": (SVD(min(k, max(largest, 1))), True, "singular vectors; any size"),
        "laplacian": (Laplacian(k), False, "real eigenvectors"),
    }
    name = "magnetic" if directed else "laplacian"
    limit = total_memory(torch.device("cpu"))
    found = []
    for each, (encoding, direction, note) in encodings.items():
        seconds, memory = seconds_and_bytes(each, graphs, k)
        note = f"does not fit into {_size(limit)}" if memory > limit else note
        found.append(Alternative(each, encoding, direction, seconds, memory, note))
    found.sort(key=lambda alternative: alternative.name != name)
    reason = _reason(graphs, q, mean)
    return Advice(encodings[name][0], name, q, k, "nodes", reason, tuple(found))


def seconds_and_bytes(name: str, graphs: Digraphs, k: int) -> tuple[float, float]:
    """Expected seconds on two cores and bytes of an encoding, by a formula; `benchmarks/choosing.py` checks it.

    Dense solvers cost `n³`, iterations about `6·10⁻⁶ s` per edge and node, and the choice of the potential `4·10⁻⁶ s`
    per edge, since it is 16 × 30 products with the matrix; the constants are from timings on two cores.

    Args:
        name: A name in the table of `advise`.
        graphs: The graphs.
        k: Number of eigenvectors, or rank.
    """
    n, m = graphs.sizes.double().cpu(), graphs.edge_ptr.diff().double().cpu()
    dense, full = n <= ENGINE_UP_TO, (n <= DENSE_UP_TO) | (n < PART * k)
    real = torch.where(dense, 3e-6 + 1.5e-10 * n**3, 6e-6 * (n + m) * (k / 8) ** 0.5)
    eigen = torch.where(dense, 4e-6 + 3.5e-10 * n**3, 6e-6 * (n + m) * (k / 8) ** 0.5)
    choice = torch.where((n >= SMALL) & (m > 2 * n), 8e-3 + 4e-6 * m, 0)
    work = torch.where(dense, 8 * n**2, 8 * 16 * 31 * n)
    costs = {
        "magnetic": (eigen + choice, 8 * n * k, work),
        "multi-q": (5 * eigen + choice, 40 * n * k, work),
        "walks": (
            4e-6 + torch.where(n <= KERNEL_UP_TO, 2e-8 * n**2 + 1e-10 * n**3, 1.6e-9 * n**3),
            32 * n**2,
            64 * n**2,
        ),
        "svd": (
            torch.where(full, 5e-6 + 1.3e-9 * n**3, 2.2e-5 * (n + m)),
            8 * n * k,
            torch.where(full, 88 * n**2, 6e3 * n),
        ),
        "laplacian": (real, 4 * n * k, 8 * n**2 if bool(dense.all()) else work),
    }
    seconds, kept, working = costs[name]
    return float(seconds.sum()), float(kept.sum() + (working.max() if len(n) else 0))


def _reason(graphs: Digraphs, q: Tensor | None, mean: float) -> str:
    if not graphs.num_edges:
        return "no edges, so there is no position to encode: use the nodes' own features"
    if q is None:
        return "no one-way edges, so there is no direction to encode, and real eigenvectors cost less"
    own = torch.minimum(node_pairs(graphs).one_way, graphs.sizes.cpu()).clamp(min=1)
    chosen = int((q != 0.25 / own.double()).sum())
    what = "edges have a direction, which the phases of eigenvectors show"
    if not chosen:
        return f"{what}; no graph is dense and large enough to hide it in noise, so q is that of Relative(0.25)"
    some = "the graph has" if len(graphs) == 1 else f"{chosen:,} of {len(graphs):,} graphs have"
    count = f"; {mean:,.0f} nodes: vectors after the first 8 are mostly noise" if mean >= LARGE else ""
    return f"{what}; {some} a q of its own, since Relative(0.25) would be too small to be seen{count}"


def _range(q: Tensor) -> str:
    low, high = float(q.min()), float(q.max())
    return f"{low:.3g}" if low == high else f"{low:.3g} … {high:.3g}"


def _time(seconds: float) -> str:
    """A time in words.

    >>> _time(0.0123), _time(75.0), _time(8000.0)
    ('12 ms', '75 s', '2.2 h')
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms" if seconds >= 1e-3 else "< 1 ms"
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3600:.1f} h"


def _size(size: float) -> str:
    """A number of bytes in words.

    >>> _size(5e4), _size(3e9)
    ('49 KiB', '2.8 GiB')
    """
    unit, name = next((each for each in UNITS if size >= each[0]), UNITS[-1])
    return f"{size / unit:,.{1 if name == 'GiB' else 0}f} {name}"
