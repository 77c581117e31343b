"""The naming task: functions to words, from a corpus or Code2, in training, evaluation and proposals."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import magnetite as mt
from magnetite.code import corpus
from magnetite.code.blocks import SPLITS
from magnetite.code.functions import Functions
from magnetite.code.hashing import canonical
from magnetite.linalg.laplacian import magnetic_laplacian
from magnetite.nn.heads import SequenceHead
from magnetite.tasks.namer import subwords_of
from magnetite.tasks.naming import (
    END_OFFSETS,
    PRESETS,
    UNKNOWN_OFFSETS,
    Namer,
    NameScores,
    Naming,
    SubwordNodes,
    Vocabularies,
)
from magnetite.tasks.words import UNKNOWN, WordScores
from magnetite.training import runs
from magnetite.training.config import configuration
from magnetite.training.loop import Trainer
from tests.code.code2_folder import own_functions, write_code2
from tests.training.conftest import logged, parameters

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {
    "task": {"words": 60, "attributes": 80, "subwords": 50, "max_nodes": 60},
    "encoding": {"k": 3},
    "model": {"width": 16, "layers": 1, "local": 1, "heads": 2},
    "optim": {"batch": 32, "epochs": 2, "warmup": 0.2},
    "run": {"checkpoint_minutes": 0.0, "log_every": 5},
}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Graphs are kept in a folder of this module."""
    with pytest.MonkeyPatch.context() as patch:
        # Compiled kernels stay where they are, since compiling takes longer than these tests.
        patch.setattr("magnetite.code.functions.cache_home", lambda: folder)
        folder = tmp_path_factory.mktemp("cache")
        yield folder


@pytest.fixture(scope="module")
def code2(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("code2")
    write_code2(folder, 250, repeats=4)
    return folder


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """A corpus of 24 projects."""
    source = tmp_path_factory.mktemp("packages")
    functions = [text for name, text in own_functions() if text.startswith("def ") and not name.startswith("_")]
    for number in range(24):
        package = source / f"package{number}"
        package.mkdir()
        (package / "__init__.py").write_text("\n\n".join(functions[number::24]))
    folder = tmp_path_factory.mktemp("corpus")
    corpus.write(source, folder, corpus.Settings(shares=(0.6, 0.2, 0.2)), workers=1)
    return folder


def small(data: Path, preset: str = "quick", **tables) -> object:
    changes = {name: {**SMALL.get(name, {}), **tables.get(name, {})} for name in {*SMALL, *tables}}
    changes["task"]["data"] = str(data)
    return configuration("naming", None, preset, changes)


def task(data: Path, **options) -> Naming:
    return Naming(data, **{**SMALL["task"], "subwords": 0, **options})


def words_of_split(data: Path, split: str) -> list[list[str]]:
    return [function.words for function in corpus.load(data).functions(split)]


def test_vocabularies_are_those_of_the_training_functions(packages):
    made = task(packages, words=1000, attributes=10_000, subwords=1000)
    known = made.vocabularies
    assert set(known.words) == {word for words in words_of_split(packages, "train") for word in words}
    graphs = [function.build() for function in corpus.load(packages).functions("train")]
    assert set(known.attributes) == {text for graph in graphs for text in graph.attributes if text is not None}
    parts = {part for text in known.attributes for part in subwords_of(text)}
    assert known.subwords and set(known.subwords) <= parts
    few = task(packages, words=3, attributes=5).vocabularies
    assert (len(few.words), len(few.attributes), few.subwords) == (3, 5, ())
    assert few.words == known.words[:3]


def test_no_attribute_and_an_unknown_one_differ(packages):
    made = task(packages, attributes=5)
    graph = mt.code.build("def f(zyx):\n    return zyx")
    features = made.vocabularies.digraphs([graph]).node_features
    numbers = dict(zip(graph.attributes, features["attribute"].tolist(), strict=True))
    assert (numbers["zyx"], numbers[None]) == (0, 1)


def test_words_of_a_node_are_averaged():
    torch.manual_seed(0)
    embedding = SubwordNodes(6)
    embedding.setup(4)
    numbers = torch.tensor([[2, 0, 0], [0, 0, 0], [3, 5, 5], [1, 2, 0]])
    batch = mt.batch(mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]]).replace(node_features={"subwords": numbers}))
    table = embedding.table.weight
    expected = [table[2], torch.zeros(4), (table[3] + 2 * table[5]) / 3, (table[1] + table[2]) / 2]
    found = embedding(batch)
    torch.testing.assert_close(found, torch.stack(expected))
    weights = torch.randn(4, 4)
    (gradient,) = torch.autograd.grad((found * weights).sum(), table)
    (other,) = torch.autograd.grad((torch.stack(expected) * weights).sum(), table)
    torch.testing.assert_close(gradient, other)


