import pytest
import torch

from magnetite.io.storage import DamagedFile, read_json, write_json
from magnetite.tasks import Distances, Sorting

pytest.importorskip("torch_geometric")
from torch_geometric.loader import DataLoader

from magnetite.datasets import DistancesDataset, SortingDataset
from magnetite.transforms import AddMagneticLaplacianPE


def test_sorting(tmp_path):
    task = Sorting(train=60, shard_size=25)
    dataset = SortingDataset(tmp_path, task, split="train")
    assert len(dataset) == 120 and int(dataset.y.sum()) == 60
    graphs = task.shard("train", 1).graphs
    first = dataset[50]
    assert torch.equal(first.edge_index, graphs[0].edges.long())
    assert torch.equal(first.x, graphs[0].node_features["wires"])
    assert first.num_nodes == int(graphs.sizes[0])
    batch = next(iter(DataLoader(dataset, batch_size=48, shuffle=True)))
    assert batch.num_graphs == 48 and batch.y.shape == (48,)
    assert int(batch.edge_index.max()) < batch.num_nodes


def test_distances(tmp_path):
    task = Distances(target="directed-distance", per_size=4)
    dataset = DistancesDataset(tmp_path, task, split="valid")
    examples = task.shard("valid", 0)
    assert len(dataset) == 32
    for number in (0, 17, 31):
        size = dataset[number].num_nodes
        assert torch.equal(dataset[number].y.view(size, size), examples.targets[number])
        assert not bool(dataset[number].mask.view(size, size).diagonal().any())
    batch = next(iter(DataLoader(dataset, batch_size=8)))
    assert batch.y.shape == batch.mask.shape


def test_data_are_generated_once_and_another_task_is_rejected(tmp_path):
    task = Sorting(valid=10)
    one = SortingDataset(tmp_path, task, split="valid")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "processed").glob("*.safetensors")}
    two = SortingDataset(tmp_path, task, split="valid")
    assert torch.equal(one.edge_index, two.edge_index)
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "processed").glob("*.safetensors")}
    with pytest.raises(ValueError, match="seed 0 instead of 1"):
        SortingDataset(tmp_path, Sorting(valid=10, seed=1), split="valid")


class Mark:
    """A transform that counts its calls, and names its parameter as PyG's do."""

    def __init__(self, value: int) -> None:
        self.value, self.calls = value, 0

    def __call__(self, data):
        self.calls += 1
        data.mark = torch.full((data.num_nodes, 1), self.value)
        return data

    def __repr__(self) -> str:
        return f"Mark({self.value})"


def test_transforms_before_and_after(tmp_path):
    task, mark = Sorting(valid=5), Mark(3)
    dataset = SortingDataset(tmp_path, task, "valid", pre_transform=mark)
    assert mark.calls == 15 and dataset[14].mark.unique().tolist() == [3]
    again = SortingDataset(tmp_path, task, "valid", pre_transform=mark, transform=Mark(4))
    assert mark.calls == 15 and again[0].mark.unique().tolist() == [4]
    assert SortingDataset(tmp_path, task, "valid", pre_transform=Mark(5))[0].mark.unique().tolist() == [5]
    assert "mark" not in SortingDataset(tmp_path, task, "valid")[0]


def test_pre_transformed_data_are_stored_without_pickle(tmp_path):
    encode = AddMagneticLaplacianPE(k=4)
    dataset = SortingDataset(tmp_path, Sorting(valid=5), "valid", pre_transform=encode)
    plain = SortingDataset(tmp_path, Sorting(valid=5), "valid", transform=encode)
    for number in (0, 14):
        assert torch.equal(dataset[number].magnetic_pe, plain[number].magnetic_pe)
    extensions = {path.suffix for path in (tmp_path / "processed").iterdir() if not path.name.startswith(".")}
    assert ".safetensors" in extensions
    with pytest.raises(ValueError, match="tensors only"):
        SortingDataset(tmp_path, Sorting(valid=5), "valid", pre_transform=lambda data: data.update({"name": "x"}))


def test_damaged_incomplete_and_other_stored_data_are_made_again(tmp_path):
    task, folder = Sorting(valid=5), tmp_path / "processed"
    whole = SortingDataset(tmp_path, task, "valid", pre_transform=Mark(3))
    (shard,) = folder.glob("valid-*.safetensors")
    (stored,) = folder.glob("transformed-*.safetensors")
    SortingDataset(tmp_path, task, "valid", pre_transform=Mark(4))
    (other,) = set(folder.glob("transformed-*.safetensors")) - {stored}
    stored.write_bytes(other.read_bytes())  # a file of another transform under this name
    assert SortingDataset(tmp_path, task, "valid", pre_transform=Mark(3))[0].mark.unique().tolist() == [3]
    stored.write_bytes(stored.read_bytes()[:-1] + b"x")
    assert SortingDataset(tmp_path, task, "valid", pre_transform=Mark(3))[0].mark.unique().tolist() == [3]
    manifest = read_json(folder / "manifest.json", "manifest", "")
    write_json(folder / "manifest.json", {**manifest, "files": {}})  # killed before the manifest was completed
    assert torch.equal(SortingDataset(tmp_path, task, "valid").edge_index, whole.edge_index)
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedFile, match=r"valid-00000.safetensors does not match its checksum"):
        SortingDataset(tmp_path, task, "valid")


def test_a_transform_without_a_name_is_not_stored(tmp_path):
    dataset = SortingDataset(tmp_path, Sorting(valid=5), "valid", pre_transform=lambda data: data)
    assert len(dataset) == 15
    assert not list((tmp_path / "processed").glob("transformed-*"))
