import re
from dataclasses import MISSING

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite import Adaptive, MagneticLaplacian, Relative
from magnetite.encodings import DEFAULT_SIZE, ENCODINGS
from magnetite.encodings.checks import domain_of, field_hints
from magnetite.nn.encoders import ENCODERS
from magnetite.nn.module import describe, rebuild
from magnetite.tasks import TASKS, Sorting, Supervised
from magnetite.training.config import Config, Data, Optim, Run, configuration, merge
from magnetite.training.encodings import PositionalEncodings, names_known
from magnetite.training.models import MODELS, Transformer, build_model
from magnetite.training.options import options_of

PRESETS = ("quick", "paper", "best")
POTENTIALS = [f"Relative({0.25 * number})" for number in range(1, 6)]


@pytest.mark.parametrize("task", ["distances", "sorting"])
@pytest.mark.parametrize("encoding", names_known())
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_configuration_that_survives_json(task, encoding, preset):
    config = configuration(task, encoding, preset)
    assert Config.from_dict(config.to_dict()) == config
    assert Config.from_dict(config.to_dict()).hash == config.hash


@pytest.mark.parametrize("encoding", names_known())
@pytest.mark.parametrize("preset", Supervised.presets)
def test_every_preset_of_own_data_is_a_configuration_that_survives_json(tmp_path, encoding, preset):
    graphs = mt.Digraphs.from_edges([np.array([[0, 1], [1, 2]])] * 20)
    graphs.replace(graph_features={"y": torch.arange(20.0)}).save(tmp_path / "graphs.safetensors")
    task = Supervised(str(tmp_path))
    config = configuration(task, encoding, preset)
    again = Config.from_dict(config.to_dict())
    assert again.to_dict() == config.to_dict()
    assert again.hash == config.hash


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
        "local": 0, "length_scaled": False, "readout": "cls", "local_added": False,
        "repeats": 1, "reach": "all", "attention": "full", "init": "uniform", "position_scale": 0.0,
            "inner_dropout": False,
    }  # fmt: skip


def test_the_flat_settings_for_sorting_are_those_of_the_paper_s_transformer_with_three_changes():
    flat, paper = (configuration("sorting", "magnetic", preset).to_dict() for preset in ("flat", "paper"))
    assert (flat["task"].pop("places"), flat["model"].pop("length_scaled")) == (24, True)
    assert flat["encoding"]["magnetic"].pop("scaling") == "nodes"
    for changed in (paper["task"].pop("places"), paper["model"].pop("length_scaled")):
        assert not changed
    assert paper["encoding"]["magnetic"].pop("scaling") == "none"
    assert flat == paper and flat["optim"]["lr"] == 5e-4


def test_the_best_settings_for_sorting_look_at_no_network_of_a_test_length():
    task = configuration("sorting", None, "best").task
    assert task.split("train").sizes == range(7, 11)
    assert task.split("valid").sizes == range(11, 12)
    assert task.split("test").sizes == range(12, 21)


