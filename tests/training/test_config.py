import pytest
import torch

from magnetite import Relative
from magnetite.encodings import ENCODINGS
from magnetite.nn.encoders import ENCODERS
from magnetite.tasks import TASKS
from magnetite.training.config import Config, configuration, merge
from magnetite.training.encodings import PositionalEncodings, names_known
from magnetite.training.models import build_model

PRESETS = ("quick", "paper", "best")
POTENTIALS = [f"Relative({0.25 * number})" for number in range(1, 6)]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("encoding", names_known())
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_configuration_that_survives_json(task, encoding, preset):
    config = configuration(task, encoding, preset)
    assert Config.from_dict(config.to_dict()) == config
    assert Config.from_dict(config.to_dict()).hash == config.hash


def test_the_papers_settings():
    magnetic, walks = (configuration("sorting", name, "paper") for name in ("magnetic", "walks"))
    assert (magnetic.optim.lr, magnetic.optim.betas, magnetic.optim.clip) == (5e-4, (0.6, 0.9), 0.005)
    assert (walks.optim.lr, walks.optim.betas, walks.optim.clip) == (4e-4, (0.7, 0.9), 0.075)
    assert (walks.optim.batch, walks.optim.epochs, walks.task.train) == (1536, 15, 400_000)
    assert magnetic.to_dict()["encoding"]["magnetic"]["k"] == 25
    distances = configuration("distances", "magnetic", "paper")
    assert (distances.optim.batch, distances.optim.epochs, distances.task.train) == (384, 30, 400_000)
    assert distances.to_dict()["encoding"]["magnetic"]["k"] == 16
    assert distances.to_dict()["model"] == {
        "name": "transformer", "width": 256, "layers": 4, "heads": 4, "expansion": 4, "dropout": 0.185, "norm": "post",
        "local": 0, "length_scaled": False, "readout": "cls",
    }  # fmt: skip


def test_the_best_settings_for_sorting_are_those_of_a_general_model():
    best, paper = (configuration("sorting", "magnetic", preset).to_dict() for preset in ("best", "paper"))
    assert (best["task"]["places"], best["model"]["length_scaled"]) == (24, True)
    assert best["encoding"]["magnetic"]["scaling"] == "nodes"
    assert best["optim"] == paper["optim"] and best["optim"]["lr"] == 5e-4


def test_the_hash_is_of_what_decides_the_result():
    config = configuration("sorting", "magnetic")
    for same in ("run.log_every=7", "run.checkpoint_minutes=9", "run.compile=layers", "data.memory=3"):
        assert configuration("sorting", "magnetic", overrides=[same]).hash == config.hash
    for other in ("run.seed=1", "optim.lr=1e-3", "encoding.q=0.1", "task.seed=4", "data.mode=fresh"):
        assert configuration("sorting", "magnetic", overrides=[other]).hash != config.hash


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("optim.rate=1", "unknown option optim.rate: choose one of lr, weight_decay"),
        ("optim.lr=fast", "optim.lr must be a number such as 0.0004, got 'fast'"),
        ("optim.lr=0", "optim: lr must be a positive number, got 0.0"),
        ("optim.batch=1.5", "optim.batch must be an integer such as 384, got 1.5"),
        ("optim.betas=[0.9]", "betas must be two numbers in [0, 1)"),
        ("optim.betas=0.9", "optim.betas must be a list"),
        ("optim.warmup=-1", "optim: warmup must be a non-negative number, got -1.0"),
        ("model.width=true", "model.width must be an integer such as 256, got True"),
        ("model.name=oracle", "unknown model 'oracle': choose one of transformer, gnn, magnet"),
        ("model.places=3", "unknown option model.places: choose one of width, layers"),
        ("task.borders=-1", "task: borders must be a non-negative integer, got -1"),
        ("encoding.colour=1", "unknown option encoding.colour: choose one of k, q, normalised"),
        ("encoding.magnetic.colour=1", "unknown option encoding.magnetic.colour: choose one of k, q"),
        ("encoding.k=0", "encoding.magnetic: "),
        ("encoding.k=many", "encoding.magnetic.k must be an integer such as 16, got 'many'"),
        ("encoding.q=0.7", "encoding.magnetic: q=0.7 is outside [0, 0.5]"),
        ("encoding.q=Absolute(1)", "encoding.magnetic.q must be a number or Relative(…) or a list"),
        ("encoding.encoder=walks", "unknown encoder of magnetic 'walks': choose one of maglapnet, spe"),
        ("encoding.walks.steps=2", "encoding.walks is not part of this configuration (magnetic): choose it with"),
        ("encoding.dtype=float3", "encoding.magnetic.dtype must be"),
        ("data.mode=lost", "unknown mode 'lost': choose one of auto, resident, pooled, fresh"),
        ("data.tokens=0", "data: tokens must be a positive integer, got 0"),
        ("run.precision=8", "run.precision must be a string such as 32-true, got 8"),
        ("run.seed=-1", "run: seed must be a non-negative integer, got -1"),
        ("run.log_every=0", "run: log_every must be a positive integer, got 0"),
        ("task.train=0", "task: train must be a positive integer, got 0"),
        ("task.train_longest=12", "train_longest < valid_longest"),
        ("colour.red=1", "unknown table 'colour'"),
        ("optim=1", "settings are written table.option=value"),
        ("optim.lr.peak=1", "settings are written table.option=value"),
    ],
)
def test_bad_overrides_are_named(override, message):
    with pytest.raises(ValueError) as caught:
        configuration("sorting", "magnetic", overrides=[override])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_kind_of_model_takes_the_options_that_it_knows_from_the_preset():
    config = configuration("sorting", "none", "quick", {"model": {"name": "gnn", "steps": 2}})
    assert config.to_dict()["model"] == {"name": "gnn", "width": 64, "steps": 2, "directed": True}


