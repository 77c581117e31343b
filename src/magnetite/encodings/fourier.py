"""The graph Fourier transform of directed graphs, from complete eigenpairs (the paper's appendix B)."""

from collections.abc import Callable

import torch
from jaxtyping import Shaped
from torch import Tensor

from magnetite.encodings.results import Eigenpairs


def fourier(pairs: Eigenpairs, signal: Shaped[Tensor, "n c"]) -> Shaped[Tensor, "b k c"]:
    """Transform signals to frequencies, `X = Γᴴ x`, for each graph; padded frequencies are zero.

    Args:
        pairs: All eigenpairs of each graph.
        signal: Values per node.

    >>> from magnetite.encodings.spectral import MagneticLaplacian
    >>> from magnetite.graphs import Digraphs
    >>> pairs = MagneticLaplacian(k=3, q=0.25, dtype=torch.float64)(Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> signal = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    >>> inverse_fourier(pairs, fourier(pairs, signal)).real.round().tolist()
    [[1.0], [2.0], [3.0]]
    """
    _check_complete(pairs)
    if signal.shape[0] != pairs.vectors.shape[0]:
        raise ValueError(f"signal must have one row per node, {pairs.vectors.shape[0]}, got {signal.shape[0]}")
    terms = pairs.vectors.conj()[:, :, None] * signal[:, None, :]
    spectrum = terms.new_zeros((len(pairs), *terms.shape[1:]))
    return spectrum.index_add_(0, pairs.node_graph, terms)


def inverse_fourier(pairs: Eigenpairs, spectrum: Shaped[Tensor, "b k c"]) -> Shaped[Tensor, "n c"]:
    """Transform frequencies back to signals, `x = Γ X`.

    Args:
        pairs: All eigenpairs of each graph.
        spectrum: Values per frequency, as returned by `fourier`.
    """
    _check_complete(pairs)
    return torch.einsum("nk,nkc->nc", pairs.vectors, spectrum.to(pairs.vectors)[pairs.node_graph])


def graph_filter(
    pairs: Eigenpairs, signal: Shaped[Tensor, "n c"], response: Callable[[Tensor], Tensor]
) -> Shaped[Tensor, "n c"]:
    """Convolve a signal with a filter given in the frequency domain: `g ⊛ x = Γ g(Λ) Γᴴ x`.

    Args:
        pairs: All eigenpairs of each graph.
        signal: Values per node.
        response: The filter `g`, applied to the eigenvalues.

    >>> from magnetite.encodings.spectral import Laplacian
    >>> from magnetite.graphs import Digraphs
    >>> pairs = Laplacian(k=2, normalised=False)(Digraphs.from_edges([[0], [1]]))
    >>> graph_filter(pairs, torch.tensor([[1.0], [3.0]]), lambda values: values < 1).round().tolist()
    [[2.0], [2.0]]
    """
    return inverse_fourier(pairs, response(pairs.values)[:, :, None] * fourier(pairs, signal))


def _check_complete(pairs: Eigenpairs) -> None:
    if pairs.values.ndim != 2 or pairs.vectors.ndim != 2:
        raise ValueError("the Fourier transform needs packed eigenpairs of one potential: pass pairs, not pairs[0]")
    missing = (pairs.mask.sum(1) < pairs.sizes).nonzero()
    if missing.numel():
        graph = int(missing[0])
        raise ValueError(
            f"the Fourier transform needs all eigenpairs, but graph {graph} with {int(pairs.sizes[graph])} nodes has "
            f"{int(pairs.mask[graph].sum())}: encode with a larger k"
        )
