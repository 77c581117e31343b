"""Walk encoders equal their formulas; other encodings are refused."""

import pytest
import torch
from hypothesis import given, settings

import magnetite as mt
from magnetite import nn
from magnetite.linalg.distances import hop_distances
from magnetite.testing import digraphs
from tests.nn.zoo import WIDTH, generic_digraphs

WALKS = mt.RandomWalk(steps=2, restart=None)


def test_nodes_are_sums_over_the_starts():
    graphs = generic_digraphs(0)
    encoder = nn.WalkEncoder(WIDTH, WALKS)
    walks = WALKS(graphs)
    nodes = encoder(mt.batch(graphs, walks)).nodes
    for number, own in enumerate(nodes.split(graphs.sizes.tolist())):
        pairs = torch.nn.functional.gelu(encoder.sum.pair(walks[number]))
        torch.testing.assert_close(own, encoder.sum.node(pairs.sum(0)))


def test_biases_are_linear_in_start_and_landing():
    graphs = generic_digraphs(0)
    encoder = nn.RelativeWalkEncoder(heads=2, layers=3, encoding=WALKS)
    walks = WALKS(graphs)
    biases = encoder(mt.batch(graphs, walks)).biases
    weights = encoder.bias.linear.weight.view(3, 2, -1)
    for number, size in enumerate(graphs.sizes.tolist()):
        for layer in range(3):
            expected = torch.einsum("uvf,hf->huv", walks[number], weights[layer])
            torch.testing.assert_close(biases[layer][0][number, :, :size, :size], expected)


@torch.no_grad()
@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_features_may_be_stored_in_half_precision(precision):
    graphs = generic_digraphs(0)
    whole, half = (mt.RandomWalk(2, None, dtype=dtype)(graphs) for dtype in (torch.float32, torch.float16))
    exact = type(half).from_tensors({**half.tensors(), "values": half.values.float()})
    for encoder in (nn.WalkEncoder(WIDTH, WALKS), nn.RelativeWalkEncoder(heads=2, layers=1, encoding=WALKS)):
        with torch.autocast("cpu", precision, enabled=precision is not None):
            found = [encoder(mt.batch(graphs, walks)) for walks in (half, exact, whole)]
        given = [positions.biases[0][0] if positions.nodes is None else positions.nodes for positions in found]
        torch.testing.assert_close(given[0], given[1])
        torch.testing.assert_close(given[0], given[2], rtol=2e-2, atol=2e-2)


def test_other_encodings_are_rejected():
    graphs = generic_digraphs(0)
    with pytest.raises(ValueError, match="has 4 features per pair, expected 8 features per pair"):
        nn.WalkEncoder(WIDTH)(mt.batch(graphs, WALKS(graphs)))
    with pytest.raises(ValueError, match="has BatchedEigenpairs, expected 8 features per pair"):
        nn.WalkEncoder(WIDTH, of="eigenpairs")(mt.batch(graphs, mt.MagneticLaplacian(k=2)(graphs)))


@settings(max_examples=20)
@given(digraphs(max_nodes=8))
def test_pairs_are_random_walks_or_roots_of_them(graphs):
    batch, walks = mt.batch(graphs), mt.RandomWalk(steps=4, restart=None)(graphs)
    plain, rooted = (nn.PairWalkEncoder(steps=4, root=root)(batch).pairs[0] for root in (False, True))
    lengths = torch.tensor([4, 3, 2, 1, 1, 2, 3, 4])
    for number, size in enumerate(graphs.sizes.tolist()):
        inside = number, slice(size), slice(size)
        torch.testing.assert_close(plain[inside], walks[number], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(rooted[inside] ** lengths, plain[inside], rtol=1e-5, atol=1e-6)


@settings(max_examples=20)
@given(digraphs(max_nodes=8))
def test_the_first_walk_that_arrives_has_the_length_of_the_distance(graphs):
    (pairs,) = nn.PairWalkEncoder(steps=8)(mt.batch(graphs)).pairs
    distances = hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr)
    for number, flat in enumerate(distances.split(graphs.sizes.square().tolist())):
        size = int(graphs.sizes[number])
        expected = flat.view(size, size)
        backward, forward = pairs[number, :size, :size].chunk(2, dim=-1)
        apart = ~torch.eye(size, dtype=torch.bool)
        assert torch.equal(_first_arrival(forward)[apart], expected.long()[apart])
        assert torch.equal(_first_arrival(backward.flip(-1))[apart], expected.T.long()[apart])


def _first_arrival(walks: torch.Tensor) -> torch.Tensor:
    """The length of the first walk with a positive probability, −1 if there is none."""
    arrived = walks > 0
    return torch.where(arrived.any(-1), arrived.int().argmax(-1) + 1, -1)


@pytest.mark.parametrize("autocast", [False, True])
def test_long_walks_stay_visible(autocast):
    """Half of the walks leave the path at each step: one in 67 million makes all 26 steps."""
    steps = 26
    path, leaves = torch.arange(steps), torch.arange(steps + 1, 2 * steps + 1)
    edges = torch.cat([torch.stack([path, path + 1]), torch.stack([path, leaves])], dim=1)
    batch = mt.batch(mt.Digraphs.from_edges(edges))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        plain, rooted = (nn.PairWalkEncoder(steps, root)(batch).pairs[0] for root in (False, True))
    assert plain.dtype == rooted.dtype == torch.float32
    assert plain[0, 0, steps, -1] == 2.0**-steps
    assert plain[0, 0, steps, -1].half() == 0
    torch.testing.assert_close(rooted[0, 0, steps], torch.eye(2 * steps)[-1] / 2)


def test_walks_of_pairs_need_no_encoding():
    encoder = nn.PairWalkEncoder(steps=5)
    model = nn.DigraphTransformer(WIDTH, 1, nn.PairHead(pair_channels=encoder.pair_channels), encoder)
    assert (encoder.pair_channels, encoder.encodings()) == (10, {})
    assert model(generic_digraphs(0)).shape == (int(generic_digraphs(0).sizes.square().sum()), 1)
    with pytest.raises(ValueError, match="steps"):
        nn.PairWalkEncoder(steps=0)


def test_biases_alone_cannot_distinguish_equal_nodes():
    graphs = generic_digraphs(0)

    def spread(position: list) -> float:
        torch.manual_seed(0)
        model = nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(3), position).eval()
        batch = model.prepare(graphs)
        answers = model(batch).detach().split(graphs.sizes.tolist())
        return max(float((own - own[0]).abs().max()) for own in answers)

    biases, nodes = (lambda: nn.RelativeWalkEncoder(heads=4, layers=2)), (lambda: nn.WalkEncoder(WIDTH))
    assert spread([biases()]) < 1e-5
    assert spread([nodes(), biases()]) > 1e-2


def test_one_layer_after_the_sum_is_linear_in_it():
    graphs = generic_digraphs(1)
    batch = mt.batch(graphs, mt.RandomWalk()(graphs))
    encoder = nn.WalkEncoder(WIDTH, hidden=8, node_layers=1)
    pair, node = encoder.sum.pair, encoder.sum.node
    assert [tuple(layer.weight.shape) for layer in (pair, *node)] == [(8, 8), (WIDTH, 8)]
    number, walks = 0, mt.RandomWalk()(graphs)[0]
    sums = torch.nn.functional.gelu(pair(walks)).sum(0)
    found = encoder(batch).nodes[batch.node_graph == number]
    torch.testing.assert_close(found, node[0](sums), rtol=1e-5, atol=1e-5)