def test_an_option_of_a_later_version_changes_the_hash_only_if_it_is_used():
    config = configuration("sorting", "magnetic")
    assert config.hash == "bf7c5f40c02d"  # of the results that are stored
    for setting in ("model.local_added=true", "model.repeats=2", "model.reach=directions", "task.compact=0.5"):
        assert configuration("sorting", "magnetic", overrides=[setting]).hash != config.hash


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
        ("model.name=oracle", "unknown model 'oracle': choose one of transformer, sat, gnn, magnet"),
        ("model.places=3", "unknown option model.places: choose one of width, init, position_scale"),
        ("task.borders=-1", "task: borders must be a non-negative integer, got -1"),
        ("encoding.colour=1", "unknown option encoding.colour: choose one of k, q, normalised"),
        ("encoding.magnetic.colour=1", "unknown option encoding.magnetic.colour: choose one of k, q"),
        ("encoding.k=0", "encoding.magnetic: "),
        ("encoding.k=many", "encoding.magnetic.k must be an integer such as 16, got 'many'"),
        ("encoding.q=0.7", "encoding.magnetic: q=0.7 is outside [0, 0.5]"),
        ("encoding.q=Absolute(1)", "encoding.magnetic.q must be a number or Relative(…) or Adaptive(…) or a list"),
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
        ("optim.epochs=inf", "epochs must be a positive number, got inf"),
        ("optim.epochs=1e300", "epochs must be at most 1,000,000, got 1e+300"),
        ("optim.lr=nan", "lr must be a positive number, got nan"),
        (f"optim.lr={'9' * 400}", "optim.lr must be a number such as 0.0004, got 999"),
        (f"optim.batch={'9' * 400}", "batch must be at most 2,147,483,647, got an integer of more than 20 digits"),
        ("optim.betas=[0.9, nan]", "betas must be a number in [0, 1), got nan"),
        ("optim.lr=1\nx = 2", "optim.lr must be a number such as"),
        (f"optim.lr={'[' * 5000}", "optim.lr must be a number such as"),
        ("optim.budget=2", "budget must be a number in (0, 1], got 2.0"),
        ("model.norm=both", "unknown norm 'both': choose one of post, pre"),
        ("model.readout=first", "unknown readout 'first': choose one of cls"),
        ("model.dropout=1", "dropout must be a number in [0, 1), got 1.0"),
        ("model.width=66", "width must be a multiple of heads, got width=66 and heads=4"),
        ("model.layers=1000000000", "layers must be at most 1,000, got 1,000,000,000"),
        ("data.memory=-1", "memory must be a non-negative number, got -1.0"),
        ("run.patience=-1", "patience must be a non-negative integer, got -1"),
        ("encoding.scaling=twice", "encoding.magnetic: scaling must be one of none, nodes, parts, got 'twice'"),
        ("encoding.activation=tanh", "encoding.magnetic: activation must be one of gelu, relu, got 'tanh'"),
        ("encoding.dropout=nan", "encoding.magnetic: dropout must be a number in [0, 1), got nan"),
        ("encoding.k=1000000000", "encoding.magnetic: k must be at most 1,048,576, got 1,000,000,000"),
        ("encoding.dtype=float64", "encoding.magnetic.dtype must not be float64"),
        ("encoding.q=Relative()", "encoding.magnetic.q must be a number or Relative(…) or Adaptive(…) or a list"),
        ("encoding.q=Relative(1, 2)", "encoding.magnetic.q must be a number or Relative(…) or Adaptive(…) or a list"),
        ("encoding.q=Relative(-1)", "a relative potential must be a finite number ≥ 0, got -1"),
        ("encoding.q=[]", "q must contain at least one potential"),
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
    assert config.to_dict()["model"] == {
        "name": "gnn", "width": 64, "init": "uniform", "position_scale": 0.0, "steps": 2, "directed": True,
        "network": "gnn", "readout": "mean", "marked": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "network", "reads_edges"),
    [
        ("gnn", "gnn", True), ("gnn", "dirgnn", False), ("gnn", "recurrent", True),
        ("sat", "gnn", True), ("sat", "gcn", True), ("sat", "dirgnn", False), ("sat", "recurrent", True),
    ],
)  # fmt: skip
def test_networks_by_name_see_the_edge_features_that_they_read(model, network, reads_edges):
    options = {"gnn": {"steps": 2}, "sat": {"local": 2, "local_added": True, "layers": 1, "heads": 2, "dropout": 0.0}}
    settings = {"name": model, "width": 16, "network": network, **options[model]}
    task = {"shortest": 4, "train_longest": 5, "valid_longest": 6, "longest": 7, "compact": 1.0, "ports": True}
    config = configuration("sorting", "none", "paper", {"model": settings, "task": task})
    examples = next(config.task.stream(0, 8))
    made = build_model(config.task, config.encoding, config.model, seed=0).eval()
    graphs = examples.graphs
    exchanged = graphs.replace(edge_features={"ports": 1 - graphs.edge_features["ports"]})
    answers, others = (made(mt.batch(each)) for each in (graphs, exchanged))
    config.task.loss(answers, mt.batch(graphs)).backward()
    assert torch.equal(answers, others) is not reads_edges


def test_another_kind_of_model_leaves_out_values_that_it_does_not_have():
    assert configuration("sorting", "none", "paper", {"model": {"readout": "cls", "name": "transformer"}}).model
    base = merge({"model": {"name": "transformer", "readout": "cls", "width": 64}}, {"model": {"name": "gnn"}})
    assert base == {"model": {"name": "gnn", "width": 64}}
    kept = merge({"model": {"name": "transformer", "readout": "sum"}}, {"model": {"name": "gnn"}})
    assert kept == {"model": {"name": "gnn", "readout": "sum"}}
    with pytest.raises(ValueError, match="unknown readout 'cls'"):
        configuration("sorting", "none", "paper", {"model": {"name": "gnn", "readout": "cls"}})


