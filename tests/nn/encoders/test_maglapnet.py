"""MagLapNet: SignNets do not depend on signs, directions are recognised, attention equals its formula."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.encodings import Eigenpairs
from magnetite.nn.encoders.maglapnet import SCALINGS, Weights, eigen_attention, plain_eigen_attention
from tests.batching.cases import forms, real_nodes
from tests.nn.zoo import HEADS, WIDTH, K, generic_digraphs

NETWORK = mt.sorting.SortingNetwork(length=3, comparators=[(0, 2), (0, 1), (1, 2)])


def flipped(pairs: Eigenpairs, columns: slice) -> Eigenpairs:
    vectors = pairs.vectors.clone()
    vectors[..., columns] *= -1
    return Eigenpairs.from_tensors({**pairs.tensors(), "vectors": vectors})


@pytest.mark.parametrize("sign", [nn.SignMLP(), nn.SignGNN(), nn.SignGNN(steps=2, directed=False)])
@pytest.mark.parametrize("encoding", [mt.MagneticLaplacian(k=K), mt.MagneticLaplacian(k=K, q=(0.1, 0.2))])
def test_sign_nets_depend_on_the_sign_of_the_first_vector_only(sign, encoding):
    encoder = nn.MagLapNet(K, WIDTH, encoding, sign=nn.rebuild(nn.describe(sign))).eval()
    graphs = generic_digraphs(3)
    pairs = encoding(graphs)
    nodes = encoder(mt.batch(graphs, pairs)).nodes
    others, first = (encoder(mt.batch(graphs, flipped(pairs, part))).nodes for part in (slice(1, None), slice(0, 1)))
    torch.testing.assert_close(others, nodes, rtol=1e-5, atol=1e-5)
    assert (first - nodes).abs().max() > 1e-3


def test_sign_nets_have_names():
    assert isinstance(nn.MagLapNet(K, WIDTH, sign="gnn").project, nn.SignGNN)
    with pytest.raises(ValueError, match="sign must be one of mlp, gnn, or None, got 'cnn'"):
        nn.MagLapNet(K, WIDTH, sign="cnn")


def test_without_a_sign_net_signs_matter_and_are_random_for_the_laplacian():
    graphs = generic_digraphs(3)
    pairs = mt.Laplacian(k=K)(graphs)
    batch, other = mt.batch(graphs, laplacian=pairs), mt.batch(graphs, laplacian=flipped(pairs, slice(1, 2)))
    encoder = nn.LaplacianEncoder(K, WIDTH, dropout=0.0).eval()
    assert (encoder(other).nodes - encoder(batch).nodes).abs().max() > 0.01
    encoder.train()
    assert (encoder(batch).nodes - encoder(batch).nodes).abs().max() > 0.01


@pytest.mark.parametrize("q", [0.1, (0.1, 0.2)])
def test_scalings_make_graphs_comparable(q):
    graphs = generic_digraphs(1)
    for form, batch in forms(graphs, {"eigenpairs": mt.MagneticLaplacian(k=2, q=q)(graphs)}).items():
        vectors = batch.encoding("eigenpairs").vectors
        squares = {name: batch.sum_nodes(scale(vectors, batch).square()) for name, scale in SCALINGS.items()}
        sizes = graphs.sizes.view(-1, *[1] * (vectors.ndim - 1)).expand_as(squares["none"])
        torch.testing.assert_close(squares["none"].sum(-1), torch.ones(sizes.shape[:-1]), msg=form)
        torch.testing.assert_close(squares["nodes"], squares["none"] * sizes, msg=form)
        exists = squares["none"] > 1e-6
        torch.testing.assert_close(squares["parts"][exists], sizes[exists].float(), rtol=1e-3, atol=1e-3, msg=form)
    with pytest.raises(ValueError, match="scaling must be one of none, nodes, parts, got 'all'"):
        nn.MagLapNet(K, WIDTH, scaling="all")


def answers(position: nn.PositionEncoder) -> torch.Tensor:
    """The answers of an untrained model for a sorting network and its reverse."""
    torch.manual_seed(0)
    position, wires = nn.rebuild(nn.describe(position)), nn.LinearNodes("wires", 2)
    model = nn.DigraphTransformer(WIDTH, 2, nn.GraphHead(2, "sum"), position, wires).eval()
    with torch.no_grad():
        return torch.cat([model(network.to_digraphs()) for network in (NETWORK, NETWORK.reverse())])


@pytest.mark.parametrize(
    ("position", "distinguished"),
    [
        (nn.MagLapNet(K, WIDTH), True),
        (nn.MagLapNet(K, WIDTH, sign=nn.SignGNN()), True),
        (nn.SPE(K, WIDTH), True),
        (nn.WalkEncoder(WIDTH), True),
        (nn.RelativeWalkEncoder(HEADS, layers=2), True),
        (nn.SPE(K, WIDTH, encoding=mt.Laplacian(k=K)), False),
    ],
)
def test_directed_encodings_distinguish_a_sorting_network_from_its_reverse(position, distinguished):
    forward, backward = answers(position)
    assert NETWORK.is_correct() != NETWORK.reverse().is_correct()
    difference = (forward - backward).abs().max()
    assert difference > 1e-4 if distinguished else difference < 2e-6


def test_the_combinatorial_laplacian_of_a_network_is_that_of_its_reverse():
    graphs, wires = NETWORK.to_digraphs(), nn.LinearNodes("wires", 2)
    model = nn.DigraphTransformer(WIDTH, 2, nn.GraphHead(2), nn.LaplacianEncoder(K, WIDTH), wires).eval()
    torch.testing.assert_close(model(graphs.reverse()), model(graphs), rtol=0, atol=0)


def test_eigenvectors_stay_in_single_precision_under_autocast():
    graphs = generic_digraphs(0)
    batch, encoder, seen = mt.batch(graphs, mt.MagneticLaplacian(k=K)(graphs)), nn.MagLapNet(K, WIDTH), {}
    for name in ("project", "norm", "attend"):
        encoder.get_submodule(name).register_forward_hook(
            lambda _module, inputs, output, name=name: seen.update({name: (inputs[0].dtype, output.dtype)})
        )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoder(batch)
        (pairs,) = nn.SPE(K, pairs=True)(batch).pairs
    assert seen == dict.fromkeys(("project", "norm", "attend"), (torch.float32, torch.float32))
    assert pairs.dtype == torch.float32


def test_eigenpairs_that_do_not_fit_are_rejected():
    graphs = generic_digraphs(0)
    with pytest.raises(ValueError, match="has 3 complex eigenvectors per graph, expected 6 complex ones: encode with"):
        nn.MagLapNet(K, WIDTH)(mt.batch(graphs, mt.MagneticLaplacian(k=3)(graphs)))
    with pytest.raises(ValueError, match="the batch has no encoding 'eigenpairs'"):
        nn.MagLapNet(K, WIDTH)(mt.batch(graphs))
    with pytest.raises(ValueError, match="give both the same k"):
        nn.MagLapNet(K, WIDTH, mt.MagneticLaplacian(k=3))


def random_case(
    tokens: int, width: int, heads: int, channels: int, device: str
) -> tuple[torch.Tensor, torch.Tensor, Weights]:
    """Tokens of twelve nodes, some of them masked, and weights."""
    torch.manual_seed(tokens)
    given = torch.randn(12, tokens, width, device=device, requires_grad=True)
    mask = torch.rand(12, tokens, device=device) < 0.7
    mask[:, 0] = True
    layers = torch.nn.Linear(width, 3 * heads * channels), torch.nn.Linear(heads * channels, width)
    return given, mask, Weights(*(parameter for layer in layers for parameter in layer.to(device).parameters()))


def test_attention_over_eigenvectors_is_one_softmax_per_node_and_head():
    tokens, mask, weights = random_case(7, 5, 2, 3, "cpu")
    found = eigen_attention(tokens, mask, weights, heads=2)
    for node in range(12):
        parts = (tokens[node] @ weights.inner.T + weights.inner_bias).view(7, 3, 2, 3)
        keys, heads = mask[node], []
        for head in range(2):
            query, key, value = parts[:, :, head].unbind(1)
            heads.append((query @ key[keys].T / 3**0.5).softmax(-1) @ value[keys])
        expected = tokens[node] + torch.cat(heads, -1) @ weights.out.T + weights.out_bias
        torch.testing.assert_close(found[node], expected)


def test_eigenvectors_that_do_not_exist_change_nothing():
    """Graphs with fewer nodes than `k` get the same vectors, whatever stands in place of the missing eigenpairs."""
    graphs, encoder = mt.Digraphs.from_edges([[0, 1], [1, 2]]), nn.MagLapNet(K, WIDTH).eval()
    pairs = mt.MagneticLaplacian(k=K)(graphs)
    vectors, values = pairs.vectors.clone(), pairs.values.clone()
    vectors[:, ~pairs.mask[0]], values[~pairs.mask] = 9.0, 7.0
    other = Eigenpairs.from_tensors({**pairs.tensors(), "vectors": vectors, "values": values})
    for one, two in zip(forms_of(graphs, pairs), forms_of(graphs, other), strict=True):
        torch.testing.assert_close(real_nodes(one, encoder(one).nodes), real_nodes(two, encoder(two).nodes))


def forms_of(graphs: mt.Digraphs, pairs: Eigenpairs) -> list[mt.batching.Batch]:
    both = mt.Digraphs.concat([graphs, graphs])
    return list(forms(both, {"eigenpairs": Eigenpairs.concat([pairs, pairs])}).values())


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    "shape", [(25, 17, 4, 4), (5, 6, 2, 6), (16, 17, 4, 4), (1, 5, 4, 1), (32, 17, 4, 4), (40, 17, 4, 4)]
)
def test_fused_attention_equals_plain_operations(shape, device):
    tokens, mask, weights = random_case(*shape, device)
    upper = torch.randn_like(tokens)
    results = [function(tokens, mask, weights, shape[2]) for function in (eigen_attention, plain_eigen_attention)]
    gradients = [torch.autograd.grad(result, (tokens, *weights), upper) for result in results]
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    for fused, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, plain, rtol=1e-3, atol=1e-3)


def test_attention_of_a_node_without_eigenvectors_is_finite():
    tokens, mask, weights = random_case(4, 5, 2, 2, "cpu")
    mask = mask.clone()
    mask[3] = False
    found = eigen_attention(tokens, mask, weights, heads=2)
    gradients = torch.autograd.grad(found.sum(), (tokens, *weights))
    assert all(bool(each.isfinite().all()) for each in (found, *gradients))


@pytest.mark.gpu
def test_more_nodes_than_a_launch_grid_of_torch_allows():
    *_, weights = random_case(4, 3, 1, 4, "cuda")
    tokens, mask = torch.randn(70_000, 4, 3, device="cuda"), torch.ones(70_000, 4, dtype=torch.bool, device="cuda")
    for function in (eigen_attention, plain_eigen_attention):
        expected = plain_eigen_attention(tokens[-9:], mask[-9:], weights, 1)
        torch.testing.assert_close(function(tokens, mask, weights, 1)[-9:], expected, rtol=1e-4, atol=1e-4)


def test_attention_without_biases_and_with_dropout():
    graphs = generic_digraphs(3)
    batch = mt.batch(graphs, mt.MagneticLaplacian(k=K)(graphs))
    encoder = nn.MagLapNet(K, WIDTH, dropout=0.0, attention_dropout=0.5, attention_biases=False)
    assert not [name for name, _ in encoder.attend.named_parameters() if "bias" in name]
    assert torch.equal(encoder.eval()(batch).nodes, encoder(batch).nodes)
    assert not torch.equal(encoder.train()(batch).nodes, encoder(batch).nodes)
    zero = nn.MagLapNet(K, WIDTH)
    zero.load_state_dict({**zero.state_dict(), **encoder.state_dict()})
    for layer in (zero.attend.inner, zero.attend.out):
        torch.nn.init.zeros_(layer.bias)
    torch.testing.assert_close(zero.eval()(batch).nodes, encoder.eval()(batch).nodes)


def test_dropped_attention_weights_keep_the_mean():
    torch.manual_seed(0)
    tokens, mask = torch.randn(1, 4, 3), torch.ones(1, 4, dtype=torch.bool)
    inner, out = torch.nn.Linear(3, 6), torch.nn.Linear(2, 3)
    weights = Weights(inner.weight, None, out.weight, None)
    many = eigen_attention(tokens.expand(20_000, -1, -1), mask.expand(20_000, -1), weights, 1, dropout=0.3)
    torch.testing.assert_close(many.mean(0), eigen_attention(tokens, mask, weights, 1)[0], rtol=0, atol=0.02)


@pytest.mark.parametrize("training", [False, True])
def test_the_absolute_first_vector_has_no_sign(training):
    graphs = generic_digraphs(3)
    pairs = mt.Laplacian(k=K)(graphs)
    encoder = nn.LaplacianEncoder(K, WIDTH, absolute_first=True, random_signs=False, dropout=0.0).train(training)
    plain = nn.LaplacianEncoder(K, WIDTH, random_signs=False, dropout=0.0).train(training)
    plain.load_state_dict(encoder.state_dict())
    absolute = Eigenpairs.from_tensors(
        {**pairs.tensors(), "vectors": torch.cat([pairs.vectors[:, :1].abs(), pairs.vectors[:, 1:]], dim=1)}
    )
    expected = plain(mt.batch(graphs, laplacian=absolute)).nodes
    for given in (pairs, flipped(pairs, slice(0, 1))):
        torch.testing.assert_close(encoder(mt.batch(graphs, laplacian=given)).nodes, expected)
    other = encoder(mt.batch(graphs, laplacian=flipped(pairs, slice(1, None)))).nodes
    assert not torch.allclose(other, expected)
