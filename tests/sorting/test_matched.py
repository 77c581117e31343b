import pytest
import torch

from magnetite.sorting import SortingNetworks, depths, matched_pairs

SHARES = {"random": 0.5, "compact": 0.25, "merging": 0.25}


@pytest.fixture(scope="module")
def pairs():
    return matched_pairs(8000, range(7, 10), SHARES, seed=0, chunk=4000)


def test_pairs_agree_in_length_size_and_depth(pairs):
    correct, wrong, kinds = pairs
    assert bool(correct.is_correct().all()) and not bool(wrong.is_correct().any())
    assert torch.equal(correct.lengths, wrong.lengths) and torch.equal(depths(correct), depths(wrong))
    tight = kinds > 0
    assert torch.equal(correct.sizes[tight], wrong.sizes[tight])
    assert torch.equal(correct.sizes // 4, wrong.sizes // 4)
    assert kinds.bincount().tolist() == [4000, 2000, 2000]
    assert int(correct.lengths.bincount()[7:].max() - correct.lengths.bincount()[7:].min()) <= 12


def summary(networks: SortingNetworks, kinds: torch.Tensor) -> torch.Tensor:
    """What a model may know of a network without looking at its comparators."""
    steps = depths(networks)
    edges = networks.to_digraphs().edge_ptr.diff()
    columns = [networks.lengths, networks.sizes, steps, networks.sizes / (networks.lengths * steps), edges, kinds]
    return torch.stack([column.double() for column in columns], dim=1)


def held_out_accuracy(correct: torch.Tensor, wrong: torch.Tensor, hidden: int) -> float:
    """Accuracy on unseen pairs of a logistic model, or with `hidden` of a network of two layers."""
    torch.manual_seed(0)
    half = len(correct) // 2
    inputs = torch.cat([correct, wrong])
    correct, wrong = ((side - inputs.mean(0)) / inputs.std(0).clamp(min=1e-9) for side in (correct, wrong))
    width = correct.shape[1]
    first = [torch.nn.Linear(width, hidden), torch.nn.ReLU()] if hidden else []
    model = torch.nn.Sequential(*first, torch.nn.Linear(hidden or width, 1)).double()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    labels = torch.cat([torch.ones(half), torch.zeros(half)]).double()
    for _ in range(300):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            model(torch.cat([correct[:half], wrong[:half]])).squeeze(1), labels
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        right = [(model(correct[half:]) > 0).double().mean(), (model(wrong[half:]) <= 0).double().mean()]
    return float(sum(right)) / 2


@pytest.mark.parametrize("hidden", [0, 64])
def test_size_depth_and_density_say_nothing_about_the_label(pairs, hidden):
    correct, wrong, kinds = pairs
    assert held_out_accuracy(summary(correct, kinds), summary(wrong, kinds), hidden) <= 0.52
    shorter = wrong.without_last()  # the same measure finds a difference of one comparator
    tight = kinds > 0
    leaking = held_out_accuracy(summary(correct[tight], kinds[tight]), summary(shorter[tight], kinds[tight]), hidden)
    assert leaking > 0.55


def test_any_part_of_the_sequence_is_the_same(pairs):
    correct, wrong, kinds = matched_pairs(300, range(7, 10), SHARES, seed=0, start=3900, chunk=4000)
    assert list(correct) == list(pairs[0][3900:4200]) and list(wrong) == list(pairs[1][3900:4200])
    assert torch.equal(kinds, pairs[2][3900:4200])
    other, _, _ = matched_pairs(300, range(7, 10), SHARES, seed=1, chunk=300)
    assert list(other) != list(pairs[0][:300])


def test_bad_shares_are_named():
    with pytest.raises(ValueError, match="shares must be non-negative fractions of random, compact, merging"):
        matched_pairs(10, [7], {"short": 1.0}, seed=0)
    assert len(matched_pairs(0, [7], SHARES, seed=0)[0]) == 0
