"""Walk encoders are their formulas; what does not fit is refused."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from tests.nn.zoo import WIDTH, generic_digraphs

WALKS = mt.RandomWalk(steps=2, restart=None)


def test_nodes_are_sums_over_the_starts():
    graphs = generic_digraphs(0)
    encoder = nn.WalkEncoder(WIDTH, WALKS)
    walks = WALKS(graphs)
    nodes = encoder(mt.pad(graphs, walks)).nodes
    for number, size in enumerate(graphs.sizes.tolist()):
        pairs = torch.nn.functional.gelu(encoder.sum.pair(walks[number]))
        torch.testing.assert_close(nodes[number, :size], encoder.sum.node(pairs.sum(0)))


def test_biases_are_linear_in_start_and_landing():
    graphs = generic_digraphs(0)
    encoder = nn.RelativeWalkEncoder(heads=2, layers=3, encoding=WALKS)
    walks = WALKS(graphs)
    biases = encoder(mt.pad(graphs, walks)).biases
    weights = encoder.bias.linear.weight.view(3, 2, -1)
    for number, size in enumerate(graphs.sizes.tolist()):
        for layer in range(3):
            expected = torch.einsum("uvf,hf->huv", walks[number], weights[layer])
            torch.testing.assert_close(biases[layer][number, :, :size, :size], expected)


@torch.no_grad()
@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_features_may_be_stored_in_half_precision(precision):
    graphs = generic_digraphs(0)
    whole, half = (mt.RandomWalk(2, None, dtype=dtype)(graphs) for dtype in (torch.float32, torch.float16))
    exact = type(half).from_tensors({**half.tensors(), "values": half.values.float()})
    for encoder in (nn.WalkEncoder(WIDTH, WALKS), nn.RelativeWalkEncoder(heads=2, layers=1, encoding=WALKS)):
        with torch.autocast("cpu", precision, enabled=precision is not None):
            found = [encoder(mt.pad(graphs, walks)) for walks in (half, exact, whole)]
        given = [positions.biases[0] if positions.nodes is None else positions.nodes for positions in found]
        torch.testing.assert_close(given[0], given[1])
        torch.testing.assert_close(given[0], given[2], rtol=2e-2, atol=2e-2)


def test_other_encodings_are_refused():
    graphs = generic_digraphs(0)
    with pytest.raises(ValueError, match="takes 8 features a pair"):
        nn.WalkEncoder(WIDTH)(mt.pad(graphs, WALKS(graphs)))
    with pytest.raises(ValueError, match="is PaddedEigenpairs, this encoder takes"):
        nn.WalkEncoder(WIDTH, of="eigenpairs")(mt.pad(graphs, mt.MagneticLaplacian(k=2)(graphs)))


def test_biases_alone_cannot_tell_equal_nodes_apart():
    graphs = generic_digraphs(0)

    def spread(position: list) -> float:
        torch.manual_seed(0)
        model = nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(3), position).eval()
        batch = model.prepare(graphs)
        answers = model(batch).detach()
        return max(float((rows[real] - rows[0]).abs().max()) for rows, real in zip(answers, batch.mask, strict=True))

    biases, nodes = (lambda: nn.RelativeWalkEncoder(heads=4, layers=2)), (lambda: nn.WalkEncoder(WIDTH))
    assert spread([biases()]) < 1e-5
    assert spread([nodes(), biases()]) > 1e-2
