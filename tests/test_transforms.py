import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose

import magnetite as mt
from magnetite.transforms import AddDirectedWalkPE, AddMagneticLaplacianPE, AddSVDPE

EXAMPLE = Path(__file__).parent.parent / "examples" / "gps_with_pyg.py"
TRANSFORMS = [
    AddMagneticLaplacianPE(k=4),
    AddMagneticLaplacianPE(k=2, q=(0.1, mt.Relative(0.25)), attr_name="several"),
    AddDirectedWalkPE(steps=2, pairs=True),
    AddDirectedWalkPE(steps=2, top=4),
    AddSVDPE(rank=3),
]


@pytest.fixture
def data(odd):
    return odd[:12].to_pyg()


def test_attributes_compose(data):
    for item in data:
        result = Compose(TRANSFORMS)(item)
        size = item.num_nodes
        assert result.magnetic_pe.shape == (size, 8)
        assert result.magnetic_pe_values.shape == result.magnetic_pe_mask.shape == (1, 4)
        assert result.several.shape == (size, 8)
        assert result.walk_pe.shape == (size, 12)
        assert result.walk_pe_pairs.shape == (size * size, 6)
        assert result.svd_pe.shape == (size, 6)


def test_values_are_those_of_the_encoding():
    item = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
    pairs = mt.MagneticLaplacian(k=2)(mt.Digraphs.from_pyg(item))
    result, unit = AddMagneticLaplacianPE(k=2)(item), torch.cat([pairs.vectors.real, pairs.vectors.imag], dim=1)
    assert torch.equal(result.magnetic_pe, 2 * unit)  # √n of four nodes
    assert torch.equal(AddMagneticLaplacianPE(k=2, scaling="none")(item).magnetic_pe, unit)
    assert torch.equal(result.magnetic_pe_values, pairs.values)
    walks = mt.RandomWalk()(mt.Digraphs.from_pyg(item))[0]
    assert torch.equal(AddDirectedWalkPE()(item).walk_pe[:, :8], walks.sum(0))


def test_weights_are_taken():
    item = Data(edge_index=torch.tensor([[0, 0], [1, 2]]), edge_weight=torch.tensor([1.0, 3.0]), num_nodes=3)
    assert AddDirectedWalkPE(steps=1, restart=None, pairs=True)(item).walk_pe_pairs[1, 1] == 0.25


def test_appending_to_x():
    item = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    assert AddSVDPE(rank=1, attr_name=None)(item.clone()).x.shape == (2, 2)
    item.x = torch.ones(2, 5)
    assert AddMagneticLaplacianPE(k=2, attr_name=None)(item).x.shape == (2, 9)


def test_batches_stack_and_are_not_shifted(data):
    data = [Compose(TRANSFORMS)(item) for item in data]
    batch = next(iter(DataLoader(data, batch_size=len(data))))
    assert batch.magnetic_pe_values.shape == (len(data), 4)
    assert torch.equal(batch.magnetic_pe, torch.cat([item.magnetic_pe for item in data]))
    assert torch.equal(batch.walk_pe_pairs, torch.cat([item.walk_pe_pairs for item in data]))
    assert len(mt.Digraphs.from_pyg(batch)) == len(data)


ALL = [
    *TRANSFORMS,
    AddMagneticLaplacianPE(k=3, q=0.1, normalised=False, attr_name=None),
    AddDirectedWalkPE(steps=1, restart=None, reverse=False, attr_name=None),
    AddSVDPE(rank=2, attr_name=None),
    Compose(TRANSFORMS),
]


def dressed(graphs: mt.Digraphs, dtype: torch.dtype | None = None) -> list[Data]:
    """PyG graphs with node, edge and graph attributes, of which some are shifted in a batch and some are no tensors."""
    items = graphs.to_pyg()
    for number, item in enumerate(items):
        if dtype is not None:
            item.x = torch.arange(2 * item.num_nodes).view(-1, 2).to(dtype)
        item.edge_attr = torch.rand(item.num_edges, 3)
        item.y = torch.tensor([float(number)])
        item.root_index = torch.tensor([item.num_nodes - 1])
        item.name = f"graph {number}"
    return items


def same(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two) and one.dtype == two.dtype and one.device == two.device
    return type(one) is type(two) and one == two


def assert_same(one: Data, two: Data) -> None:
    assert type(one) is type(two)
    assert set(one.keys()) == set(two.keys())
    for name in one.keys():  # noqa: SIM118
        assert same(one[name], two[name]), name


