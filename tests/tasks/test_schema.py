"""What a model reads and predicts, without its data."""

import json

import pytest
import torch

import magnetite as mt
from magnetite.tasks import Supervised
from magnetite.tasks.datasets import DataSet
from magnetite.tasks.schema import Schema
from tests.tasks.own_data import paths, with_targets

NUMBERS = Schema("graph", "regression", ("a", "b"), (), {"x": 3, "kind": 1}, {"weight": 1})


@pytest.mark.parametrize("classes", [(3, 7), ("high", "low")])
def test_a_schema_survives_json(classes):
    for schema in (NUMBERS, Schema("node", "classification", ("c",), classes, {}, {})):
        assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_answers_have_the_units_and_classes_of_the_data():
    outputs = torch.tensor([[0.1, 0.9], [2.0, -1.0]])
    assert torch.equal(NUMBERS.answers(outputs), outputs)
    one = Schema("graph", "regression", ("a",), (), {}, {})
    assert one.answers(outputs[:, :1]).tolist() == outputs[:, 0].tolist()
    assert Schema("graph", "classification", ("c",), (3, 7), {}, {}).answers(outputs).tolist() == [7, 3]
    assert Schema("graph", "classification", ("c",), ("x", "y"), {}, {}).answers(outputs) == ["y", "x"]
    labels = Schema("graph", "multilabel", ("l",), (), {}, {})
    assert labels.answers(outputs).tolist() == [[True, True], [True, False]]


def test_tables_have_one_column_per_output_and_probabilities():
    outputs = torch.tensor([[0.0, 0.0], [100.0, -100.0]])
    assert list(NUMBERS.table(outputs)) == ["a", "b"]
    assert list(Schema("graph", "regression", ("y",), (), {}, {}).table(outputs)) == ["y_0", "y_1"]
    classes = Schema("graph", "classification", ("c",), ("x", "y"), {}, {}).table(outputs)
    assert classes["c"] == ["x", "x"] and classes["c_probability_x"].tolist() == [0.5, 1.0]
    labels = Schema("graph", "multilabel", ("a", "b"), (), {}, {}).table(outputs)
    assert labels["a_probability"].tolist() == [0.5, 1.0] and list(labels) == ["a_probability", "b_probability"]


def test_reading_takes_the_features_of_the_model_alone():
    graphs = paths(4)
    count = graphs.num_nodes
    nodes = {"x": torch.rand(count, 3), "kind": torch.zeros(count, 1), "other": torch.rand(count)}
    graphs = graphs.replace(node_features=nodes, weights=torch.ones(graphs.num_edges))
    found = NUMBERS.read(DataSet(graphs))
    assert list(found.node_features) == ["x", "kind"] and found.edge_features == {} and found.weights is not None


