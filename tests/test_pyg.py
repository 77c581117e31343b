"""What users of PyG rely on: whole data sets, encodings that a batch carries, features, modules of one's own."""

import copy
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader

import magnetite as mt
from magnetite import nn
from magnetite.nn.module import of_kind
from magnetite.transforms import AddDirectedWalkPE, AddMagneticLaplacianPE, AddSVDPE
from tests.test_transforms import ALL, Paths, assert_same, dressed, hetero

SEVERAL = (0.1, mt.Relative(0.25))


class Listed(InMemoryDataset):
    """A data set in memory, made from a list."""

    def __init__(self, items, transform=None):
        super().__init__(None, transform)
        self.data, self.slices = self.collate(items)


@pytest.mark.parametrize("transform", ALL[:-1], ids=repr)
def test_a_data_set_is_encoded_as_its_graphs_are(odd_weighted, transform):
    items = dressed(odd_weighted[:9], torch.float32)
    dataset = Listed(items)
    found = transform.encode(dataset)
    assert type(found) is Listed
    for one, two, listed in zip(found, items, transform.encode(items), strict=True):
        assert_same(one, transform(two))
        assert_same(listed, transform(two))
    for one, two in zip(dataset, items, strict=True):
        assert_same(one, two)
    for one, two in zip(transform.encode(dataset[3:6]), items[3:6], strict=True):
        assert_same(one, transform(two))


@pytest.mark.filterwarnings("ignore:Unable to accurately infer")
@pytest.mark.parametrize("keep", ["num_nodes", "x", "neither"])
def test_the_number_of_nodes_of_a_data_set(keep):
    """Isolated nodes at the end count if PyG counts them."""
    items = []
    for size in (3, 5, 4):
        item = Data(edge_index=torch.tensor([[0, 1], [1, 2]]))
        if keep != "neither":
            item[keep] = size if keep == "num_nodes" else torch.ones(size, 2)
        items.append(item)
    found = AddSVDPE(rank=2).encode(Listed(items))
    for one, two in zip(found, items, strict=True):
        assert_same(one, AddSVDPE(rank=2)(two))


def test_a_stored_data_set_and_one_of_a_single_graph(tmp_path):
    transform = AddMagneticLaplacianPE(k=2)
    before, after = Paths(tmp_path / "pre", pre_transform=transform), transform.encode(Paths(tmp_path / "plain"))
    for one, two in zip(before, after, strict=True):
        assert_same(one, two)
    single = transform.encode(Listed(dressed(mt.Digraphs.from_edges([[0, 1], [1, 2]]))))
    assert single[0].magnetic_pe.shape == (3, 4)


def test_data_sets_larger_than_a_shard_are_the_same(odd, monkeypatch):
    whole = AddMagneticLaplacianPE(k=3).encode(odd.to_pyg())
    monkeypatch.setattr("magnetite.encodings.cache.SHARD_NODES", 20)
    for one, two in zip(AddMagneticLaplacianPE(k=3).encode(odd.to_pyg()), whole, strict=True):
        assert_same(one, two)


CARRIED = {
    "magnetic": (AddMagneticLaplacianPE(k=3), lambda: nn.MagLapNet(3, 16)),
    "unit vectors": (AddMagneticLaplacianPE(k=3, scaling="none"), lambda: nn.MagLapNet(3, 16, scaling="none")),
    "several": (
        AddMagneticLaplacianPE(k=3, q=SEVERAL, attr_name="pe"),
        lambda: nn.SPE(3, 16, encoding=mt.MagneticLaplacian(3, SEVERAL)),
    ),
    "walks": (AddDirectedWalkPE(steps=2, pairs=True), lambda: nn.WalkEncoder(16, mt.RandomWalk(steps=2))),
    "svd": (AddSVDPE(rank=3), lambda: nn.SVDEncoder(3, 16)),
}


def model_of(position):
    torch.manual_seed(0)
    return nn.DigraphTransformer(16, 1, nn.NodeHead(2), position=position, heads=2).eval()


def no_encoding(monkeypatch):
    """Let every encoding fail that is computed from now on."""
    for kind in (mt.MagneticLaplacian, mt.RandomWalk, mt.SVD):
        monkeypatch.setattr(kind, "__call__", lambda *_: pytest.fail("encoded again"))


