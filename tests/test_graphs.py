from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.sparse import coo_array, csr_matrix
from torch.utils.data import Subset
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset, TemporalData

import magnetite as mt
from magnetite.io.storage import DamagedFile
from magnetite.packed import starts
from magnetite.testing import digraphs


def same(a: mt.Digraphs, b: mt.Digraphs) -> bool:
    left, right = a.tensors(), b.tensors()
    return left.keys() == right.keys() and all(torch.equal(left[name].double(), right[name].double()) for name in left)


def test_contract_example():
    graphs = mt.Digraphs.from_networkx([nx.path_graph(9, nx.DiGraph), nx.gn_graph(40, seed=1)])
    assert len(graphs) == 2
    assert graphs.sizes.tolist() == [9, 40]
    source, target = graphs[0].edge_index
    assert source.tolist() == list(range(8))
    assert target.tolist() == list(range(1, 9))


@given(digraphs())
def test_round_trips(graphs):
    networkx = mt.Digraphs.from_networkx(graphs.to_networkx())
    pyg = mt.Digraphs.from_pyg(graphs.to_pyg())
    scipy = mt.Digraphs.from_scipy(graphs.to_scipy())
    batch = mt.Digraphs.from_pyg(Batch.from_data_list(graphs.to_pyg()))
    assert same(pyg, graphs)
    assert same(batch, graphs)
    for a, b, c in zip(graphs.to_scipy(), networkx.to_scipy(), scipy.to_scipy(), strict=True):
        np.testing.assert_array_equal(a.toarray(), b.toarray())
        np.testing.assert_array_equal(a.toarray(), c.toarray())


def test_datasets_of_pyg_are_lists_of_their_graphs():
    class Stored(InMemoryDataset):
        def __init__(self, items):
            super().__init__(None)
            self.data, self.slices = self.collate(items)

    circle = torch.tensor([[0, 1, 2], [1, 2, 0]])
    items = [Data(edge_index=circle, x=torch.ones(3, 2)), Data(edge_index=circle[:, :1], x=torch.zeros(2, 2))]
    stored = Stored(items)
    for whole in (stored, Subset(stored, [0, 1])):
        graphs = mt.Digraphs.from_pyg(whole)
        assert [graph.num_nodes for graph in graphs.to_pyg()] == [3, 2]
        assert graphs.num_edges == 4
        torch.testing.assert_close(graphs.node_features["x"], torch.cat([item.x for item in items]))
    assert len(mt.Digraphs.from_pyg(stored[1:])) == 1


@given(digraphs(min_graphs=2))
def test_features_come_along_from_pyg(graphs):
    sizes = graphs.sizes.tolist()
    labelled = graphs.replace(
        node_features={"x": torch.randn(graphs.num_nodes, 2), "kind": torch.arange(graphs.num_nodes)},
        edge_features={"edge_attr": torch.randn(graphs.num_edges, 3)},
        graph_features={"y": torch.arange(len(graphs)), "wide": torch.randn(len(graphs), 4)},
    )
    for given_back in (labelled.to_pyg(), Batch.from_data_list(labelled.to_pyg())):
        found = mt.Digraphs.from_pyg(given_back)
        if max(sizes) > 1:  # where every graph has one node, rows of graphs are rows of nodes
            assert same(found, labelled)


def test_attributes_that_pyg_shifts_or_cannot_stack_are_not_features():
    edges = torch.tensor([[0, 1], [1, 0]])
    data = [
        Data(edge_index=edges, num_nodes=2, y=1.5, name="first", face_index=torch.zeros(2, 1), pairs=torch.ones(4)),
        Data(
            edge_index=edges[:, :1],
            num_nodes=3,
            y=2.5,
            name="second",
            face_index=torch.zeros(2, 1),
            pairs=torch.ones(9),
        ),
    ]
    graphs = mt.Digraphs.from_pyg(data)
    assert graphs.graph_features["y"].tolist() == [1.5, 2.5]
    assert not graphs.node_features
    assert not graphs.edge_features


def test_as_many_edges_as_nodes_are_told_apart_by_name():
    circle = Data(
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), x=torch.ones(3, 1), edge_attr=torch.ones(3, 2), num_nodes=3
    )
    graphs = mt.Digraphs.from_pyg(circle)
    assert list(graphs.node_features) == ["x"]
    assert list(graphs.edge_features) == ["edge_attr"]
    other = Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(2, 5), edge_attr=torch.ones(1, 2), num_nodes=2)
    with pytest.raises(ValueError, match=r"'x' must have rows of one shape in all graphs, got \(1,\) and \(5,\)"):
        mt.Digraphs.from_pyg([circle, other])