@pytest.mark.parametrize("transform", ALL, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_is_transformed_as_its_graphs_are(odd, odd_weighted, transform, weighted):
    """The law of all transforms: batching before or after makes no difference, in any attribute, bit for bit."""
    graphs = odd_weighted if weighted else odd
    smallest = graphs.sizes.argsort()[:3].tolist()  # one node, fewer nodes than k
    graphs = graphs.select(torch.tensor([0, 1, *smallest, 2, 3, 4, 5, 6, 7]))
    for dtype in (None, torch.float64, torch.int64, torch.bool, torch.float16):
        items = dressed(graphs, dtype)
        before = [item.clone() for item in items]
        batch = Batch.from_data_list(items)
        untouched = batch.clone()
        found, alone = transform(batch), [transform(item) for item in items]
        assert_same(found, Batch.from_data_list(alone))
        for part, item in zip(found.to_data_list(), alone, strict=True):
            assert_same(part, item)
        assert_same(batch, untouched)
        for item, copy in zip(items, before, strict=True):
            assert_same(item, copy)


def test_a_batch_of_one_graph_stays_a_batch(data):
    batch = Batch.from_data_list(data[:1])
    assert_same(AddSVDPE(rank=2)(batch), Batch.from_data_list([AddSVDPE(rank=2)(data[0])]))


def test_attributes_of_the_batch_itself_are_kept(data):
    batch = Batch.from_data_list(data, follow_batch=["edge_index"])
    batch.note, batch.total = "mine", torch.ones(3)
    found = AddDirectedWalkPE(steps=1)(batch)
    assert found.note == "mine"
    assert torch.equal(found.total, batch.total)
    assert torch.equal(found.edge_index_batch, batch.edge_index_batch)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float16, torch.float32, torch.float64])
def test_appending_to_x_loses_nothing(dtype):
    item = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    alone = AddMagneticLaplacianPE(k=2, attr_name=None)(item).x
    item.x = torch.tensor([0, 1, 1]).to(dtype)
    found = AddMagneticLaplacianPE(k=2, attr_name=None)(item).x
    assert found.dtype == torch.promote_types(dtype, torch.float32)
    assert torch.equal(found, torch.cat([item.x[:, None].to(found.dtype), alone.to(found.dtype)], dim=1))


def hetero() -> HeteroData:
    data = HeteroData()
    data["a"].x = torch.ones(2, 1)
    data["a", "to", "a"].edge_index = torch.tensor([[0], [1]])
    return data


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (hetero(), "got HeteroData: use data.to_homogeneous()"),
        (Batch.from_data_list([hetero(), hetero()]), "got HeteroData: use data.to_homogeneous()"),
        (Data(x=torch.ones(2, 1)), "Data has no edge_index: set it, or convert its adj_t first"),
        (Data(adj_t=torch.eye(2).to_sparse()), "Data has no edge_index: set it, or convert its adj_t first"),
        (Batch(edge_index=torch.tensor([[0], [1]]), batch=torch.tensor([0, 0])), "make it with Batch.from_data_list"),
        (Batch.from_data_list([Data(x=torch.ones(1, 1))]), "has no edge_index"),
        ([Data()], "needs PyG's Data or Batch, got list"),
    ],
)
def test_what_cannot_be_transformed_is_refused_in_one_line(given, message):
    for transform in ALL[:-1]:
        with pytest.raises((TypeError, ValueError)) as caught:
            transform(given)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_functional_names():
    from torch_geometric.data.datapipes import DatasetAdapter

    item = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    pipe = DatasetAdapter([item]).add_magnetic_laplacian_pe(k=1).add_directed_walk_pe(steps=1).add_svd_pe(rank=1)
    result = next(iter(pipe))
    assert {"magnetic_pe", "walk_pe", "svd_pe"} <= set(result.keys())


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (
            AddMagneticLaplacianPE(k=4),
            "AddMagneticLaplacianPE(k=4, q=Adaptive(q=0.25), normalised=True, convention='paper', root=None, "
            "dtype=torch.float32, precision='double', parallel='summed', attr_name='magnetic_pe', scaling='nodes')",
        ),
        (
            AddDirectedWalkPE(),
            "AddDirectedWalkPE(steps=3, restart=0.05, reverse=True, dtype=torch.float32, attr_name='walk_pe', "
            "pairs=False)",
        ),
        (AddSVDPE(rank=2), "AddSVDPE(rank=2, dtype=torch.float32, attr_name='svd_pe')"),
    ],
)
def test_repr_prints_every_parameter(transform, expected):
    assert repr(transform) == expected


class Paths(InMemoryDataset):
    """A data set of directed paths, processed with a pre_transform."""

    @property
    def processed_file_names(self):
        return ["data.pt"]

    def process(self):
        items = [
            Data(edge_index=torch.stack([torch.arange(n - 1), torch.arange(1, n)]), num_nodes=n) for n in (3, 5, 8)
        ]
        self.save([self.pre_transform(item) if self.pre_transform else item for item in items], self.processed_paths[0])

    def __init__(self, root, **options):
        super().__init__(root, **options)
        self.load(self.processed_paths[0])


def test_as_transform_and_pre_transform(tmp_path):
    before = Paths(tmp_path / "pre", pre_transform=AddMagneticLaplacianPE(k=2))
    during = Paths(tmp_path / "plain", transform=AddMagneticLaplacianPE(k=2))
    for a, b in zip(before, during, strict=True):
        assert torch.equal(a.magnetic_pe, b.magnetic_pe)


@pytest.mark.parametrize("make", [lambda: AddSVDPE(rank=2, attr_name="node_index"), lambda: AddSVDPE(2, "my_batch")])
def test_names_that_pyg_shifts_are_rejected(make):
    with pytest.raises(ValueError, match="shifts"):
        make()


def test_the_example_runs_and_the_encoding_helps():
    run = subprocess.run([sys.executable, EXAMPLE, "--epochs", "8"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    scores = dict(line.split(":") for line in run.stdout.splitlines() if ":" in line)
    assert float(scores["magnetic"]) > float(scores["no encoding"]) + 0.1
