import json

import pytest
import torch

import magnetite as mt
from paper.examples import EXAMPLES, example_graphs, figure, restored_share


@pytest.mark.parametrize("nodes", [9, 10, 20])
@pytest.mark.parametrize("name", ["sequence", "balanced binary tree", "trumpet (fully connected)"])
def test_the_order_of_a_permuted_graph_is_restored(name, nodes):
    """The paper, appendix D.3; claim 11 of SPEC section 8."""
    graph = example_graphs(nodes)[list(EXAMPLES).index(name)]
    assert restored_share(graph, seed=0) == 1.0


def test_a_permuted_sequence_comes_back_exactly():
    number = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    path = mt.Digraphs.from_edges(torch.stack([number[:-1], number[1:]]))
    first = mt.MagneticLaplacian(k=1, normalised=False)(path)[0].vectors[:, 0]
    assert torch.equal(torch.argsort(first.imag, descending=True), number)


def test_the_constructions_of_the_appendix():
    edges = {name: {tuple(edge) for edge in make(10)} for name, make in EXAMPLES.items()}
    assert (7, 3) in edges["trumpet"]
    assert {(3, 7), (4, 6)} <= edges["trumpet (DAG)"]
    assert {(7, 3), (3, 7)} <= edges["trumpet (fully connected)"]
    assert (4, 5) not in edges["disconnected sequences"]
    assert len(edges["fully connected DAG"]) == 45
    assert {(0, 0), (7, 2), (2, 7)} <= edges["mixed DAG and fully connected"]
    assert (8, 7) not in edges["mixed DAG and fully connected"]


def test_table_figure_and_record(tmp_path, capsys):
    figure(tmp_path, seed=0)
    assert "fully connected DAG" in capsys.readouterr().out
    assert {file.name for file in tmp_path.iterdir()} == {f"figure-examples.{e}" for e in ("json", "png", "svg")}
    record = json.loads((tmp_path / "figure-examples.json").read_text())
    assert {"seed", "commit", "device", "versions", "date", "seconds"} <= record.keys()
    assert len(record["result"]["rows"]) == 12
