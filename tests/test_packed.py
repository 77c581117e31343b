"""Files of packed tensors: what does not fit together is refused before a kernel sees it."""

import warnings

import pytest
import torch

import magnetite as mt
from magnetite.batching import QueryPairs
from magnetite.encodings import NodeEncoding
from magnetite.encodings.results import PairEncoding, TopPairs
from magnetite.io.storage import DamagedFile, write_tensors
from magnetite.packed import Packed, first_outside
from magnetite.sorting import SortingNetwork
from magnetite.sorting.networks import SortingNetworks
from magnetite.tasks import Examples
from magnetite.tasks.base import PairTargets

GRAPHS = mt.Digraphs.from_edges(
    [torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([[0], [1]])], edge_weight=[[1.0, 2.0, 3.0], [4.0]]
).replace(names=["a", "é", "c", "d", ""], node_features={"x": torch.ones(5, 2)})
SIZES = {"node_ptr": torch.tensor([0, 3, 5])}
VALID: dict[type[Packed], dict[str, torch.Tensor]] = {
    mt.Digraphs: GRAPHS.tensors(),
    mt.Eigenpairs: mt.MagneticLaplacian(k=2)(GRAPHS).tensors(),
    NodeEncoding: mt.Depth()(GRAPHS).tensors(),
    PairEncoding: mt.RandomWalk(steps=1)(GRAPHS).tensors(),
    TopPairs: {
        **SIZES,
        "landing": torch.tensor([[0, 1], [2, -1], [0, 0], [1, -1], [0, 1]]),
        "values": torch.ones(5, 2, 3),
        "lost": torch.ones(5, 3),
    },
    QueryPairs: {
        **SIZES,
        "query_ptr": torch.tensor([0, 1, 3]),
        "nodes": torch.tensor([[2, 0, 1], [0, 1, 1]]),
        "labels": torch.ones(3, dtype=torch.int16),
    },
    PairTargets: {
        **SIZES,
        "pair_ptr": torch.tensor([0, 9, 13]),
        "values": torch.ones(13, dtype=torch.int16),
    },
    SortingNetworks: SortingNetworks.from_networks([SortingNetwork(3, [(0, 2), (0, 1)]), SortingNetwork(2, [(0, 1)])])
    .tensors(),
}  # fmt: skip


def load(kind, tensors, tmp_path, verify=True):
    write_tensors(tmp_path / "a", tensors, {"kind": kind.__name__})
    return kind.load(tmp_path / "a", verify)


@pytest.mark.parametrize("kind", VALID)
def test_valid_files_are_loaded(tmp_path, kind):
    loaded = load(kind, VALID[kind], tmp_path).tensors()
    assert loaded.keys() == VALID[kind].keys()
    assert all(torch.equal(loaded[name], VALID[kind][name]) for name in loaded)


def test_eigenpairs_of_one_graph_are_loaded(tmp_path):
    one = mt.MagneticLaplacian(k=2, q=(0.1, 0.2))(GRAPHS)[0]
    assert load(mt.Eigenpairs, one.tensors(), tmp_path).values.shape == (2, 2)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, tensors in VALID.items() for name in [*tensors, "missing", "unknown"]]
)
def test_every_tensor_of_every_kind_is_checked(tmp_path, kind, name, verify):
    tensors = VALID[kind]
    free = name == "node_features/x" or (kind is NodeEncoding and name == "values")  # any type, and any further shape
    pointer = name.endswith("_ptr")
    if name == "missing":
        wrong = [{key: tensor for key, tensor in tensors.items() if key != "node_ptr"}]
    elif name == "unknown":
        wrong = [{**tensors, "weight": torch.ones(4)}, {**tensors, "a\nb": torch.ones(4)}]
    else:
        tensor = tensors[name]
        changed = [tensor[:0], tensor.new_zeros(()), torch.cat([tensor, tensor])]
        if not free:
            deeper = tensor[:, None, None] if kind is QueryPairs and name == "labels" else tensor.unsqueeze(-1)
            changed += [deeper, (tensor != 0).to(torch.uint8 if name != "name_bytes" else torch.int64)]
        if pointer:
            changed += [tensor + 1, tensor - 1, tensor.flip(0), tensor.int(), tensor * 2**40]
        wrong = [{**tensors, name: each.contiguous()} for each in changed]
    for each in wrong:
        with pytest.raises(DamagedFile) as caught:
            load(kind, each, tmp_path, verify)
        assert "\n" not in str(caught.value)
        assert str(tmp_path / "a") in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "name", "position", "value", "message"),
    [
        (mt.Digraphs, "edges", (0, 3), 2, "edge 2 → 1 of graph 1 is outside its nodes 0…1"),
        (mt.Digraphs, "edges", (1, 0), -1, "edge 0 → -1 of graph 0"),
        (mt.Digraphs, "edges", (1, 0), 2**31 - 1, "of graph 0 is outside"),
        (mt.Digraphs, "weights", 3, -1.0, "edge 3 of graph 1 has weight -1.0"),
        (mt.Digraphs, "weights", 0, float("nan"), "edge 0 of graph 0 has weight nan"),
        (mt.Digraphs, "weights", 0, float("inf"), "weight inf"),
        (mt.Digraphs, "weights", 0, 0.0, "weight 0.0"),
        (mt.Digraphs, "name_bytes", 0, 0xFF, "name_bytes are not UTF-8"),
        (mt.Digraphs, "name_lengths", 0, -1, "do not match"),
        (mt.Eigenpairs, "group", (0, 0), 2, "group must be in −1…1"),
        (TopPairs, "landing", (3, 0), 2, "landing nodes of node 3"),
        (QueryPairs, "nodes", (0, 1), 2, "query pair 1"),
        (SortingNetworks, "wires", (0, 1), 3, "comparator 0"),
        (SortingNetworks, "wires", (1, 1), 0, "comparator 1 must have two different wires"),
        (SortingNetworks, "lengths", 0, 0, "positive"),
    ],
)
def test_every_number_is_checked(tmp_path, kind, name, position, value, message):
    changed = VALID[kind][name].clone()
    changed[position] = value
    with pytest.raises(DamagedFile, match=message):
        load(kind, {**VALID[kind], name: changed}, tmp_path)


