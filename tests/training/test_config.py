import pytest

from magnetite.tasks import TASKS
from magnetite.training.config import Config
from magnetite.training.encodings import ENCODINGS
from magnetite.training.models import build_model
from magnetite.training.presets import configuration, variants

PRESETS = ("quick", "paper", "best")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("encoding", ENCODINGS)
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
    assert magnetic.to_dict()["encoding"]["k"] == 25
    distances = configuration("distances", "magnetic", "paper")
    assert (distances.optim.batch, distances.optim.epochs, distances.task.train) == (384, 30, 400_000)
    assert distances.to_dict()["encoding"]["k"] == 16
    assert distances.to_dict()["model"] == {
        "name": "transformer", "width": 256, "places": 0, "borders": 0, "pair_layer": True, "layers": 4, "heads": 4,
        "expansion": 4, "dropout": 0.185, "norm": "post", "local": 0, "length_scaled": False, "readout": "cls",
    }  # fmt: skip


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
        ("optim.lr=fast", "optim.lr='fast' is no float"),
        ("optim.lr=0", "optim: lr=0.0 trains nothing"),
        ("optim.batch=1.5", "optim.batch=1.5 is no int"),
        ("optim.betas=[0.9]", "are no two numbers"),
        ("optim.betas=0.9", "optim.betas=0.9 is no tuple"),
        ("model.width=true", "model.width=True is no int"),
        ("model.name=oracle", "model='oracle' is not known: choose one of transformer, gnn, magnet"),
        ("encoding.colour=1", "unknown option encoding.colour"),
        ("encoding.sign=plus", "sign='plus' is not known: choose one of none, mlp, gnn"),
        ("data.mode=lost", "mode='lost' is not known: choose one of auto, resident, pooled, fresh"),
        ("run.precision=8", "run.precision=8 is no str"),
        ("run.seed=-1", "seed=-1 is negative"),
        ("task.train=0", "train=0 leaves no data"),
        ("task.train_longest=12", "leave a split empty"),
        ("colour.red=1", "unknown table 'colour'"),
        ("optim=1", "sets nothing: write table.option=value"),
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
        "name": "gnn", "width": 64, "places": 0, "borders": 0, "pair_layer": True, "steps": 2, "directed": True,
    }  # fmt: skip


def test_parameters_are_a_function_of_the_seed():
    config = configuration("distances", "magnetic", "quick")

    def first(seed: int) -> list[float]:
        model = build_model(config.task, config.encoding, config.model, seed)
        return next(model.parameters()).flatten().tolist()

    assert first(1) == first(1) != first(2)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_any_encoding_has_room_for_walks_between_pairs(encoding):
    changes = ["encoding.pair_steps=2", "model.width=32", "model.layers=1", "task.train=4"]
    config = configuration("distances", encoding, overrides=changes)
    model = build_model(config.task, config.encoding, config.model, seed=0)
    graphs = next(config.task.stream(seed=0, batch=2)).graphs
    assert model.eval()(graphs).isfinite().all()
    bare = configuration("distances", encoding, overrides=changes[1:]).encoding
    assert config.encoding.pair_channels == bare.pair_channels + 4


def test_walks_between_pairs_go_somewhere():
    with pytest.raises(ValueError, match="encoding: pair_steps=-1 is no number of steps: give 0 for none"):
        configuration("distances", "magnetic", overrides=["encoding.pair_steps=-1"])


@pytest.mark.parametrize(
    ("task", "encoding", "kind"),
    [("sorting", "none", "without"), ("sorting", "none", "tried"), ("distances", "walks", "without")],
)
def test_every_variant_changes_the_tables_that_it_names(task, encoding, kind):
    best = configuration(task, encoding, "best").to_dict()
    assert variants(task, "best", kind)
    for name, tables in variants(task, "best", kind).items():
        other = configuration(task, encoding, "best", tables).to_dict()
        assert {table for table in best if best[table] != other[table]} == set(tables), name


@pytest.mark.parametrize(
    ("task", "option", "said"),
    [
        ("distances", "model.name=relations", "only sorting networks have: give another model"),
        ("sorting", "model.wires=5", "model.wires=5 has no room for networks of length 11"),
        ("sorting", "model.places=3", "places=3, borders=0 change codes of wires"),
        ("sorting", "model.state=0", "state=0 holds nothing of two wires"),
        ("sorting", "encoding.pair_steps=2", "encoding.pair_steps=2 is for tasks of pairs"),
    ],
)
def test_relations_are_for_sorting_networks_that_fit(task, option, said):
    with pytest.raises(ValueError, match=said):
        configuration(task, "none", "best", overrides=[option])
