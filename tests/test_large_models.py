"""The benchmark of large models: what it trains is on the device that it was given."""

import pytest

from benchmarks.large_models import OURS, prepared, stepping


@pytest.mark.parametrize("name", [*OURS, "sampled"])
def test_model_and_input_are_on_the_device(name):
    """The meta device stands for a GPU: it is another one than the CPU, and needs no hardware."""
    model, given, y = prepared(name, 300, 16, 3, 0, "meta")
    assert {each.device.type for each in (*given.tensors(), *model.parameters(), *model.buffers(), y)} == {"meta"}


@pytest.mark.parametrize("name", [*OURS, "sampled"])
def test_a_step_changes_the_model(name):
    model, given, y = prepared(name, 300, 16, 3, 0, "cpu")
    before = [each.detach().clone() for each in model.parameters()]
    stepping(model, given, y)()
    assert any((new != old).any() for new, old in zip(model.parameters(), before, strict=True))