def test_words_of_attributes_are_offered_as_words_of_names(packages):
    made = task(packages, words=1000, copied=True)
    known = made.vocabularies
    word, other = known.words[:2]
    graph = mt.code.build(f"def f({word}_{other}, zyxw):\n    return {word}_{other}, zyxw")
    offered = known.digraphs([graph]).node_features["copied"].tolist()
    numbers = dict(zip(graph.attributes, offered, strict=True))
    assert numbers[f"{word}_{other}"] == [0, 1, -1, -1, -1]
    assert numbers["zyxw"] == numbers[None] == [-1] * 5
    assert made.head("mean", 0).copied == "copied"
    assert "copied" not in task(packages).examples("test").graphs.node_features


def test_features_are_those_of_the_graphs_and_small(packages):
    made = task(packages, max_nodes=1000)
    examples = made.examples("test")
    functions = list(corpus.load(packages).functions("test"))
    expected = mt.code.to_digraphs([canonical(each.build()) for each in functions], made.vocabularies.attribute_numbers)
    graphs = examples.graphs
    assert torch.equal(graphs.edges.long(), expected.edges.long())
    for name in ("node_type", "attribute"):
        assert torch.equal(graphs.node_features[name].long(), expected.node_features[name].long())
    assert torch.equal(graphs.node_features["depth"].long(), expected.node_features["depth"].long().clamp(max=20))
    for name in ("edge_type", "edge_name"):
        assert torch.equal(graphs.edge_features[name].long(), expected.edge_features[name].long())
    torch.testing.assert_close(graphs.edge_weight, expected.edge_weight.float())
    assert all(tensor.itemsize <= 2 for tensor in (graphs.edges, *graphs.node_features.values()))


def test_targets_are_whole_names_and_only_the_first_words_are_trained(packages):
    made = task(packages, words=20, length=2, max_nodes=1000)
    known, examples = made.vocabularies, made.examples("train")
    features = examples.graphs.graph_features
    for row, words in enumerate(words_of_split(packages, "train")):
        numbers = [known.word_numbers.get(word, known.unknown) for word in words[:2]]
        assert features["words"][row].tolist() == (numbers + [known.end] * 2)[:2]
        assert features["count"][row] == len(set(words))
        reachable = {known.word_numbers[word] for word in words if word in known.word_numbers}
        assert set(features["names"][row].tolist()) - {-1} == reachable


