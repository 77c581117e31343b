"""Asked pairs: listed from targets and put into slots, against loops over graphs and pairs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite.asked import AskedPairs
from magnetite.batching import Shape
from magnetite.packed import starts
from magnetite.tasks import PairTargets, Playground, draw, examples, pair_targets
from magnetite.testing import digraphs

few = settings(max_examples=25)

Question = tuple[int, int, int]


def listed(graphs: mt.Digraphs, questions: list[list[Question]]) -> AskedPairs:
    """The container of (source, target, wanted) triples, graph by graph."""
    rows = torch.tensor([row for own in questions for row in own], dtype=torch.int16).reshape(-1, 3).T
    counts = torch.tensor([len(own) for own in questions])
    return AskedPairs(node_ptr=graphs.node_ptr, asked_ptr=starts(counts), ends=rows[:2], wanted=rows[2])


@st.composite
def asked_graphs(draw: st.DrawFn) -> tuple[mt.Digraphs, list[list[Question]]]:
    """Graphs, single nodes among them, with any pairs of their nodes: none, repeated ones, a node and itself."""
    graphs = draw(digraphs(max_nodes=6))
    questions = []
    for size in graphs.sizes.tolist():
        node = st.integers(0, size - 1)
        questions.append(draw(st.lists(st.tuples(node, node, st.integers(0, 300)), max_size=6)))
    return graphs, questions


@few
@given(asked_graphs(), st.integers(0, 2), st.integers(0, 5), st.randoms(use_true_random=False))
def test_pairs_of_chosen_graphs_stand_one_after_the_other(drawn, empty_graphs, room, random):
    graphs, questions = drawn
    ids = [random.randrange(len(graphs)) for _ in range(3)]
    expected = [(slot, *row) for slot, graph in enumerate(ids) for row in questions[graph]]
    shape = Shape(graphs=3 + empty_graphs, nodes=8, edges=24, pairs=len(expected) + room)
    batch = mt.pad(graphs, ids=torch.tensor(ids), shape=shape, asked=listed(graphs, questions))
    asked = batch.asked
    assert asked.mask.tolist() == [True] * len(expected) + [False] * room
    assert asked.source.tolist()[: len(expected)] == [slot * 8 + source for slot, source, _, _ in expected]
    assert asked.target.tolist()[: len(expected)] == [slot * 8 + target for slot, _, target, _ in expected]
    assert asked.wanted.tolist() == [wanted for _, _, _, wanted in expected] + [0] * room
    assert torch.equal(asked.source[~asked.mask], asked.target[~asked.mask])
    assert asked.source.unique().numel() >= min(room, batch.mask.numel())
    assert ((asked.source >= 0) & (asked.source < batch.mask.numel())).all()


@few
@given(asked_graphs())
def test_without_a_shape_all_pairs_fit(drawn):
    graphs, questions = drawn
    batch = mt.pad(graphs, asked=listed(graphs, questions))
    assert int(batch.asked.mask.sum()) == sum(map(len, questions))
    assert mt.pad(graphs).asked is None


@few
@given(asked_graphs())
def test_selecting_and_joining_keep_the_pairs_of_each_graph(drawn):
    graphs, questions = drawn
    asked = listed(graphs, questions)
    order = list(reversed(range(len(graphs))))
    for chosen in (asked[order], AskedPairs.concat([asked[number : number + 1] for number in order])):
        expected = [questions[number] for number in order]
        assert chosen.counts.tolist() == [len(own) for own in expected]
        assert chosen.ends.T.tolist() == [list(row[:2]) for own in expected for row in own]
        assert chosen.wanted.tolist() == [row[2] for own in expected for row in own]


@pytest.mark.parametrize("at_once", [1, 50, 2**24])
@few
@given(graphs=digraphs())
def test_targets_are_listed_but_for_the_diagonal_and_what_is_missing(at_once, graphs):
    targets = pair_targets(graphs, "directed-distance")
    questions = []
    for matrix in targets:
        size = range(len(matrix))
        questions.append([(u, v, int(matrix[u, v])) for u in size for v in size if u != v and matrix[u, v] >= 0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examples, "PAIRS_AT_ONCE", at_once)
        found, counts = targets.asked(), targets.counts
    expected = listed(graphs, questions)
    assert found.node_ptr is graphs.node_ptr
    assert counts.tolist() == [len(own) for own in questions]
    for name, tensor in expected.tensors().items():
        assert torch.equal(found.tensors()[name], tensor), name


def test_graphs_without_nodes_ask_nothing():
    pointers = {"node_ptr": torch.tensor([0, 0, 2, 2]), "pair_ptr": torch.tensor([0, 0, 4, 4])}
    targets = PairTargets(values=torch.tensor([0, 7, -1, 0], dtype=torch.int16), **pointers)
    assert targets.asked().counts.tolist() == targets.counts.tolist() == [0, 1, 0]
    assert targets.asked().wanted.tolist() == [7]


def test_asked_pairs_move_with_their_batch():
    drawn = draw(Playground("adjacency", train=3), "train")
    batch = mt.pad(drawn.graphs, asked=drawn.targets.asked()).to("meta")
    assert {tensor.device.type for tensor in batch.tensors()} == {"meta"}
    assert batch.asked.wanted.device.type == "meta"


def test_pairs_that_do_not_fit_or_belong_elsewhere_are_refused():
    graphs = mt.Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])
    asked = pair_targets(graphs, "adjacency").asked()
    with pytest.raises(ValueError, match=r"8 asked pairs do not fit into Shape\(graphs=2, nodes=8, edges=8, pairs=7, "):
        mt.pad(graphs, shape=Shape(2, 8, 8, 7), asked=asked)
    with pytest.raises(ValueError, match="asked belongs to other graphs"):
        mt.pad(graphs, asked=asked[:1])


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_padding_does_not_wait_for_a_gpu():
    drawn = draw(Playground("directed-distance", train=64), "train", "cuda")
    graphs, asked = drawn.graphs, drawn.targets.asked()
    shape, ids = Shape.of(graphs, None, asked), torch.arange(0, 64, 2, device="cuda")
    mt.pad(graphs, ids=ids, shape=shape, asked=asked)  # the layout of a shape is made once
    torch.cuda.set_sync_debug_mode("error")
    try:
        batch = mt.pad(graphs, ids=ids, shape=shape, asked=asked)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    here = mt.pad(graphs.to("cpu"), ids=ids.cpu(), shape=shape, asked=asked.to("cpu"))
    for tensor, expected in zip(batch.tensors(), here.tensors(), strict=True):
        assert torch.equal(tensor.cpu(), expected)