@pytest.mark.parametrize(
    ("features", "match"),
    [
        ({"x": 3}, "no node feature 'kind', which the model reads .they have x"),
        ({"x": 4, "kind": 1}, "'x' has 4 columns, but the model reads 3"),
        ({"x": 3, "kind": 1}, "no edge feature 'weight'"),
    ],
)
def test_graphs_without_the_features_of_the_model_are_refused(features, match):
    graphs = paths(4)
    nodes = {name: torch.rand(graphs.num_nodes, width) for name, width in features.items()}
    with pytest.raises(ValueError, match=match):
        NUMBERS.read(DataSet(graphs.replace(node_features=nodes)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_features_that_give_no_prediction_are_refused(value):
    x = torch.zeros(6, 3, dtype=torch.float64)
    x[4, 1] = value
    graphs = paths(1, low=6, high=6).replace(node_features={"x": x, "kind": torch.zeros(6, dtype=torch.long)})
    with pytest.raises(ValueError, match="node feature 'x' of node 4 is not finite"):
        NUMBERS.read(DataSet(graphs.replace(weights=torch.ones(graphs.num_edges, dtype=torch.float64))))


def test_the_schema_of_a_task():
    task = Supervised(with_targets(paths(40)), target="c", kind="classification", features=("l",))
    assert task.schema() == Schema("graph", "classification", ("c",), (0, 10, 20, 30), {"l": 3}, {})


def test_categories_of_text_have_the_numbers_of_training():
    schema = Schema("node", "regression", ("y",), (), {"kind": 1}, {}, {"kind": ("adder", "mux", "reg")})
    assert Schema.from_dict(schema.to_dict()) == schema
    graphs = paths(1, low=4, high=4).replace(node_features={"kind": torch.tensor([1, 0, 1, 0])})
    read = schema.read(DataSet(graphs, classes={"kind": ("adder", "reg")}))
    assert read.node_features["kind"].tolist() == [2, 0, 2, 0]
    assert schema.read(DataSet(graphs)).node_features["kind"].tolist() == [1, 0, 1, 0]
    with pytest.raises(
        ValueError, match="node feature 'kind' of node 1 is 'fifo', which training did not have"
    ) as caught:
        schema.read(DataSet(graphs, classes={"kind": ("fifo", "reg")}))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="the numbers of its 3 categories"):
        schema.read(DataSet(graphs.replace(node_features={"kind": torch.tensor([0, 1, 2, 3])})))


def test_graph_features_are_read_by_all_nodes_of_the_graph():
    graphs = paths(40)
    graphs = graphs.replace(graph_features={"y": torch.arange(40.0), "heat": torch.arange(40.0) * 2})
    assert Supervised(graphs).node_inputs == {}  # a graph feature may be another target
    task = Supervised(graphs, features=("heat",))
    train = task.examples("train").graphs
    assert task.node_inputs == {"heat": 1}
    assert torch.equal(train.node_features["heat"], 2 * train.graph_features["target"].squeeze(1)[train.node_graph])
    assert torch.equal(task.schema().read(DataSet(graphs)).node_features["heat"], graphs.node_graph * 2.0)
    assert Supervised(graphs, features=("y", "heat")).node_inputs == {"heat": 1}  # not the target


def test_columns_are_named_after_their_target():
    graphs = paths(40).replace(graph_features={"y": torch.arange(40.0), "z": torch.randn(40, 2)})
    task = Supervised(graphs, target=("y", "z"))
    schema = Schema.from_dict(task.schema().to_dict())
    assert list(schema.table(torch.randn(3, 3))) == ["y", "z_0", "z_1"]


def test_text_is_refused_where_training_had_numbers():
    graphs = mt.Digraphs.from_edges([[0], [1]]).replace(node_features={"kind": torch.tensor([0, 1])})
    schema = Schema("graph", "regression", ("a",), (), {"kind": 1}, {})
    data = DataSet(graphs, classes={"kind": ("gpu", "cpu")})
    with pytest.raises(ValueError, match=r"'kind' is text .'gpu', 'cpu', …., but the model was trained on numbers"):
        schema.read(data)


@pytest.mark.parametrize("shape", [(0,), (0, 1)])
def test_graphs_without_edges_have_edge_features(shape):
    graphs = mt.Digraphs.from_edges([[], []], num_nodes=3).replace(edge_features={"e": torch.zeros(shape)})
    schema = Schema("graph", "regression", ("a",), (), {}, {"e": 1})
    assert schema.read(DataSet(graphs)).edge_features["e"].shape == shape


def test_quantities_are_standardised_by_the_training_nodes():
    x = torch.cat([torch.tensor([1.0, 3.0] * 20), torch.full((20,), 1000.0)])
    graph = mt.Digraphs.from_edges([[0, 1], [1, 2]], num_nodes=60)
    graph = graph.replace(node_features={"x": x, "y": torch.randn(60)})
    splits = {"train": range(40), "valid": range(40, 50), "test": range(50, 60)}
    task = Supervised(graph, level="node", splits=splits)
    (embedding,) = task.embedding()
    assert embedding.mean.tolist() == [2.0] and embedding.std.tolist() == [1.0]


def test_training_graphs_without_edges_do_not_make_weights_infinite():
    plain = mt.Digraphs.from_edges([[], []], num_nodes=2, edge_weight=[])
    others = mt.Digraphs.from_edges([[0], [1]], edge_weight=[3.0])
    graphs = mt.Digraphs.concat([plain] * 4 + [others] * 2).replace(graph_features={"y": torch.arange(6.0)})
    task = Supervised(graphs, splits={"train": [0, 1, 2, 3], "valid": [4], "test": [5]})
    (embedding,) = task.edge_embedding()
    assert embedding.mean.tolist() == [0.0] and embedding.std.tolist() == [1.0]


def test_unseen_categories_have_the_vector_zero(tmp_path):
    random = torch.Generator().manual_seed(0)
    graphs = mt.Digraphs.concat(
        mt.Digraphs.from_edges([[0, 1], [1, 2]]).replace(
            node_features={"kind": 2 * torch.randint(3, (3,), generator=random)},
            graph_features={"y": torch.rand(1, generator=random)},
        )
        for _ in range(30)
    )
    task = mt.tasks.Supervised(graphs, target="y", level="graph", kind="regression")
    run = mt.train(task, encoding="none", model="gnn", preset="quick", epochs=1, out=tmp_path / "run")
    tables = [table for name, table in run.model.named_parameters() if "tables" in name]
    assert tables[0].any(1).tolist() == [True, False, True, False, True, False]
    new = graphs[:1].replace(node_features={"kind": torch.tensor([7, 3, 90])}, graph_features={})
    assert torch.equal(run.predict(new), run.predict(new.replace(node_features={"kind": torch.tensor([3, 1, 5])})))
    with pytest.raises(ValueError, match="no graphs to predict for"):
        run.predict(new[:0])
