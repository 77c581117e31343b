"""Several encoders at once are the sum of their parts; eigenvectors stay in single precision."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from tests.nn.zoo import HEADS, WIDTH, K, generic_digraphs


def test_nodes_and_biases_add_up_and_pairs_stand_side_by_side():
    parts = [
        nn.SPE(K, WIDTH, heads=HEADS, layers=1, pairs=True, channels=4),
        nn.WalkEncoder(WIDTH),
        nn.RelativeWalkEncoder(HEADS, layers=3),
        nn.SPE(K, pairs=True, channels=2),
    ]
    graphs = generic_digraphs(0)
    batch = mt.pad(graphs, mt.MagneticLaplacian(k=K)(graphs), mt.RandomWalk()(graphs))
    together, alone = nn.Combined(parts)(batch), [part(batch) for part in parts]
    torch.testing.assert_close(together.nodes, alone[0].nodes + alone[1].nodes)
    assert len(together.biases) == 3
    for layer in range(3):  # one bias serves all layers
        torch.testing.assert_close(together.bias(layer), alone[0].biases[0] + alone[2].biases[layer])
    torch.testing.assert_close(together.pairs, torch.cat([alone[0].pairs, alone[3].pairs], dim=-1))


def test_two_encodings_of_one_name_are_refused():
    with pytest.raises(ValueError, match="different encodings as 'eigenpairs': give each its own of="):
        nn.Combined([nn.MagLapNet(4, WIDTH), nn.MagLapNet(5, WIDTH)])
    assert set(nn.Combined([nn.MagLapNet(4, WIDTH), nn.MagLapNet(5, WIDTH, of="more")]).encodings()) == {
        "eigenpairs",
        "more",
    }


def test_positions_of_another_width_are_refused():
    model = nn.DigraphTransformer(WIDTH, 1, nn.NodeHead(1), nn.WalkEncoder(2 * WIDTH))
    with pytest.raises(ValueError, match="positions of width 32 cannot be added to nodes of width 16"):
        model(generic_digraphs(0))


def test_eigenvectors_stay_in_single_precision_under_autocast():
    graphs = generic_digraphs(0)
    batch = mt.pad(graphs, mt.MagneticLaplacian(k=K)(graphs))
    seen = {}
    encoder = nn.MagLapNet(K, WIDTH)
    for name in ("project", "norm", "attend"):
        encoder.get_submodule(name).register_forward_hook(
            lambda _module, inputs, output, name=name: seen.update({name: (inputs[0].dtype, output.dtype)})
        )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoder(batch)
        pairs = nn.SPE(K, pairs=True)(batch).pairs
    assert seen == dict.fromkeys(("project", "norm", "attend"), (torch.float32, torch.float32))
    assert pairs.dtype == torch.float32