@pytest.mark.parametrize("name", CARRIED)
@pytest.mark.parametrize("weighted", [False, True])
def test_models_use_the_encodings_that_a_batch_carries(odd, odd_weighted, name, weighted, monkeypatch):
    transform, make = CARRIED[name]
    graphs = (odd_weighted if weighted else odd)[:7]
    model, items = model_of(make()), [transform(item) for item in graphs.to_pyg()]
    expected = model(graphs)
    no_encoding(monkeypatch)
    loaded = next(iter(DataLoader(items, batch_size=len(items))))
    ways = {
        "loader": loaded,
        "list": items,
        "data set": Batch.from_data_list(list(Listed(items))),
        "there and back": Batch.from_data_list(loaded.to_data_list()),
        "indexed": Batch.from_data_list(loaded.index_select(torch.arange(len(items)))),
        "copied": copy.copy(loaded.to("cpu")).clone(),
    }
    for way, given in ways.items():
        torch.testing.assert_close(model(given), expected, msg=lambda text, way=way: f"{way}: {text}")
    torch.testing.assert_close(model(items[2]), expected[graphs.node_ptr[2] : graphs.node_ptr[3]])


CHANGES = {
    "k": lambda item: AddMagneticLaplacianPE(k=4)(item),
    "q": lambda item: AddMagneticLaplacianPE(k=3, q=0.2)(item),
    "normalised": lambda item: AddMagneticLaplacianPE(k=3, normalised=False)(item),
    "reversed edges": lambda item: with_edges(AddMagneticLaplacianPE(k=3)(item), item.edge_index.flip(0)),
    "an edge less": lambda item: with_edges(AddMagneticLaplacianPE(k=3)(item), item.edge_index[:, 1:]),
    "weights": lambda item: with_weights(AddMagneticLaplacianPE(k=3)(item)),
    "a column less": lambda item: with_columns(AddMagneticLaplacianPE(k=3)(item), 5),
}


def with_edges(item, edges):
    item.edge_index = edges
    return item


def with_columns(item, count):
    item.magnetic_pe = item.magnetic_pe[:, :count]
    return item


def with_weights(item):
    item.edge_weight = 1.0 + torch.arange(item.num_edges)
    return item


@pytest.mark.parametrize("name", CHANGES)
def test_encodings_of_other_parameters_or_edges_are_not_used(name):
    model = model_of(nn.MagLapNet(3, 16))
    graph = Data(edge_index=torch.tensor([[0, 1, 2, 0], [1, 2, 3, 3]]), num_nodes=4)
    changed = CHANGES[name](graph)
    bare = Data(edge_index=changed.edge_index, edge_weight=changed.edge_weight, num_nodes=4)
    with pytest.warns(UserWarning, match="'magnetic_pe' of the PyG data has other parameters than Magn"):
        found = model(Batch.from_data_list([changed, changed]))
    torch.testing.assert_close(found, torch.cat([model(bare)] * 2))


def test_an_empty_part_of_a_data_set_is_encoded(odd):
    assert len(AddMagneticLaplacianPE(k=2).encode(Listed(dressed(odd[:3], torch.float32))[:0])) == 0


def test_the_order_of_edges_may_change(monkeypatch):
    model, item = model_of(nn.MagLapNet(3, 16)), Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
    carrying = with_edges(AddMagneticLaplacianPE(k=3)(item), item.edge_index.flip(1))
    expected = model(item)
    no_encoding(monkeypatch)
    torch.testing.assert_close(model(carrying), expected)


def test_encodings_are_features_but_their_keys_are_not():
    item = AddMagneticLaplacianPE(k=2)(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2))
    for data in (item, Batch.from_data_list([item, item]), [item]):
        graphs = mt.Digraphs.from_pyg(data)
        assert set(graphs.node_features) | set(graphs.graph_features) == {
            "magnetic_pe", "magnetic_pe_values", "magnetic_pe_mask",
        }  # fmt: skip


def test_a_batch_and_a_data_set_are_read_as_lists_are(odd_weighted):
    items = dressed(odd_weighted[:8], torch.float32)
    expected = mt.Digraphs.from_pyg(items)
    for data in (Batch.from_data_list(items), Listed(items), Listed(items, transform=AddSVDPE(rank=1))):
        found = mt.Digraphs.from_pyg(data)
        if getattr(data, "transform", None) is not None:
            assert "svd_pe" in found.node_features
            found = found.replace(node_features={"x": found.node_features["x"]})
        assert found.tensors().keys() == expected.tensors().keys()
        for name, tensor in expected.tensors().items():
            assert torch.equal(found.tensors()[name], tensor), name
            assert found.tensors()[name].dtype == tensor.dtype, name


DOORS = {
    "from_pyg": mt.Digraphs.from_pyg,
    "from_pyg of a list": lambda data: mt.Digraphs.from_pyg([data]),
    "model": lambda data: model_of(nn.MagLapNet(3, 16))(data),
    "model of a batch": lambda data: model_of(nn.MagLapNet(3, 16))(Batch.from_data_list([data, data])),
    "transform": AddSVDPE(rank=2),
    "a list to encode": lambda data: AddSVDPE(rank=2).encode([data]),
    "a data set to encode": lambda data: AddSVDPE(rank=2).encode(Listed([data, data])),
    "supervised": lambda data: mt.tasks.Supervised([data], target="y", level="node", kind="regression"),
}