@given(digraphs(min_graphs=2))
def test_slicing_joining_and_reversing(graphs):
    parts = [graphs[:1], graphs[1:]]
    assert same(mt.Digraphs.concat(parts), graphs)
    assert same(mt.Digraphs.concat(list(graphs)), graphs)
    assert same(graphs[[1, 0]][[1, 0]], graphs[:2])
    assert same(graphs[-1], graphs[len(graphs) - 1])
    mask = torch.arange(len(graphs)) % 2 == 0
    assert same(graphs[mask], graphs[::2])
    assert same(graphs.reverse().reverse(), graphs)
    for forward, backward in zip(graphs.to_scipy(), graphs.reverse().to_scipy(), strict=True):
        np.testing.assert_array_equal(forward.toarray().T, backward.toarray())


def test_a_million_graphs_slice_without_copying():
    count = 1_000_000
    graphs = mt.Digraphs(
        node_ptr=starts(torch.full((count,), 5)),
        edge_ptr=starts(torch.full((count,), 4)),
        edges=torch.randint(0, 5, (2, 4 * count), dtype=torch.int32),
        node_features={"x": torch.arange(5 * count)},
    )
    part = graphs[10 : count - 10]
    assert len(part) == count - 20
    assert part.edges.untyped_storage().data_ptr() == graphs.edges.untyped_storage().data_ptr()
    assert (
        part.node_features["x"].untyped_storage().data_ptr() == graphs.node_features["x"].untyped_storage().data_ptr()
    )
    assert torch.equal(part[0].node_features["x"], torch.arange(50, 55))


def test_features_follow_their_graphs():
    graphs = mt.Digraphs.from_edges([np.array([[0, 1], [1, 2]]), np.array([[0], [1]])]).replace(
        node_features={"x": torch.arange(5)},
        edge_features={"kind": torch.tensor([7, 8, 9])},
        graph_features={"y": torch.tensor([0, 1])},
    )
    swapped = graphs[[1, 0]]
    assert swapped.node_features["x"].tolist() == [3, 4, 0, 1, 2]
    assert swapped.edge_features["kind"].tolist() == [9, 7, 8]
    assert swapped.graph_features["y"].tolist() == [1, 0]
    data = graphs.to_pyg()
    assert data[1].x.tolist() == [3, 4]
    assert data[1].y.tolist() == [1]
    with pytest.raises(ValueError, match="the same names"):
        mt.Digraphs.concat([graphs, graphs.replace(node_features={})])


def test_save_and_load_are_memory_mapped(tmp_path):
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]], edge_weight=[1.0, 2.0]).replace(
        node_features={"x": torch.arange(3)}
    )
    path = tmp_path / "graphs.safetensors"
    graphs.save(path)
    loaded = mt.Digraphs.load(path)
    assert same(loaded, graphs)
    assert str(path) in Path("/proc/self/maps").read_text()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", ["truncate", "flip", "foreign", "empty"])
def test_a_damaged_file_is_named(tmp_path, damage):
    path = tmp_path / "graphs.safetensors"
    mt.Digraphs.from_edges([[0, 1], [1, 2]]).save(path)
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        content = content[:-4]
    elif damage == "flip":
        content[-1] ^= 1
    elif damage == "foreign":
        mt.Laplacian(k=1)(mt.Digraphs.from_edges([[0], [1]])).save(path)
        content = path.read_bytes()
    else:
        content = b""
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"graphs\.safetensors"):
        mt.Digraphs.load(path)


def test_weak_components():
    graphs = mt.Digraphs.from_edges([np.array([[2, 0], [0, 2]]), np.array([[1], [2]])], num_nodes=[4, 3])
    assert graphs.weak_components().tolist() == [0, 1, 0, 2, 0, 1, 1]


def test_undirected_networkx_edges_become_two():
    assert mt.Digraphs.from_networkx(nx.path_graph(3)).num_edges == 4


def test_multi_edges_survive_networkx():
    graphs = mt.Digraphs.from_edges([[0, 0], [1, 1]])
    assert graphs.to_networkx()[0].number_of_edges() == 2


