"""WireRelations: the operator equals the recurrence written out; only the orders of wires and of comparators matter."""

import json
from unittest import mock

import pytest
import torch
from torch.nn.functional import gelu, layer_norm

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.sorting import SortingNetwork, SortingNetworks, generate
from magnetite.training import runs
from magnetite.training.config import configuration
from magnetite.training.loop import Trainer
from paper.relations import WireRelations, cuda
from paper.relations.steps import KINDS, parallel_steps, steps

WIDTH, STATE = 8, 3
COMPARATORS = [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]


def made() -> WireRelations:
    torch.manual_seed(0)
    return WireRelations(WIDTH, nn.GraphHead(2), state=STATE, wires=6).double().eval()


def written_out(model: WireRelations, network: SortingNetwork) -> torch.Tensor:
    """The token of one network, comparator by comparator and wire by wire."""
    same, other = layer_norm(model.start, (STATE,)).flip(0)
    every = range(network.length)
    known = {frozenset((a, b)): same if a == b else other for a in every for b in every}
    drive = model.drive(model.embedding.vector)
    for i, j in (comparator for layer in network.layers() for comparator in sorted(layer)):
        changed = {}
        for k in every:
            kind = model.kinds[sum((k >= i, k > i, k >= j, k > j))]
            both = known[frozenset((i, k))], known[frozenset((j, k))]
            inner = gelu(model.mix(torch.cat(both)) + model.lean(known[frozenset((i, j))]) + kind + drive)
            parts = model.change(inner).view(2, 2, STATE)
            after = [layer_norm(r + g.sigmoid() * u, (STATE,)) for r, (g, u) in zip(both, parts, strict=True)]
            changed[frozenset((i, k))] = after[0]
            if k != i:  # what the two have to do with each other is told once
                changed[frozenset((j, k))] = after[1]
        known |= changed
    near = torch.stack([known[frozenset((k, k + 1))] for k in every[:-1]])
    return gelu(model.out(near)).amax(0)


def tokens(model: WireRelations, batch: Batch) -> torch.Tensor:
    """The graph tokens."""
    states, _, positions = model.embed(batch)
    return model.body(states, batch, positions)[batch.num_nodes :]


def doubled(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def batch_of(*networks: SortingNetwork) -> Batch:
    return mt.batch(SortingNetworks.from_networks(networks).to_digraphs()).map(doubled)


def generated(count: int) -> list[SortingNetwork]:
    networks = generate(count, [4, 5, 6], seed=0)
    return [networks.one(number) for number in range(count)]


@pytest.mark.parametrize("training", [False, True])
def test_tokens_and_gradients_equal_the_recurrence_written_out(training):
    model, networks = made().train(training), generated(6)
    ours, plain = tokens(model, batch_of(*networks)), torch.stack([written_out(model, one) for one in networks])
    torch.testing.assert_close(ours, plain)
    weights = torch.randn_like(plain)
    parameters = [parameter for name, parameter in model.named_parameters() if not name.startswith("head")]
    gradients = [torch.autograd.grad((token * weights).sum(), parameters) for token in (ours, plain)]
    for mine, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, expected)


def test_the_numbers_of_independent_comparators_do_not_matter():
    """Comparators that share no wire may be numbered in any order: the graph is the same."""
    model, other = made(), [COMPARATORS[place] for place in (1, 0, 3, 2, 4)]
    mine, theirs = tokens(model, batch_of(SortingNetwork(4, COMPARATORS), SortingNetwork(4, other)))
    torch.testing.assert_close(mine, theirs)


def test_every_comparator_and_its_place_matter():
    model = made()
    whole = tokens(model, batch_of(SortingNetwork(4, COMPARATORS)))
    others = [COMPARATORS[:place] + COMPARATORS[place + 1 :] for place in range(5)] + [COMPARATORS[::-1]]
    for comparators in others:
        token = tokens(model, batch_of(SortingNetwork(4, comparators)))
        assert float((whole - token).detach().abs().max()) > 1e-4, comparators


def test_a_wire_without_comparators_matters():
    model = made()
    four, five = tokens(model, batch_of(*(SortingNetwork(length, COMPARATORS) for length in (4, 5))))
    assert float((four - five).detach().abs().max()) > 1e-4


