"""The paper's configurations have the paper's sizes."""

from magnetite.nn import presets


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_sat_plus_plus_is_as_large_as_published():
    model = presets.sat_plus_plus()
    assert abs(model.parameter_count / presets.PUBLISHED_PARAMETERS - 1) < 0.005
    width, words = 256, 5 * 5_002
    assert count(model.head) == (width + 1) * words
    assert count(model.embedding) == (98 + 10_030 + 21) * width


def test_an_eigenvector_costs_as_much_as_its_row_of_the_last_layer():
    channels, width = 17, 256
    position = presets.sat_plus_plus().position
    assert position.out.weight.shape == (width, 25 * channels)


def test_the_steps_of_sat_and_sat_plus_plus_differ_in_what_they_know():
    one, other = presets.sat(width=32, layers=1), presets.sat_plus_plus(width=32, layers=1)
    assert type(one.blocks[0].local).__name__ == "GCN"
    assert type(other.blocks[0].local).__name__ == "GNN"
    assert one.cls is None
    assert other.cls is not None
    assert one.blocks[0].degree_scaled
    assert other.blocks[0].degree_scaled