def test_missing_networkx_weights_are_one():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", weight=2.5)
    graph.add_edge("b", "c")
    assert mt.Digraphs.from_networkx(graph).weights.tolist() == [2.5, 1.0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: mt.Digraphs.from_edges([[0, 1], [1, 9]], num_nodes=3),
            "1 → 9 of graph 0 is outside its nodes 0…2",
        ),
        (lambda: mt.Digraphs.from_edges([[0, -1], [1, 2]]), "edge -1 → 2"),
        (lambda: mt.Digraphs.from_edges([[0], [1]], edge_weight=[-1.0]), "weight -1.0"),
        (lambda: mt.Digraphs.from_edges([[0], [1]], edge_weight=[float("nan")]), "weight nan"),
        (lambda: mt.Digraphs.from_edges([[0], [1]], edge_weight=[float("inf")]), "weight inf"),
        (lambda: mt.Digraphs.from_edges([[0], [1]], edge_weight=[0.0]), "weight 0.0"),
        (lambda: mt.Digraphs.from_edges([[0], [1]], edge_weight=[1.0, 2.0]), "one entry per edge"),
        (lambda: mt.Digraphs.from_edges([[0], [1]], edge_weight=["x"]), "real numbers"),
        (lambda: mt.Digraphs.from_edges(np.zeros((2, 0), int)), "graph 0 is empty"),
        (lambda: mt.Digraphs.from_edges([]), "at least one graph"),
        (lambda: mt.Digraphs.from_edges(np.zeros((5, 2), int)), "transpose"),
        (lambda: mt.Digraphs.from_edges(np.zeros((2, 3))), "integers"),
        (lambda: mt.Digraphs.from_edges([[0], [2**40]]), "below 2"),
        (lambda: mt.Digraphs.from_edges([np.zeros((2, 1), int)] * 2, num_nodes=[1]), "one entry per graph"),
        (lambda: mt.Digraphs.from_networkx(nx.DiGraph()), "graph 0 is empty"),
        (lambda: mt.Digraphs.from_scipy(coo_array((2, 3))), "square"),
        (lambda: mt.Digraphs.from_scipy(csr_matrix([[0, -1], [0, 0]])), "weight -1.0"),
        (lambda: mt.Digraphs.from_pyg(Data(num_nodes=3)), "no edge_index"),
        (lambda: mt.Digraphs.from_edges([[0], [1]]).replace(node_features={"x": torch.zeros(5)}), "must have 2 rows"),
        (lambda: mt.Digraphs.from_edges([[0], [1]]).replace(node_ptr=torch.tensor([1, 2])), "start at 0"),
    ],
)
def test_bad_input_is_rejected_with_the_reason(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


EDGES = torch.tensor([[0, 1], [1, 2]])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.int32, torch.float32])
def test_weights_of_any_real_type_are_read(dtype):
    weights = torch.tensor([1.0, 2.0]).to(dtype)
    data = Data(edge_index=EDGES, num_nodes=3, edge_weight=weights, edge_attr=torch.ones(2, 3, dtype=torch.bfloat16))
    for graphs in (mt.Digraphs.from_pyg(data), mt.Digraphs.from_edges(EDGES, edge_weight=weights)):
        assert graphs.weights.tolist() == [1, 2]
        mt.MagneticLaplacian(k=2)(graphs)
    assert mt.Digraphs.from_pyg(data).edge_features["edge_attr"].dtype == torch.bfloat16


def test_gradients_that_end_here_are_announced():
    weights = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="edge_weight requires gradients, but graphs do not pass gradients on"):
        mt.Digraphs.from_edges(EDGES, edge_weight=weights)
    with pytest.warns(UserWarning, match="edge_weight requires gradients"):
        mt.Digraphs.from_pyg(Data(edge_index=EDGES, num_nodes=3, edge_weight=weights))
    with pytest.warns(UserWarning, match="x requires gradients"):
        mt.Digraphs.from_pyg(Data(edge_index=EDGES, num_nodes=3, x=torch.ones(3, 1, requires_grad=True)))


def test_data_of_pyg_that_are_no_plain_graph_are_refused():
    typed = HeteroData()
    typed["a"].x = torch.ones(3, 1)
    typed["a", "to", "a"].edge_index = EDGES
    for data in (typed, [typed], Batch.from_data_list([typed])):
        with pytest.raises(TypeError, match="HeteroData has several types of nodes or edges"):
            mt.Digraphs.from_pyg(data)
    events = TemporalData(src=EDGES[0], dst=EDGES[1], t=torch.arange(2), msg=torch.ones(2, 1))
    with pytest.raises(TypeError, match="TemporalData is a list of events"):
        mt.Digraphs.from_pyg(events)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (np.float32(2), 2), (np.int64(3), 3), (Fraction(1, 2), 0.5), (None, "must be a number, got None"),
        ("2", "the weight of edge 'a' → 'b' must be a number, got '2'"), (1j, "got 1j"), (True, "got True"),
        (float("nan"), "weight nan"), (10**400, "weight inf"), ([1], r"got \[1\]"),
    ],
)  # fmt: skip
def test_weights_of_networkx_are_numbers(weight, expected):
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", weight=weight)
    graph.add_edge("a", "b")
    graph.add_edge("b", "b", weight=2.0)
    if not isinstance(expected, str):
        assert mt.Digraphs.from_networkx(graph).weights.tolist() == [expected, 1, 2]
        return
    with pytest.raises(ValueError, match=expected):
        mt.Digraphs.from_networkx(graph)