def test_networks_that_are_always_directed_are_not_made_undirected():
    for network in ("dirgnn", "recurrent"):
        with pytest.raises(ValueError, match=f"model.network={network} is always directed"):
            configuration("sorting", "none", "quick", {"model": {"name": "gnn", "network": network, "directed": False}})


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
    changes += ["model.attention=sparse"] * (encoding in ("sparse-walks", "relatives", "sparse-bias"))
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
    config = configuration("sorting", "magnetic", "flat", overrides=["encoding.encoder=spe", "encoding.k=5"])
    options = config.to_dict()["encoding"]["magnetic"]
    assert (options["encoder"], options["k"], options["scaling"], "sign" in options) == ("spe", 5, "nodes", False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Transformer(norm="both"), "unknown norm 'both'"),
        (lambda: Transformer(heads=0), "heads must be a positive integer, got 0"),
        (lambda: Transformer(width=True), "width must be a positive integer, got True"),
        (lambda: Optim(betas=0.9), "betas must be a list of numbers, got 0.9"),
        (lambda: Optim(lr="fast"), "lr must be a positive number, got 'fast'"),
        (lambda: Data(memory=-1.0), "memory must be a non-negative number, got -1.0"),
        (lambda: Run(capture="yes"), "capture must be true or false, got 'yes'"),
        (lambda: Sorting(seed=2**63), "seed must be at most 9,223,372,036,854,775,807"),
    ],
)
def test_options_are_checked_when_they_are_made(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_options_take_the_numbers_of_numpy():
    made = Optim(lr=np.float32(0.5), batch=np.int64(3), epochs=2, betas=[0.5, np.float64(0.9)])
    assert made == Optim(lr=0.5, batch=3, epochs=2.0, betas=(0.5, 0.9))
    assert [type(value) for value in (made.lr, made.batch, made.epochs, made.betas)] == [float, int, float, tuple]


def made(kind, **values):
    """A dataclass without the check of types that tests install, which users do not have."""
    defaults = {name: option.default for name, option in options_of(kind).items()}
    instance = object.__new__(kind)
    for name, value in {**defaults, **values}.items():
        object.__setattr__(instance, name, value)
    instance.__post_init__()
    return instance


def all_options():
    kinds = [Optim, Data, Run, *MODELS.values(), *TASKS.values(), *ENCODINGS.values()]
    return [(kind, name, option) for kind in kinds for name, option in options_of(kind).items()]


@pytest.mark.parametrize(("kind", "name", "option"), all_options())
def test_every_number_has_a_domain_that_help_names(kind, name, option):
    found = domain_of(field_hints(kind)[name])
    if option.hint in (int, float) and name not in ("train_longest", "valid_longest"):  # whose domains depend on both
        assert found is not None
        assert found[0].described(found[1]) in option.help
        for wrong in (float("nan"), float("inf"), -1, 10**400, True, "many"):
            others = {each: DEFAULT_SIZE for each, other in options_of(kind).items() if other.default is MISSING}
            with pytest.raises(ValueError, match=f"{name} must be") as caught:
                made(kind, **{**others, name: wrong})
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", ["gnn", "magnet"])
@pytest.mark.parametrize("encoding", ["relative-walks", "magnetic+relative-walks", "spe"])
def test_biases_without_attention_are_refused_before_training(model, encoding):
    bias = ["encoding.bias=true"] if encoding == "spe" else []
    config = configuration("distances", encoding, "quick", {"model": {"name": model}}, bias)
    with pytest.raises(ValueError, match="attention biases, but this model has no attention"):
        build_model(config.task, config.encoding, config.model, seed=0)


def test_a_model_that_no_machine_can_hold_is_refused_at_once():
    config = configuration("sorting", "magnetic", overrides=["model.width=1048576", "encoding.k=1000000"])
    with pytest.raises(ValueError, match=r"a model of [\d,]+ parameters .* needs [\d,]+ GiB of memory, and cpu has"):
        build_model(config.task, config.encoding, config.model, seed=0)


def test_the_hash_knows_the_order_of_encodings_if_it_is_not_the_usual_one():
    assert configuration("sorting", "magnetic+walks").hash != configuration("sorting", "walks+magnetic").hash
    config = configuration("sorting", "magnetic+walks")
    assert Config.from_dict(config.to_dict()).hash == config.hash
    assert configuration("sorting", "magnetic", "quick").hash == "da9fe9b8ab7e"  # as in results of earlier versions


def test_defaults_of_own_data_adapt_and_those_of_the_paper_do_not():
    for task in ("sorting", "distances"):
        for encoding in ("magnetic", "spe", "multi-q", "magnetic+walks"):
            tables = configuration(task, encoding).to_dict()["encoding"]
            assert "Adaptive" not in str(tables)
            assert "Relative(0.25)" in str(tables)
    own = PositionalEncodings.from_dict({"magnetic": {}, "multi-q": {}}).to_dict()
    assert own["magnetic"]["q"] == "Adaptive(0.25)"
    assert own["multi-q"]["q"][4] == "Adaptive(1.25)"
    assert PositionalEncodings.from_dict(own).to_dict() == own


def test_an_adaptive_potential_is_written_with_or_without_a_number():
    for text in ("Adaptive()", "Adaptive(0.25)"):
        config = configuration("sorting", "magnetic", overrides=[f"encoding.q={text}"])
        assert config.to_dict()["encoding"]["magnetic"]["q"] == "Adaptive(0.25)"
        assert Config.from_dict(config.to_dict()) == config
    assert rebuild(describe(MagneticLaplacian(3, q=(Adaptive(), 0.1)))) == MagneticLaplacian(3, q=(Adaptive(), 0.1))
