"""Checkpoints of other versions and damaged files are refused, and the message says why."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.io.storage import DamagedFile, read_json, write_json
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