def test_names_are_not_split_within_a_character(tmp_path):
    lengths = torch.tensor([2, 1, 1, 1, 0], dtype=torch.int32)  # é has two bytes
    with pytest.raises(DamagedFile, match="split a character"):
        load(mt.Digraphs, {**VALID[mt.Digraphs], "name_lengths": lengths}, tmp_path)


def test_graphs_of_more_nodes_than_can_be_numbered_are_refused(tmp_path):
    tensors = {"node_ptr": [0, 10**12], "edge_ptr": [0, 1]}
    tensors = {name: torch.tensor(values) for name, values in tensors.items()} | {"edges": torch.tensor([[0], [1]])}
    with pytest.raises(DamagedFile, match="graph 0 has 1000000000000 nodes: a graph has at most 2147483647"):
        load(mt.Digraphs, tensors, tmp_path)


def test_a_small_file_of_a_huge_graph_is_loaded_but_not_read(tmp_path):
    path = tmp_path / "a.safetensors"
    mt.Digraphs.from_edges([[0], [1]], num_nodes=2**30).save(path)
    assert mt.Digraphs.load(path).num_nodes == 2**30
    with pytest.raises(ValueError, match=r"1073741824 nodes in .* bytes"):
        mt.read(path)


def test_examples_are_checked():
    graphs = GRAPHS.replace(names=None)
    targets = PairTargets.from_tensors(VALID[PairTargets])
    tensors = Examples(graphs, targets).tensors()
    assert len(Examples.from_tensors(tensors)) == 2
    with pytest.raises(ValueError, match=r"targets|values"):
        Examples.from_tensors({**tensors, "targets": tensors["targets"][:-1]})
    with pytest.raises(ValueError, match="outside"):
        Examples.from_tensors({**tensors, "graphs/edges": tensors["graphs/edges"] + 2})


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_the_first_column_outside_is_found(dtype):
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        sizes = torch.randint(1, 6, (7,), generator=generator)
        counts = torch.randint(0, 4, (7,), generator=generator)
        pointer = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        numbers = torch.randint(-1, 6, (2, int(counts.sum())), generator=generator).to(dtype)
        limits = torch.repeat_interleave(sizes, counts)
        wrong = ((numbers < 0) | (numbers >= limits)).any(0).nonzero().flatten().tolist()
        assert first_outside(numbers, pointer, sizes) == (wrong[0] if wrong else None)
        inside = (numbers.clamp(min=0).long() % limits).to(dtype)
        assert first_outside(inside, pointer, sizes) is None


def test_weights_of_any_real_type_become_floats_and_gradients_are_announced():
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    for dtype in (torch.bfloat16, torch.float16, torch.int64):
        assert GRAPHS.replace(weights=weights.to(dtype)).weights.dtype == torch.float64
    with pytest.warns(UserWarning, match="edge_weight requires gradients, .* it was detached"):
        found = GRAPHS.replace(weights=weights.requires_grad_())
    assert not found.weights.requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GRAPHS.replace(weights=weights.detach())
    for wrong in (weights.detach().to(torch.complex64), weights.detach() > 0, [1.0, 2.0, 3.0, 4.0]):
        with pytest.raises(ValueError, match="weights must be a tensor of real numbers"):
            GRAPHS.replace(weights=wrong)


def test_weighted_graphs_without_edges_are_stored(tmp_path):
    empty = mt.Digraphs.from_edges(torch.zeros(2, 0, dtype=torch.long), 2, torch.zeros(0))
    empty.save(tmp_path / "a.safetensors")
    assert mt.read(tmp_path / "a.safetensors").weights.shape == (0,)


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("number", [-1, -2, -32768])
def test_negative_numbers_are_outside_of_graphs_larger_than_their_type(number: int, count: int) -> None:
    numbers = torch.tensor([[0] * (count - 1) + [number]], dtype=torch.int16)
    pointer, sizes = torch.tensor([0, count]), torch.tensor([70_000])
    assert first_outside(numbers, pointer, sizes) == count - 1
    assert first_outside(numbers.clamp(min=0), pointer, sizes) is None