def test_wrong_networks_are_rejected():
    model, graphs = made(), SortingNetwork(3, [(0, 2), (0, 1), (1, 2)]).to_digraphs()
    with pytest.raises(ValueError, match="points to a node of lower number"):
        model(mt.batch(graphs.reverse()).map(doubled))
    with pytest.raises(ValueError, match="first wire of every node must be smaller"):
        model(batch_of(SortingNetwork(3, [(2, 0)])))
    with pytest.raises(ValueError, match="up to 8 wires, but wires=6"):
        model.train()(batch_of(SortingNetwork(8, COMPARATORS)))
    with pytest.raises(ValueError, match="'wires' exceeds"):
        batch = batch_of(SortingNetwork(4, COMPARATORS), SortingNetwork(6, [(0, 5)]))
        batch.graph_features["length"][0] = 3
        model(batch)
    with pytest.raises(ValueError, match="this model has no attention"):
        position = nn.RelativeWalkEncoder(heads=2, layers=1)
        WireRelations(WIDTH, nn.GraphHead(2), position)(graphs)
    with pytest.raises(ValueError, match="no feature 'length'"):
        model(mt.batch(graphs.replace(graph_features={})).map(doubled))
    with pytest.raises(ValueError, match="state must be at least 1"):
        WireRelations(WIDTH, nn.GraphHead(2), state=0)
    with pytest.raises(ValueError, match="reads the graph token"):
        WireRelations(WIDTH, nn.GraphHead(2, "mean"))


def test_training_after_inference():
    model, batch = made(), batch_of(*generated(3))
    with torch.inference_mode():
        expected = tokens(model, batch).clone()
    found = tokens(model.train(), batch)
    found.sum().backward()
    torch.testing.assert_close(found, expected)


def test_half_precision_is_close_and_the_model_can_be_saved(tmp_path):
    torch.manual_seed(0)
    model = WireRelations(WIDTH, nn.GraphHead(2), state=16).eval()
    graphs = generate(20, [5, 6], seed=0).to_digraphs()
    with torch.autocast("cpu", torch.bfloat16):
        half = model(graphs)
    torch.testing.assert_close(half, model(graphs), rtol=0.05, atol=0.05)
    model.save(tmp_path)
    torch.testing.assert_close(nn.load(tmp_path)(graphs), model(graphs), rtol=0, atol=0)


def test_the_operators_pass_the_checks_of_torch():
    torch.manual_seed(0)
    rows, inner = 5, 4
    shapes = ((2, STATE), (rows, inner), (KINDS, inner), (inner, 2 * STATE), (inner, STATE))
    shapes += ((4 * STATE, inner), (4 * STATE,))
    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    wires = torch.tensor([[0, 2], [1, 2], [0, 1], [0, 1], [1, 2]])
    rest = wires, torch.tensor([0, 3]), torch.tensor([3, 1]), torch.tensor([0, 1]), [2, 2, 1], 3  # one row of padding
    torch.library.opcheck(steps, (*given, *rest))
    torch.library.opcheck(parallel_steps, rest)
    assert torch.autograd.gradcheck(lambda *parts: steps(*parts, *rest)[0], given)


def answer_and_gradients(model: WireRelations, batch: Batch, half: bool) -> list[torch.Tensor]:
    with torch.autocast(batch.device.type, torch.bfloat16, enabled=half):
        answer = model(batch)
    gradients = torch.autograd.grad(answer.square().sum(), list(model.parameters()))
    return [tensor.detach().cpu() for tensor in (answer, *gradients)]


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("state", "half", "error"), [(32, False, 0.002), (32, True, 0.03), (16, True, 0.03), (8, True, 0.03)]
)
def test_gpu_and_cpu_agree(state, half, error):
    torch.manual_seed(0)
    model = WireRelations(WIDTH, nn.GraphHead(2), state=state, wires=11)
    batch = mt.batch(generate(200, [7, 9, 11], seed=1).to_digraphs())
    expected = answer_and_gradients(model, batch, half=False)
    with mock.patch.object(cuda, "forward", wraps=cuda.forward) as fused:
        found = answer_and_gradients(model.cuda(), batch.to("cuda"), half)
    assert fused.called == (half and state in cuda.STATES)
    for ours, plain in zip(found, expected, strict=True):
        assert float((ours - plain).norm() / plain.norm()) < error


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_captured_run_equals_an_eager_one(tmp_path, precision):
    task = {"train": 600, "valid": 12, "test": 8, "train_longest": 7, "valid_longest": 8}
    model = {"name": "relations", "width": 32, "state": 16, "wires": 7}
    losses = []
    for capture in (True, False):
        run = {"capture": capture, "precision": precision, "log_every": 2}
        changes = {"task": task, "model": model, "optim": {"batch": 20, "epochs": 2.0}, "run": run}
        folder = tmp_path / str(capture)
        folder.mkdir()
        config = configuration("sorting", "none", "paper", changes)
        trainer = Trainer(config, folder, runs.Machine("cuda").fabric(precision))
        trainer.run()
        assert bool(getattr(trainer.update_step, "graphs", None)) == capture
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        losses.append([line["loss"] for line in lines if line["kind"] == "train"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