@pytest.mark.parametrize("name", DOORS)
def test_several_types_of_nodes_are_refused_in_one_line(name):
    data: HeteroData = hetero()
    with pytest.raises(TypeError, match="HeteroData") as caught:
        DOORS[name](data)
    assert "to_homogeneous" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("columns", [None, 1, 3])
def test_categories_have_any_number_of_columns(columns):
    shape = (3,) if columns is None else (3, columns)
    item = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), x=torch.ones(shape, dtype=torch.long), num_nodes=3)
    sizes = 5 if columns in (None, 1) else (5,) * columns
    model = nn.DigraphTransformer(16, 1, nn.NodeHead(2), embedding=nn.CategoryNodes({"x": sizes}))
    assert model(Batch.from_data_list([item, item])).shape == (6, 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (torch.ones(3, 1), "feature 'x' has dtype torch.float32, but categories are integers"),
        (torch.tensor([[0], [-1], [2]]), "feature 'x' has the negative category -1"),
        (torch.ones(3, 2, dtype=torch.long), "feature 'x' has 2 columns, but 1 numbers of categories are given"),
    ],
)
def test_what_is_no_category_is_refused_by_name(values, message):
    item = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), x=values)
    model = nn.DigraphTransformer(16, 1, nn.NodeHead(2), embedding=nn.CategoryNodes({"x": 5}))
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        model(item)


class Squares(nn.Embedding):
    """An embedding of one's own around a plain torch module."""

    def __init__(self, feature: str):
        super().__init__()
        self.feature = feature

    def setup(self, width):
        self.net = torch.nn.Sequential(torch.nn.Linear(1, width), torch.nn.ReLU(), torch.nn.Linear(width, width))

    def forward(self, batch):
        return self.net(batch.node_features[self.feature].float() ** 2)


class Degrees(nn.PositionEncoder):
    """An encoder of one's own, which needs no encoding."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = torch.nn.Linear(1, width)

    def encodings(self):
        return {}

    def forward(self, batch):
        return nn.Positions(nodes=self.linear(batch.degrees()[:, None]))


class Spread(nn.Head):
    """A head of one's own: the standard deviation over the nodes."""

    def setup(self, width):
        self.last = torch.nn.Linear(width, 1)

    def forward(self, states, batch, positions):
        mean = batch.mean_nodes(states)
        return self.last(batch.mean_nodes((states - batch.per_node(mean)) ** 2))


def test_modules_of_ones_own_are_saved_and_loaded(tmp_path):
    item = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), x=torch.rand(3, 1))
    position = [Degrees(16), nn.MagLapNet(2, 16)]
    model = nn.DigraphTransformer(16, 1, Spread(), position=position, embedding=[Squares("x"), nn.LinearNodes("x", 1)])
    model.save(tmp_path)
    assert torch.equal(nn.load(tmp_path)(item), model.eval()(item))


@pytest.mark.parametrize(("kind", "name"), [(nn.Head, "head"), (nn.Embedding, "embedding")])
def test_a_plain_module_is_refused_with_the_way_to_wrap_it(kind, name):
    """Models call this; in tests, the checks of types are faster."""
    with pytest.raises(TypeError, match=rf"{name} must be a subclass of magnetite.nn.{kind.__name__}, got"):
        of_kind(torch.nn.Linear(1, 16), kind, name)


def test_eigenvectors_reach_networks_scaled_by_default():
    graphs = mt.Digraphs.from_edges([torch.tensor([[0, 1, 2, 0], [1, 2, 3, 3]])])
    pairs = mt.MagneticLaplacian(k=3)(graphs)
    scaled = replace(pairs, vectors=pairs.vectors * 2)  # √n
    for make in (lambda **options: nn.MagLapNet(3, 16, **options), lambda **options: nn.SPE(3, 16, **options)):
        torch.manual_seed(0)
        default = make().eval()
        torch.manual_seed(0)
        unit = make(scaling="none").eval()
        torch.testing.assert_close(default(mt.batch(graphs, pairs)).nodes, unit(mt.batch(graphs, scaled)).nodes)


@pytest.mark.parametrize("form", ["list", "batch"])
def test_names_of_nodes_come_back(form):
    graphs = mt.Digraphs.concat(
        [
            mt.Digraphs.from_edges([[0], [1]]).replace(names=["a", "ß"]),
            mt.Digraphs.from_edges([[0, 1], [1, 2]]).replace(names=["x", "y", "z"]),
        ]
    )
    items = graphs.to_pyg()
    assert items[0].names == ["a", "ß"]
    again = mt.Digraphs.from_pyg(items if form == "list" else Batch.from_data_list(items))
    assert again.names == graphs.names


def test_an_attribute_called_names_need_not_be_names():
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, names=["one name of the graph"])
    assert mt.Digraphs.from_pyg(data).names is None
