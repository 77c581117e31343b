"""Checkpoints of other versions and damaged files are refused, and the message says why."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.io.storage import DamagedFile, read_json, read_tensors, write_json, write_tensors
from magnetite.nn import checkpoint, compressed
from magnetite.version import __version__

from ..kills import after_every_kill

GRAPHS = mt.Digraphs.from_edges([[0, 1], [1, 2]])


@pytest.fixture
def saved(tmp_path):
    model = nn.DigraphTransformer(16, 1, nn.GraphHead(2), nn.MagLapNet(4, 16), heads=2)
    model.save(tmp_path / "model")
    return tmp_path / "model"


def rewrite(folder, **changes):
    content = read_json(folder / "model.json", "description", "")
    write_json(folder / "model.json", {**content, **changes})


def test_a_model_in_training_is_loaded_for_evaluation(saved):
    model = nn.load(saved)
    assert not model.training
    torch.testing.assert_close(model(GRAPHS), nn.load(saved)(GRAPHS), rtol=0, atol=0)
    assert sorted(path.name for path in saved.iterdir()) == ["model.json", "model.safetensors"]


def test_another_format_names_the_version_to_install(saved):
    rewrite(saved, format=7, version="9.1")
    with pytest.raises(ValueError, match=f"written by magnetite 9.1 in format 7, this is {__version__}.*install"):
        nn.load(saved)


def test_another_version_of_the_same_format_is_loaded(saved):
    rewrite(saved, version="0.0.1")
    assert nn.load(saved)(GRAPHS).shape == (1, 2)


def test_an_unknown_class_is_named(saved):
    rewrite(saved, model={"class": "QuantumTransformer", "width": 3})
    with pytest.raises(
        ValueError,
        match="there is no class 'QuantumTransformer': import the module that defines it, or install the version",
    ):
        nn.load(saved)


def test_a_folder_without_a_model_is_rejected(tmp_path):
    with pytest.raises(FileNotFoundError, match="give the folder of a saved model"):
        nn.load(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "{}", "null", "\x00\x01", "[" * 100_000])
def test_a_damaged_description_is_rejected(saved, text):
    (saved / "model.json").write_text(text)
    with pytest.raises(DamagedFile, match="is not a valid description of a model"):
        nn.load(saved)


@pytest.mark.parametrize("kept", [0, 7, 100, -9])
def test_truncated_parameters_are_rejected(saved, kept):
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DamagedFile, match=r"model\.safetensors"):
        nn.load(saved)


def test_parameters_of_another_model_are_rejected(saved, tmp_path):
    other = nn.DigraphTransformer(32, 1, nn.GraphHead(2), heads=2)
    other.save(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").rename(saved / "model.safetensors")
    with pytest.raises(DamagedFile, match="does not fit the model"):
        nn.load(saved)


@pytest.mark.parametrize("change", [{"model": 3}, {"model": {}}, {"model": {"class": "GraphHead"}}, {"model": None}])
def test_a_description_of_no_model_is_rejected(saved, change):
    rewrite(saved, **change)
    with pytest.raises(DamagedFile, match=r"model\.json is not a valid description of a model"):
        nn.load(saved)


def test_an_edited_description_is_rejected(saved):
    path = saved / "model.json"
    path.write_text(path.read_text().replace('"heads": 2', '"heads": 4'))  # the parameters would fit
    with pytest.raises(DamagedFile, match=r"model\.json .*edited or damaged\): save the model again"):
        nn.load(saved)


def test_files_of_two_saves_are_rejected(saved, tmp_path):
    model = nn.DigraphTransformer(16, 1, nn.GraphHead(2), nn.MagLapNet(4, 16), heads=2)
    model.save(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").rename(saved / "model.safetensors")
    with pytest.raises(DamagedFile, match="both files must come from the same save"):
        nn.load(saved)


def test_a_kill_during_a_save_leaves_one_of_the_two_models(saved):
    states = [nn.load(saved).state_dict()]
    model = nn.DigraphTransformer(32, 1, nn.GraphHead(2), heads=2)
    states.append(model.state_dict())
    found = set()
    for whole in after_every_kill(lambda: model.save(saved), saved):
        loaded = nn.load(saved).state_dict()
        found.add(next(i for i, state in enumerate(states) if all(torch.equal(loaded[k], v) for k, v in state.items())))
        assert whole or len(list(saved.glob("model*"))) <= 3
    assert found == {0, 1}


@pytest.mark.parametrize(("precision", "size", "error"), [("float16", 0.6, 2e-3), ("int8", 0.45, 5e-2)])
def test_parameters_can_be_stored_in_fewer_bytes(tmp_path, precision, size, error):
    model = nn.DigraphTransformer(64, 2, nn.GraphHead(2), nn.MagLapNet(4, 64)).eval()
    model.save(tmp_path / "whole")
    checkpoint.save(model, tmp_path / "small", precision)
    bytes_of = {name: (tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "small")}
    assert bytes_of["small"] < size * bytes_of["whole"]
    loaded = nn.load(tmp_path / "small")
    assert all(tensor.dtype == torch.float32 for tensor in loaded.parameters())
    torch.testing.assert_close(loaded(GRAPHS), model(GRAPHS), rtol=0, atol=error)


def test_rows_of_zeros_and_extreme_numbers_survive_compression():
    tensors = {
        "rows": torch.tensor([[0.0, 0.0], [3e38, -1e38], [1e-38, 0.0]]),
        "bias": torch.tensor([1 / 3, 1e6]),
        "count": torch.tensor(7),
    }
    for precision in compressed.PRECISIONS:
        stored = compressed.compress(tensors, precision)
        found = compressed.expand(stored)
        assert found.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert found[name].dtype == tensor.dtype
            torch.testing.assert_close(found[name], tensor, rtol=5e-3, atol=float(tensor.abs().max()) / 254)


def test_the_error_of_integers_is_at_most_half_a_step():
    rows = torch.randn(50, 40, generator=torch.Generator().manual_seed(0))
    error = (compressed.expand(compressed.compress({"w": rows}, "int8"))["w"] - rows).abs()
    assert (error <= rows.abs().amax(1, keepdim=True) / 254 * 1.001).all()


def test_parameters_that_cannot_be_compressed_are_refused():
    with pytest.raises(ValueError, match="precision must be one of float32, float16, int8, got 'int4'"):
        compressed.compress({}, "int4")
    with pytest.raises(ValueError, match="parameter 'w' has entries that are not finite"):
        compressed.compress({"w": torch.tensor([[torch.inf]])}, "int8")


def test_scales_that_do_not_fit_are_refused(saved):
    tensors, metadata = read_tensors(saved / "model.safetensors")
    name = next(name for name, tensor in tensors.items() if tensor.ndim == 2)
    metadata.pop("crc32")
    checksum = write_tensors(saved / "model.safetensors", {**tensors, f"{name}/scale": torch.ones(3, 3, 1)}, metadata)
    rewrite(saved, parameters=checksum)
    with pytest.raises(DamagedFile, match="scales that do not fit"):
        nn.load(saved)
