"""States along wires: the operator is the recurrence written out, whatever order the comparators are numbered in."""

import pytest
import torch
from torch.nn.functional import gelu, layer_norm

import magnetite as mt
from magnetite import nn
from magnetite.nn.rows import slots
from magnetite.nn.wire_steps import steps
from magnetite.sorting import SortingNetwork, SortingNetworks, generate

WIDTH, STATE = 8, 5


def made(**options) -> nn.WireStates:
    torch.manual_seed(0)
    embedding = nn.WireStates(STATE, **options)
    embedding.setup(WIDTH)
    return embedding.double().eval()


def written_out(embedding: nn.WireStates, network: SortingNetwork) -> torch.Tensor:
    """The embedding of each comparator, one after the other."""
    nodes = embedding.codes(mt.pad(network.to_digraphs()).map(doubled))[0]
    carried: dict[int, torch.Tensor] = {}
    rows = []
    for node, comparator in zip(nodes, network.comparators, strict=False):
        fresh = layer_norm(embedding.start(node).view(2, STATE), (STATE,))
        before = torch.stack([carried.get(wire, fresh[port]) for port, wire in enumerate(comparator)])
        inner = gelu(embedding.mix(before.flatten()) + embedding.drive(node))
        gate, update = embedding.change(inner).view(2, 2, STATE).unbind(1)
        after = layer_norm(before + gate.sigmoid() * update, (STATE,))
        carried |= dict(zip(comparator, after, strict=True))
        rows.append(node + embedding.out(after.flatten()))
    return torch.stack(rows)


def doubled(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def batch_of(networks: list[SortingNetwork]) -> mt.batching.Batch:
    return mt.pad(SortingNetworks.from_networks(networks).to_digraphs()).map(doubled)


def networks(count: int, seed: int = 0) -> list[SortingNetwork]:
    drawn = generate(count, [4, 5, 6], seed)
    return [drawn.one(number) for number in range(count)]


def test_states_and_slopes_are_those_of_the_recurrence_written_out():
    embedding, drawn = made(), networks(6)
    batch = batch_of(drawn)
    ours = embedding(batch)
    plain = [written_out(embedding, network) for network in drawn]
    for number, rows in enumerate(plain):
        torch.testing.assert_close(ours[number, : len(rows)], rows)
    weights = [torch.randn_like(rows) for rows in plain]
    losses = [
        sum((ours[number, : len(part)] * part).sum() for number, part in enumerate(weights)),
        sum((rows * part).sum() for rows, part in zip(plain, weights, strict=True)),
    ]
    parameters = list(embedding.parameters())
    ours_slopes, plain_slopes = (torch.autograd.grad(loss, parameters) for loss in losses)
    for mine, expected in zip(ours_slopes, plain_slopes, strict=True):
        torch.testing.assert_close(mine, expected)


def test_several_batches_are_each_batch_alone():
    embedding, drawn = made(), networks(9)
    batches = [batch_of(drawn[:5]), batch_of(drawn[5:])]
    together = slots(embedding.several(batches), batches)
    for batch, rows in zip(batches, together, strict=True):
        torch.testing.assert_close(rows[batch.mask], embedding(batch)[batch.mask])


def test_any_order_of_the_same_run_gives_the_same_states():
    """Comparators that share no wire may change places: the graph is the same, under other numbers."""
    embedding, network = made(), SortingNetwork(4, [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)])
    other = SortingNetwork(4, [(2, 3), (0, 1), (1, 3), (0, 2), (1, 2)])
    mine, theirs = (embedding(batch_of([one]))[0] for one in (network, other))
    torch.testing.assert_close(mine[:5], theirs[[1, 0, 3, 2, 4]])


def test_a_state_knows_all_comparators_before_it_and_none_after_it():
    embedding, comparators = made(), [(0, 1), (1, 2), (2, 3), (0, 3)]
    rows = embedding(batch_of([SortingNetwork(4, comparators)]))[0]
    first_gone = embedding(batch_of([SortingNetwork(4, comparators[1:])]))[0]
    last_gone = embedding(batch_of([SortingNetwork(4, comparators[:-1])]))[0]
    differences = (rows[1:4] - first_gone[:3]).detach().abs().amax(1)
    assert float(differences.min()) > 1e-3
    torch.testing.assert_close(rows[:3], last_gone[:3])


def test_edges_to_lower_numbers_are_refused():
    graphs = SortingNetwork(3, [(0, 2), (0, 1), (1, 2)]).to_digraphs()
    turned = graphs.reverse()
    with pytest.raises(ValueError, match="number nodes in the order of a run"):
        made()(mt.pad(turned).map(doubled))


def test_the_operator_is_one_that_torch_accepts():
    torch.manual_seed(0)
    shapes = ((5, 2, 3), (5, 4), (4, 6), (12, 4), (12,))
    arguments = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    came = torch.tensor([[0, 1], [2, 3], [10, 5], [13, 7], [14, 11]])
    torch.library.opcheck(steps, (*arguments, came, [2, 2, 1]))
    assert torch.autograd.gradcheck(lambda *given: steps(*given, came, [2, 2, 1])[0], arguments)


@pytest.mark.gpu
def test_a_gpu_gives_the_states_and_slopes_of_the_cpu():
    embedding, batch = made().float(), mt.pad(generate(200, [7, 9, 11], seed=1).to_digraphs())
    weights = torch.randn(*batch.mask.shape, WIDTH)
    found = {}
    for device in ("cpu", "cuda"):
        embedding, batch = embedding.to(device), batch.to(device)
        rows = embedding(batch)
        loss = (rows * weights.to(device))[batch.mask].sum()
        found[device] = [rows[batch.mask], *torch.autograd.grad(loss, list(embedding.parameters()))]
    for ours, expected in zip(found["cuda"], found["cpu"], strict=True):
        torch.testing.assert_close(ours.cpu(), expected, rtol=1e-3, atol=1e-3 * float(expected.detach().abs().max()))
