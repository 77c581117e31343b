import pytest
import torch

import magnetite as mt
from magnetite.linalg.phase import CONVENTIONS, normalise


def random_vectors(seed: int, dtype=torch.complex128) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(5, 9, 9, dtype=dtype, generator=generator))[0]


@pytest.mark.parametrize("dtype", [torch.complex128, torch.float64])
def test_the_phase_of_the_input_does_not_matter(dtype):
    vectors = random_vectors(0, dtype)
    phases = torch.randn(5, 1, 9, dtype=dtype, generator=torch.Generator().manual_seed(1)).sgn()
    first, anchored = normalise(vectors)
    second, _ = normalise(vectors * phases)
    assert anchored.all()
    torch.testing.assert_close(first, second)


def test_the_root_is_real_and_positive():
    vectors, _ = normalise(random_vectors(2), torch.tensor([0, 3, 8, 1, 2]))
    at_root = vectors[torch.arange(5), torch.tensor([0, 3, 8, 1, 2])]
    torch.testing.assert_close(at_root.imag, torch.zeros(5, 9, dtype=torch.float64))
    assert (at_root.real > 0).all()


def test_only_the_phase_changes():
    vectors = random_vectors(3)
    turned, _ = normalise(vectors)
    torch.testing.assert_close(turned.abs(), vectors.abs())
    torch.testing.assert_close(turned.mH @ turned, torch.eye(9, dtype=vectors.dtype).expand(5, 9, 9))


def test_tied_roots_are_summed_so_that_no_node_id_decides():
    """Both leaves of a star pointing inwards are foremost: the antisymmetric vector has nothing to hold on to."""
    star = mt.Digraphs.from_edges([[0, 1], [2, 2]])
    pairs = mt.MagneticLaplacian(k=3, dtype=torch.float64)(star)
    assert pairs.anchored.tolist() == [[True, False, True]]
    torch.testing.assert_close(pairs.vectors[0, 0], pairs.vectors[1, 0])


def test_a_directed_circle_is_anchored_only_in_its_first_vector():
    circle = mt.Digraphs.from_edges([list(range(7)), [*range(1, 7), 0]])
    pairs = mt.MagneticLaplacian(k=7)(circle)
    assert pairs.anchored.tolist() == [[True] + [False] * 6]


def test_reversing_all_edges_conjugates(odd):
    """With a given root exactly; with a found one up to a phase each, which the reversed graph's own root fixes."""
    rooted = odd.replace(graph_features={"root": torch.zeros(len(odd), dtype=torch.long)})
    encoding = mt.MagneticLaplacian(k=6, root="root", dtype=torch.float64)
    forward, backward = encoding(rooted), encoding(rooted.reverse())
    fixed = (forward.determined() & backward.determined())[odd.node_graph]
    assert fixed.any()
    torch.testing.assert_close(backward.vectors * fixed, forward.vectors.conj() * fixed, atol=1e-5, rtol=0)

    found = mt.MagneticLaplacian(k=6, dtype=torch.float64)
    forward, backward = found(odd), found(odd.reverse())
    both = forward.determined() & backward.determined()
    overlap = torch.zeros(len(odd), 6, dtype=torch.complex128).index_add_(
        0, odd.node_graph, forward.vectors * backward.vectors
    )
    torch.testing.assert_close(overlap.abs()[both], torch.ones(int(both.sum()), dtype=torch.float64))


def test_the_reversed_root_is_the_last_sink():
    path = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])
    encoding = mt.MagneticLaplacian(k=1, dtype=torch.float64)
    assert encoding(path).vectors[:, 0].angle().argmax() == 0
    assert encoding(path.reverse()).vectors[:, 0].angle().argmax() == 3


def test_bad_roots():
    graph = mt.Digraphs.from_edges([[0], [1]])
    with pytest.raises(ValueError, match="no graph feature 'root'"):
        mt.MagneticLaplacian(k=1, root="root")(graph)
    with pytest.raises(ValueError, match="root 2 of graph 0"):
        mt.MagneticLaplacian(k=1, root="root")(graph.replace(graph_features={"root": torch.tensor([2])}))


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unconnected_nodes_have_entry_zero_in_every_convention(name, dtype):
    forward = torch.tensor([0.0, 1.0, 0.0, 2.0], dtype=dtype)
    entries = CONVENTIONS[name].hermitian(forward, forward.flip(0), torch.full((4,), 0.3, dtype=dtype))
    nothing = CONVENTIONS[name].hermitian(torch.zeros_like(forward), torch.zeros_like(forward), entries.real)
    assert torch.equal(nothing, torch.zeros_like(nothing))
    assert torch.allclose(entries, entries.flip(0).conj())


@pytest.mark.parametrize("name", CONVENTIONS)
def test_entries_do_not_depend_on_unconnected_neighbours(name):
    forward, backward = torch.rand(2, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    forward, backward = forward * (forward > 0.5), backward * (backward > 0.3)
    phase = torch.full_like(forward, 0.7)
    connected = (forward > 0) | (backward > 0)
    alone = CONVENTIONS[name].hermitian(forward[connected], backward[connected], phase[connected])
    torch.testing.assert_close(CONVENTIONS[name].hermitian(forward, backward, phase)[connected], alone)