def test_parameters_are_a_function_of_the_seed():
    config = configuration("distances", "magnetic", "quick")

    def first(seed: int) -> list[float]:
        model = build_model(config.task, config.encoding, config.model, seed)
        return next(model.parameters()).flatten().tolist()

    assert first(1) == first(1) != first(2)


def part(encoding: str, *overrides: str) -> dict:
    return configuration("sorting", encoding, "paper", overrides=overrides).to_dict()["encoding"]


def test_q_means_what_it_means_in_python():
    made = {
        given: configuration("sorting", "magnetic", overrides=[f"encoding.q={given}"]).encoding.parts[0].made(8).q
        for given in ("0.1", "Relative(0.1)", '[0.1, "Relative(0.2)"]')
    }
    assert list(made.values()) == [0.1, Relative(0.1), (0.1, Relative(0.2))]
    assert [part("magnetic", f"encoding.q={given}")["magnetic"]["q"] for given in made] == [
        0.1, "Relative(0.1)", [0.1, "Relative(0.2)"],
    ]  # fmt: skip


def test_names_stand_for_encodings_with_encoders():
    assert part("magnetic")["magnetic"]["encoder"] == "maglapnet"
    assert part("spe")["spe"]["encoder"] == part("magnetic", "encoding.encoder=spe")["magnetic"]["encoder"] == "spe"
    assert part("multi-q")["multi-q"]["q"] == POTENTIALS
    assert part("relative-walks")["relative-walks"]["steps"] == 3
    assert list(part("pair-walks")["pair-walks"]) == ["encoder", "steps", "root"]
    assert part("none") == {}
    assert part("walks", "encoding.restart=none")["walks"]["restart"] is None
    assert part("laplacian", "encoding.encoder=spe")["laplacian"]["encoder"] == "spe"


def test_several_encodings_are_combined_and_set_together_or_alone():
    found = part("magnetic+svd+walks", "encoding.k=5", "encoding.activation=relu", "encoding.walks.activation=gelu")
    assert list(found) == ["magnetic", "svd", "walks"]
    assert (found["magnetic"]["k"], found["svd"]["rank"]) == (5, 25)
    assert (found["magnetic"]["activation"], found["walks"]["activation"]) == ("relu", "gelu")
    assert list(part("magnetic+walks", "encoding.walks=none")) == ["magnetic"]
    for wrong in ("magnetic+", "cubic", "magnetic+none"):
        with pytest.raises(ValueError, match=r"unknown encoding .* choose one of magnetic, laplacian|use none alone"):
            part(wrong)
    with pytest.raises(ValueError, match="the same name twice"):
        part("walks+walks")