def test_a_matrix_with_wrong_pointers_is_refused_before_it_is_converted():
    for name, message in (("indptr", "non-decreasing"), ("indices", "indices must be <")):
        matrix = csr_matrix(np.eye(1000))
        getattr(matrix, name)[500] = 2**30
        with pytest.raises(ValueError, match=message):
            mt.Digraphs.from_scipy(matrix)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: mt.Digraphs.from_networkx(3), "expected one graph or a list of them, got int"),
        (lambda: mt.Digraphs.from_networkx([3]), "expected a networkx graph, got int"),
        (lambda: mt.Digraphs.from_edges(EDGES, num_nodes=3.5), "num_nodes must be an integer, got 3.5"),
        (lambda: mt.Digraphs.from_edges(EDGES, num_nodes=2**31), "num_nodes must be from 1 to 2147483647"),
        (lambda: mt.Digraphs.from_edges(EDGES, num_nodes=-1), "num_nodes must be from 1"),
        (lambda: mt.Digraphs.from_edges([[0, 1], [1]]), "expected an array"),
        (lambda: mt.Digraphs.from_edges(EDGES.to_sparse()), "sparse tensor"),
        (lambda: mt.Digraphs.from_edges(EDGES).replace(edges=EDGES.float()), "edges must have dtype int16, int32 or"),
        (lambda: mt.Digraphs.from_edges(EDGES).replace(node_ptr=torch.tensor([0, 3]).int()), "64-bit integers"),
        (lambda: mt.Digraphs.from_edges(EDGES).replace(node_features={"x": [1]}), "must be a tensor, got list"),
    ],
)
def test_what_is_no_graph_is_named(build, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_a_number_of_nodes_may_be_a_tensor():
    assert mt.Digraphs.from_edges(EDGES, num_nodes=torch.tensor(5)).num_nodes == 5
    assert mt.Digraphs.from_edges([EDGES, EDGES], num_nodes=torch.tensor([5, 4])).sizes.tolist() == [5, 4]


def test_bad_indices():
    graphs = mt.Digraphs.from_edges([[0], [1]])
    for index in (1, -2, [3], torch.tensor([True, False])):
        with pytest.raises(IndexError):
            graphs[index]


NAMES = ["a", "", "Grüße", "\ud800", "e", "f", "g"]


def test_names_follow_their_nodes(tmp_path):
    edges = [np.array([[0, 1], [1, 2]]), np.array([[0], [1]]), np.array([[0], [1]])]
    graphs = mt.Digraphs.from_edges(edges).replace(names=NAMES)
    assert graphs.names == NAMES
    assert graphs[1].names == NAMES[3:5]
    assert graphs[1:].names == NAMES[3:]
    assert graphs[[2, 0]].names == NAMES[5:] + NAMES[:3]
    assert mt.Digraphs.concat([graphs[1:], graphs[:1]]).names == NAMES[3:] + NAMES[:3]
    assert graphs.reverse().names == graphs.to("cpu").names == NAMES
    graphs.save(tmp_path / "named.safetensors")
    assert (
        mt.Digraphs.load(tmp_path / "named.safetensors")[1:].names == mt.read(tmp_path / "named.safetensors")[1:].names
    )
    assert graphs.replace(names=None).names is None
    with pytest.raises(ValueError, match="one entry per node, got 2 for 7 nodes"):
        graphs.replace(names=["a", "b"])
    with pytest.raises(ValueError, match="do not match"):
        graphs.replace(name_ptr=graphs.node_ptr)


def test_graphs_without_names_get_numbers_beside_named_ones():
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    assert graphs.names is None
    assert mt.Digraphs.concat([graphs, graphs]).names is None
    named = graphs.replace(names=["a", "b", "c"])
    assert mt.Digraphs.concat([named, graphs[[0, 0]]]).names == ["a", "b", "c", "0", "1", "2", "0", "1", "2"]


def test_names_go_to_networkx_and_back():
    graphs = mt.Digraphs.from_networkx([nx.DiGraph([("b", "a")]), nx.path_graph(2, nx.DiGraph)])
    assert graphs.names == ["b", "a", "0", "1"]
    back = graphs.to_networkx()
    assert dict(back[0].nodes(data="name")) == {0: "b", 1: "a"}
    assert mt.Digraphs.from_networkx(back).names == graphs.names
    assert mt.Digraphs.from_networkx(nx.path_graph(2, nx.DiGraph)).names is None
