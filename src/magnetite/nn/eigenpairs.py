"""What encoders need to know of the eigenpairs that they take: how many, real or complex, and whether they fit."""

from magnetite.batching import Batch, PaddedEigenpairs
from magnetite.encodings import Laplacian, MagneticLaplacian

Spectral = MagneticLaplacian | Laplacian


def potential_count(encoding: Spectral) -> int:
    """Number of potentials of an encoding, `Q`.

    >>> potential_count(MagneticLaplacian(k=4, q=(0.1, 0.2)))
    2
    """
    potentials = getattr(encoding, "q", None)
    return len(potentials) if isinstance(potentials, tuple) else 1


def part_count(encoding: Spectral) -> int:
    """Numbers an entry of an eigenvector consists of: 1 where they are real, 2 where they are complex.

    >>> part_count(Laplacian(k=4))
    1
    """
    return 2 if isinstance(encoding, MagneticLaplacian) else 1


def eigenpairs_of(batch: Batch, name: str, encoding: Spectral) -> PaddedEigenpairs:
    """The batch's eigenpairs under this name, if they are what the encoding gives."""
    pairs = batch.encoding(name)
    if not isinstance(pairs, PaddedEigenpairs):
        raise ValueError(f"{name!r} of the batch holds no eigenpairs: encode with {encoding}")
    kinds = {1: "real", 2: "complex"}
    found, parts = pairs.values.shape[1:].numel(), pairs.vectors.shape[-1]
    expected = encoding.k * potential_count(encoding)
    if (found, parts) != (expected, part_count(encoding)):
        raise ValueError(
            f"{name!r} of the batch holds {found} {kinds[parts]} eigenvectors a graph, this encoder takes {expected} "
            f"{kinds[part_count(encoding)]} ones: encode with {encoding}"
        )
    return pairs