def test_changes_may_add_and_remove_encodings():
    first = {"encoding": {"magnetic": {"k": 4}, "walks": {}}}
    merged = merge(first, {"encoding": {"walks": None, "k": 8, "pair-walks": {"steps": 2}}})
    assert merged == {"encoding": {"magnetic": {"k": 8}, "pair-walks": {"steps": 2}}}
    assert first == {"encoding": {"magnetic": {"k": 4}, "walks": {}}}


def test_every_encoding_has_an_encoder_and_every_encoder_an_encoding():
    read = {encoding for encoder in ENCODERS.values() for encoding in encoder.reads}
    assert read == set(ENCODINGS.values())


@pytest.mark.parametrize("encoding", [name for name in names_known() if name != "pair-walks"])
def test_any_encoding_has_room_for_walks_between_pairs(encoding):
    changes = ["model.width=32", "model.layers=1", "task.train=4"]
    names = "pair-walks" if encoding == "none" else f"{encoding}+pair-walks"
    config = configuration("distances", names, overrides=[*changes, "encoding.pair-walks.steps=2"])
    model = build_model(config.task, config.encoding, config.model, seed=0)
    graphs = next(config.task.stream(seed=0, batch=2)).graphs
    assert model.eval()(graphs).isfinite().all()
    bare = configuration("distances", encoding, overrides=changes).encoding.build(32, 4, 1)
    assert model.position.pair_channels == (0 if bare is None else bare.pair_channels) + 4


def test_encodings_of_the_same_kind_keep_apart():
    encoding = PositionalEncodings.from_dict({"magnetic": {"k": 4}, "laplacian": {"k": 3}, "spe": {"k": 4}})
    encodings = encoding.build(32, 4, 1).encodings()
    assert {name: type(each).__name__ for name, each in encodings.items()} == {
        "eigenpairs": "MagneticLaplacian", "laplacian": "Laplacian",
    }  # fmt: skip


def test_pair_features_need_a_task_of_pairs():
    config = configuration("sorting", "magnetic+pair-walks")
    with pytest.raises(ValueError, match=r"encoding magnetic\+pair-walks has features of node pairs, which Sorting"):
        build_model(config.task, config.encoding, config.model, seed=0)


def test_the_sinusoids_have_the_width_of_the_model():
    config = configuration("sorting", "sinusoidal", "quick", overrides=["encoding.base=100"])
    assert "width" not in config.to_dict()["encoding"]["sinusoidal"]
    model = build_model(config.task, config.encoding, config.model, seed=0)
    assert (model.position.encoding.width, model.position.encoding.base) == (64, 100)
    assert model(config.task.examples("valid").graphs[:2]).dtype == torch.float32


@pytest.mark.parametrize("encoding", ["none", "walks"])
def test_options_that_no_encoding_has_are_refused(encoding):
    with pytest.raises(ValueError, match=r"unknown option encoding\.k: choose one of"):
        configuration("sorting", encoding, "paper", {"encoding": {"k": 8}})
    configuration("sorting", encoding, "paper", {"encoding": {"k": 8, "magnetic": {}}})


def test_an_encoding_needs_a_table_of_options():
    with pytest.raises(ValueError, match=r"encoding\.magnetic=8 must be a table of options"):
        configuration("sorting", "magnetic", overrides=["encoding.magnetic=8"])
    with pytest.raises(ValueError, match=r"task\.name cannot be set"):
        configuration("sorting", "magnetic", overrides=["task.name=distances"])


def test_another_encoder_takes_over_the_options_that_it_has():
    config = configuration("sorting", "magnetic", "best", overrides=["encoding.encoder=spe", "encoding.k=5"])
    options = config.to_dict()["encoding"]["magnetic"]
    assert (options["encoder"], options["k"], "scaling" in options) == ("spe", 5, False)