def test_graphs_above_the_limit_are_empty_answers_and_not_trained_on(packages, capsys):
    sizes = {split: [len(each.build()) for each in corpus.load(packages).functions(split)] for split in SPLITS}
    limit = sorted(sizes["test"])[len(sizes["test"]) // 2]
    made = task(packages, max_nodes=limit)
    assert made.split("train").count == sum(size <= limit for size in sizes["train"])
    assert made.split("test").count == len(sizes["test"])
    examples = made.examples("test")
    answered = examples.graphs.graph_features["answered"]
    assert int(answered.sum()) == int(made.weights(examples).sum()) == sum(size <= limit for size in sizes["test"])
    reported = capsys.readouterr().err
    assert f"train: {made.split('train').count} functions; " in reported
    assert "are left out" in reported
    assert f"test: {int(answered.sum())} functions; {int((answered == 0).sum())} are counted as empty" in reported
    assert f"0 of them without a graph, the others with more than {limit} nodes" in reported
    # A model that is always right has the F1 of the functions that it answers.
    batch = mt.batch(examples.graphs)
    logits = torch.nn.functional.one_hot(batch.graph_features["words"].long(), made.vocabularies.outputs) * 50.0
    metric = made.metric()
    metric.update(logits, batch)
    scores = WordScores()
    table = made.answer_table("test", logits.argmax(-1))
    scores.update(table["predicted"], table["words"])
    assert {name: metric.compute()[name] for name in scores.compute()} == pytest.approx(scores.compute())
    assert metric.compute()["f1"] == pytest.approx(table["f1"].mean())
    assert (table["f1"][table["nodes"] == 0] == 0).all()
    assert float(made.loss(logits, batch)) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("preset", ["sat", "dataflow-magnetic", "dataflow-walks", "dataflow-multi-q"])
def test_batches_of_functions_without_a_graph_are_evaluated(packages, tmp_path, preset):
    known = {"k": 3} if preset in ("dataflow-magnetic", "dataflow-multi-q") else {}
    changes = {"task": {**SMALL["task"], "data": str(packages), "max_nodes": 50}, "encoding": known}
    changes |= {"model": {"width": 32, "layers": 1}, "data": {"tokens": 16}, "run": {"precision": "32-true"}}
    run = Trainer(configuration("naming", None, preset, changes), tmp_path, runs.Machine().fabric("32-true"))
    data = run.evaluation_data("test")
    answered = data.examples.graphs.graph_features["answered"]
    assert any(int(answered[ids].sum()) == 0 for ids in data.plan)
    assert 0 <= run.evaluate(data)["f1"] <= int(answered.sum()) / len(answered)


def test_all_offsets_are_scored_as_the_head_would_answer():
    torch.manual_seed(0)
    known = Vocabularies("dataflow", tuple("abcdef"), ())
    count = 40
    logits = torch.randn(count, 5, known.outputs) * 2
    names = [tuple("abcdefghij"[i] for i in torch.randperm(10)[: 1 + number % 7]) for number in range(count)]
    numbers = [[known.word_numbers[word] for word in name if word in known.word_numbers] for name in names]
    features = {
        "answered": torch.tensor([number % 5 > 0 for number in range(count)], dtype=torch.int8),
        "names": torch.tensor([each + [-1] * (7 - len(each)) for each in numbers]),
        "count": torch.tensor([len(name) for name in names]),
    }
    graphs = mt.Digraphs.from_edges([np.array([[0], [1]])] * count).replace(graph_features=features)
    metric = NameScores(known.unknown)
    metric.update(logits, mt.batch(graphs))
    assert len(metric.grid) == len(UNKNOWN_OFFSETS) * len(END_OFFSETS)
    best = 0.0
    for number, (unknown, end) in enumerate(metric.grid.tolist()):
        head = SequenceHead(known.outputs, lowered={known.unknown: unknown, known.end: end})
        answers = head.lowered(logits).argmax(-1).tolist()
        expected = WordScores()
        predicted = [
            known.decode(each) if held else [] for each, held in zip(answers, features["answered"], strict=True)
        ]
        expected.update(predicted, names)
        metric.offsets = metric.grid[number]
        found = metric.compute()
        assert (found["offset_unknown"], found["offset_end"]) == pytest.approx((unknown, end))
        assert {name: found[name] for name in expected.compute()} == pytest.approx(expected.compute())
        best = max(best, found["f1_dropped"])
    metric.offsets = metric.best()
    assert metric.compute()["f1_dropped"] == best


def test_parallel_edges_count_once_in_the_laplacian(packages):
    graphs = task(packages).examples("train").graphs
    parallel = next(graph for graph in graphs if len(set(map(tuple, graph.edges.T.tolist()))) < graph.num_edges)
    simple = mt.Digraphs.from_edges(
        np.array(sorted(set(map(tuple, parallel.edges.T.tolist())))).T, num_nodes=parallel.num_nodes
    )
    dense = [torch.from_numpy(each.to_scipy()[0].toarray()).double() for each in (parallel, simple)]
    found, expected = (magnetic_laplacian(each, q=0.1) for each in dense)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    encode = mt.MagneticLaplacian(k=6, q=mt.Relative(0.25))
    torch.testing.assert_close(encode(parallel).values, encode(simple).values, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("kind", "directed"), [("ast", False), ("ast-directed", True), ("dataflow", True)])
def test_only_graphs_without_inverse_edges_have_a_magnetic_phase(packages, kind, directed):
    graphs = task(packages, graphs=kind).examples("test").graphs.select(slice(0, 5))
    vectors = mt.MagneticLaplacian(k=4, q=mt.Relative(0.25))(graphs).vectors
    assert (float(vectors.imag.abs().max()) > 0.01) == directed


REFUSED = {
    "nothing": (lambda path: path / "none", {}, "does not exist: give a corpus that `magnetite data functions` wrote"),
    "another folder": (lambda path: path, {}, "has neither corpus.json nor raw/graph-label.csv.gz: give a corpus"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_folders_are_refused_in_one_line(case, tmp_path):
    make, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message) as refused:
        Naming(make(tmp_path), **options)
    assert "\n" not in str(refused.value)


def test_other_data_are_refused(packages):
    made = task(packages)
    assert replace(made, fingerprint=made.fingerprint) == made
    with pytest.raises(ValueError, match="are not those of the run"):
        task(packages, fingerprint="0" * 16)
    with pytest.raises(ValueError, match="is a corpus: try ast"):
        task(packages, graphs="ogb")


def test_numbered_graphs_are_kept_and_made_again_if_damaged(packages, monkeypatch, capsys):
    made = task(packages, max_nodes=50, words=17)
    first, known = made.examples("valid"), made.vocabularies
    reported = capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(Naming, "_made", None)
        patch.setattr(Naming, "_counted", None)
        again = task(packages, max_nodes=50, words=17)
        found = again.examples("valid")
        assert again.vocabularies == known
    assert capsys.readouterr().err == reported
    for name, tensor in first.tensors().items():
        assert torch.equal(found.tensors()[name], tensor)
    path = made._folder / "valid.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    repaired = task(packages, max_nodes=50, words=17).examples("valid")
    assert torch.equal(repaired.graphs.edges, first.graphs.edges)


def test_graphs_are_built_once_and_an_interrupted_build_continues(packages, cache, monkeypatch):
    monkeypatch.setattr("magnetite.code.functions.BLOCK", 16)
    functions = Functions(packages, "ast")
    built = []

    def interrupted(count, total):
        built.append(count)
        if len(built) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        functions.write(progress=interrupted)
    functions.write(progress=lambda count, total: built.append(count))
    assert sum(built) == sum(functions.counts.values())
    Functions(packages, "ast").write(progress=lambda count, total: built.append(count))
    assert sum(built) == sum(functions.counts.values())
    blocks = list(functions.blocks("train"))
    assert [list(words) for block in blocks for words in block.words] == words_of_split(packages, "train")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_row_takes_a_step(packages, tmp_path, preset):
    task_options = {"base": {"graphs": "ast-directed"}, "tokens": {"max_nodes": 512}}.get(preset, {})
    known = {"k": 3} if PRESETS[preset].get("positions", "") not in ("none", "walks") else {}
    without = ("base", "dataflow", "dataflow-walks", "tokens", "small")
    known = {} if preset in without or "sat" in preset else known
    changes = {"task": {**SMALL["task"], **task_options, "data": str(packages)}, "encoding": known}
    changes["model"] = {"width": 32} if preset == "small" else {"width": 32, "layers": 1}
    changes["optim"], changes["run"] = {"batch": 16, "epochs": 0.01}, {"precision": "32-true"}
    run = Trainer(configuration("naming", None, preset, changes), tmp_path, runs.Machine().fabric("32-true"))
    run.run()
    assert run.progress.step == 1
    figures = run.evaluate(run.evaluation_data("test"))
    assert 0 <= figures["f1"] <= figures["f1_dropped"] <= 1
    if preset.startswith("sat-") or preset == "sat":
        assert figures["offset_unknown"] == figures["offset_end"] == 0


def test_code2_from_its_files_to_scores(code2, tmp_path, monkeypatch):
    """1,000 functions in OGB's layout: training, a stop and the same bytes after it, evaluation, predictions."""
    config = small(code2, task={"graphs": "ogb-directed"})
    runs.train(config, tmp_path / "whole", runs.Machine())

    def stop(self, block, step, original=Trainer.step):
        original(self, block, step)
        if self.progress.step == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", stop)
        with pytest.raises(KeyboardInterrupt):
            runs.train(config, tmp_path / "parts", runs.Machine())
    again = runs.resumed_config(tmp_path / "parts", "naming", "none")
    runs.train(again, tmp_path / "parts", runs.Machine(), resume=True)
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")
    assert logged(tmp_path / "parts", "valid") == logged(tmp_path / "whole", "valid")
    test = runs.read_result(tmp_path / "whole")["figures"]["test"]
    table = pq.read_table(tmp_path / "whole" / runs.PREDICTIONS).to_pydict()
    assert len(table["id"]) == 100
    assert np.mean(table["f1"]) == pytest.approx(test["f1"])
    assert np.mean(table["f1_dropped"]) == pytest.approx(test["f1_dropped"])
    runs.evaluate(tmp_path / "whole", "test", runs.Machine())
    found = json.loads((tmp_path / "whole" / "evaluation-test.json").read_text())["result"]["figures"]["test"]
    assert found == pytest.approx(test)
    with pytest.raises(ValueError, match="cannot name other functions: train with graphs=ast"):
        Namer.load(tmp_path / "whole").propose(["def f(): pass"])


def test_functions_that_do_not_parse_are_empty_answers(code2):
    made = task(code2, max_nodes=1000)
    rows = made.answer_table("test", torch.zeros(made.split("test").count, 5, dtype=torch.long))
    last = rows["words"].index(["show", "all"])
    assert (rows["predicted"][last], rows["nodes"][last]) == ([], 0)


def test_a_namer_of_a_run(packages, tmp_path):
    run = mt.train(
        Naming(packages, **SMALL["task"]),
        preset="quick",
        out=tmp_path / "run",
        epochs=0.5,
        device="cpu",
        settings={
            "model.width": 32,
            "model.layers": 1,
            "optim.batch": 16,
            "encoding.k": 3,
        },  # quick sets max_nodes to 300
    )
    namer = Namer.load(tmp_path / "run")
    table = pq.read_table(tmp_path / "run" / runs.PREDICTIONS).to_pydict()
    functions = list(corpus.load(packages).functions("test"))
    graphs = [function.build() for function in functions]
    expected = [predicted if nodes else [] for predicted, nodes in zip(table["predicted"], table["nodes"], strict=True)]
    assert namer.answers(graphs) == expected
    assert table["project"] == [function.project for function in functions]
    assert torch.equal(namer.model.head.offsets, run.model.head.offsets)
    source = "def anything(xs):\n    return [x + 1 for x in xs]"
    proposals = namer.propose([source, graphs[0]], top=3)
    assert [len(each) for each in proposals] == [3, 3 if len(graphs[0]) <= 300 else 0]
    namer.save(tmp_path / "kept")
    (kept,) = Namer.load(tmp_path / "kept").propose([source], top=3)
    assert [words for words, _ in kept] == [words for words, _ in proposals[0]]
    assert [each for _, each in kept] == pytest.approx([each for _, each in proposals[0]], rel=1e-4)
    with pytest.raises(TypeError, match="give a list of functions"):
        namer.propose(source)


class SameLogits(mt.nn.GraphModel):
    """Gives the same logits for every graph."""

    def __init__(self, head: SequenceHead, logits: torch.Tensor):
        super().__init__(8, head)
        self.logits = logits

    def forward(self, graphs: mt.Digraphs) -> torch.Tensor:
        return self.logits.expand(len(graphs), -1, -1)


def test_proposals_are_the_most_probable_lists_of_different_words():
    torch.manual_seed(0)
    known = Vocabularies("dataflow", ("a", "b"), (), length=3, max_nodes=20)
    logits = torch.randn(1, 3, known.outputs)
    namer = Namer(SameLogits(SequenceHead(known.outputs, 3), logits), known)
    probabilities: dict[tuple[str, ...], float] = {}
    each = logits[0].softmax(-1).tolist()
    for numbers in product(range(known.outputs), repeat=3):
        chosen = numbers[: numbers.index(known.end) + 1] if known.end in numbers else numbers
        if len(chosen) < 3 and numbers[len(chosen) :] != (known.end,) * (3 - len(chosen)):
            continue  # nothing follows the end; each list once
        probability, said = 1.0, []
        for position, word in enumerate(chosen):
            if word in said:
                probability = 0.0
            probability *= each[position][word] / (1 - sum(each[position][other] for other in said))
            if word != known.unknown:
                said.append(word)
        words = tuple(word for word in known.decode(list(chosen)) if word != UNKNOWN)
        probabilities[words] = probabilities.get(words, 0.0) + probability
    assert sum(probabilities.values()) == pytest.approx(1)
    proposed = {words: value for words, value in probabilities.items() if words and value}
    (found,) = namer.propose(["def f(x): return x"], top=100)
    assert {tuple(words): probability for words, probability in found} == pytest.approx(proposed)
    assert [probability for _, probability in found] == sorted((each for _, each in found), reverse=True)
    large = "def f(x):\n" + "    x = x + 1\n" * 20
    assert namer.propose([large]) == [[]]
