"""Links: edges of a graph, held out and predicted from the others.

The edges of every graph are split into training, validation and test edges. Messages and encodings see training edges
only, in every split. The training edges are divided into folds, and each fold is asked about in a copy of the graph
that has the other folds: an edge that is asked about is never among the edges that the model sees. So every training
edge both carries messages and is learned from, which a single held-out share of them would not give.

All edges between two nodes, in either direction, belong to the same split and fold. Otherwise the reverse of a test
edge could be among the edges that the model sees, and give the answer away.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from magnetite.batching import QueryPairs
from magnetite.graphs import Digraphs
from magnetite.io.tables import Table
from magnetite.packed import starts
from magnetite.tasks.base import SPLITS
from magnetite.tasks.datasets import DataSet, data_set
from magnetite.tasks.labelled import GRAPH, nodes_in_table
from magnetite.tasks.targets import as_ids, chosen_split, drawn_masks, given_masks, part_of

TARGETS = ("existence", "direction")
"""What is predicted: whether there is an edge from u to v, or which way the edge between u and v points."""

NEGATIVES = ("random", "reversed", "both")
"""Node pairs without an edge, which the edges are told from."""

SPLIT = "links"
"""Name of the split of the data set that `split_links` returns."""

FOLDS = 5

TRIES = 20
"""Number of times that a random pair is drawn again if it is an edge; then the pairs without an edge are listed."""

Numbers = Int[np.ndarray, "_"]
Mask = Bool[np.ndarray, "_"]


def split_links(
    data: Any,
    target: str = "existence",
    negatives: str | None = None,
    splits: Any = None,
    folds: int = FOLDS,
    reverse_in_training: bool = False,
    seed: int = 0,
) -> DataSet:
    """Graphs with the edges that a model may see, and the node pairs that it is asked about, with labels 1 and 0.

    The graphs of the result are copies of the given ones: one for each fold of the training edges, which lacks the
    edges of the fold, and one for validation and test, with all training edges. Weights and features stay with their
    edges.
    `pairs` has the query pairs, and `splits["links"]` says which of them belong to which split. If whole graphs are
    split, every graph is divided into folds, and validation and test have graphs that training has not.

    Parallel edges are asked about once. Self-loops are never asked about, and training keeps them. So it is with
    edges that exist in both directions if the target is the direction.

    Args:
        data: `Digraphs`, or other data as in `Supervised`.
        target: existence (is there an edge from u to v) or direction (of two nodes that have an edge in one direction
            only, is it from u to v; half of the edges are asked about in reverse).
        negatives: Pairs with label 0 if the target is existence: random (pairs of different nodes without an edge in
            either direction, as many as edges), reversed (the reverse of every edge, if it is not an edge) or both. By
            default random.
        splits: Fractions of training, validation and test edges; the name of a split of the data; or, by split, a mask
            of edges, ids of edges (if there are several graphs, of graphs), a list of edges `[2, m]` or `[m, 2]`, or
            OGB's `{"edge": [m, 2], "edge_neg": [m, 2]}`. By default the split of the data if they have one,
            otherwise 0.8, 0.1 and 0.1.
        folds: Number of folds of the training edges, at least 2.
        reverse_in_training: Whether the reverse of an edge of another split may be a training edge, and the reverse of
            an edge a random negative (if these are the only negatives).
        seed: Seed of splits, folds and negatives.

    >>> graphs = Digraphs.from_edges(np.array([np.arange(20), (np.arange(20) + 3) % 20]))
    >>> links = split_links(graphs, splits=(0.6, 0.2, 0.2), folds=2)
    >>> links.graphs.edge_ptr.diff().tolist(), {name: int(mask.sum()) for name, mask in links.splits["links"].items()}
    ([6, 6, 12], {'train': 24, 'valid': 8, 'test': 8})
    """
    negatives = check_options(target, negatives, folds)
    data = data_set(data)
    edges = _Edges.of(data.graphs)
    queried = ~edges.loops & (True if target == "existence" else ~edges.both_ways)
    if not queried.any():
        kept = "all are self-loops" if target == "existence" else "all are self-loops or exist in both directions"
        count = len(edges.source)
        raise ValueError(f"the data have no edge to predict the {target} of ({count} edges; {kept})")
    found = _split(data, edges, queried, splits, reverse_in_training, seed)
    queried &= found.split >= 0
    dealt = queried & (found.by_graph | (found.split == 0))
    fold = _folds(edges.unit(reverse_in_training), edges.graph, dealt, folds, seed)
    views = _Views(found, np.where(dealt, fold, -1), folds, len(data.graphs))
    if target == "direction":
        pairs = _direction(edges, queried, views, seed)
    else:
        pairs = _existence(edges, queried, views, negatives, found.negatives, reverse_in_training, seed)
    _check_labels(pairs, target, negatives)
    return _data_set(data, pairs, views)


def check_options(target: str, negatives: str | None, folds: int) -> str:
    """The kind of negatives, if the options fit together."""
    for name, value, known in (("target", target, TARGETS), ("negatives", negatives, (None, *NEGATIVES))):
        if value not in known:
            listed = ", ".join(each for each in known if each)
            raise ValueError(f"{name} of links must be one of {listed}, got {value!r}")
    if folds < 2:
        raise ValueError(f"folds must be at least 2, so that an edge is predicted from other edges, got {folds}")
    if target == "direction" and negatives not in (None, "reversed"):
        raise ValueError(f"the direction is told from the reverse, so negatives are not {negatives}: leave them out")
    return negatives or ("reversed" if target == "direction" else "random")


@dataclass(frozen=True)
class _Edges:
    """Edges as numbers: `code` is one number per ordered node pair of each graph."""

    graph: Numbers
    source: Numbers
    target: Numbers
    sizes: Numbers
    offset: Numbers

    @classmethod
    def of(cls, graphs: Digraphs) -> "_Edges":
        sizes = graphs.sizes.cpu().numpy().astype(np.int64)
        source, target = graphs.edges.cpu().numpy().astype(np.int64)
        return cls(graphs.edge_graph.cpu().numpy(), source, target, sizes, np.cumsum(sizes**2) - sizes**2)

    def code_of(self, graph: Numbers, source: Numbers, target: Numbers) -> Numbers:
        return self.offset[graph] + source * self.sizes[graph] + target

    @cached_property
    def code(self) -> Numbers:
        return self.code_of(self.graph, self.source, self.target)

    @cached_property
    def known(self) -> Numbers:
        """The codes of all edges, sorted."""
        return np.unique(self.code)

    @cached_property
    def reverse(self) -> Numbers:
        return self.code_of(self.graph, self.target, self.source)

    @cached_property
    def loops(self) -> Mask:
        return self.source == self.target

    @cached_property
    def both_ways(self) -> Mask:
        """Which edges have a reverse, or are self-loops."""
        return _among(self.reverse, self.known)

    def unit(self, ordered: bool) -> Numbers:
        """What is split: the two nodes of an edge, in their order or in any order."""
        return self.code if ordered else np.minimum(self.code, self.reverse)

    def ends(self, graph: Numbers, code: Numbers) -> tuple[Numbers, Numbers]:
        """Source and target of codes."""
        source, target = np.divmod(code - self.offset[graph], self.sizes[graph])
        return source, target


@dataclass(frozen=True)
class _Split:
    """The split of each edge, −1 for none; whether whole graphs are split; and negatives that are given."""

    split: Numbers
    by_graph: bool
    negatives: Mapping[str, Int[np.ndarray, "2 pairs"]]


def _split(data: DataSet, edges: _Edges, queried: Mask, splits: Any, reverse: bool, seed: int) -> _Split:
    graphs = data.graphs
    chosen = chosen_split(data, graphs.edge_features, splits)
    if isinstance(chosen, tuple):
        return _Split(_drawn(chosen, edges, queried, reverse, seed), False, {})
    lists = {split: _edge_list(part_of(chosen, split), split) for split in SPLITS}
    # [2, 2] may have a pair per row or per column: it is read as the other splits are.
    by_row = any(listed is not None and listed.shape[0] != 2 for listed in lists.values())
    pairs = {
        split: None
        if listed is None
        else node_pairs(listed, graphs, f"the {split} split", by_row or isinstance(part_of(chosen, split), Mapping))
        for split, listed in lists.items()
    }
    masks = {
        split: part_of(chosen, split) if listed is None else _mask_of(listed, edges, split)
        for split, listed in pairs.items()
    }
    by_graph = len(graphs) > 1 and all(_of_graphs(as_ids(mask, name), graphs) for name, mask in masks.items())
    split = np.full(len(queried), -1)
    for name, mask in given_masks(masks, torch.from_numpy(edges.graph), len(graphs), "edge").items():
        split[mask.numpy()] = SPLITS.index(name)
    for name in SPLITS:
        if not (queried & (split == SPLITS.index(name))).any():
            raise ValueError(f"the {name} split has no edge to predict: give every split at least one")
    _check_parallel(edges, split)
    if not (by_graph or reverse):
        held_out = edges.code[split > 0]
        split[(split == 0) & _among(edges.reverse, np.unique(held_out))] = -1
    negatives = {name: _negatives(part_of(chosen, name), name, edges, graphs) for name in SPLITS}
    return _Split(split, by_graph, {name: pairs for name, pairs in negatives.items() if pairs is not None})


def _drawn(fractions: tuple[Any, ...], edges: _Edges, queried: Mask, reverse: bool, seed: int) -> Numbers:
    """Random splits of the edges that are asked about, graph by graph; training has the others."""
    _, first, unit = np.unique(edges.unit(reverse)[queried], return_index=True, return_inverse=True)
    if len(first) < len(SPLITS):
        raise ValueError(f"{len(first)} linked node pairs cannot be split into three parts: give more edges")
    graph = torch.from_numpy(edges.graph[queried][first])
    masks = drawn_masks(fractions, torch.zeros_like(graph), 1, graph, seed)
    split = np.zeros(len(queried), dtype=np.int64)
    numbers = np.zeros(len(first), dtype=np.int64)
    for name, mask in masks.items():
        if not bool(mask.any()):
            raise ValueError(f"the {name} split has no edge: every graph keeps one for training, so give more edges")
        numbers[mask.numpy()] = SPLITS.index(name)
    split[queried] = numbers[unit]
    return split


def _edge_list(given: Any, split: str) -> Tensor | None:
    """Node pairs as `[2, m]` or `[m, 2]`, if a split is given so."""
    listed = given["edge"] if isinstance(given, Mapping) and "edge" in given else given
    if isinstance(given, Mapping) and listed is given:
        raise ValueError(f"the {split} split has {', '.join(map(str, given))}, expected 'edge' with a list of edges")
    numbers = as_ids(listed, split)
    return None if numbers.ndim != 2 or numbers.dtype == torch.bool else numbers


def node_pairs(given: Any, graphs: Digraphs, where: str, by_row: bool = False) -> Int[np.ndarray, "2 pairs"]:
    """Node pairs of a single graph as `[2, m]`, checked.

    Args:
        given: Source and target of each pair, `[2, m]` or `[m, 2]`.
        graphs: The graph.
        where: What is given, for messages.
        by_row: Whether `[2, 2]` has one pair per row.
    """
    numbers = as_ids(given, where)
    if len(graphs) > 1:
        raise ValueError(
            f"{where} is a list of node pairs, but there are {len(graphs)} graphs: give masks, or "
            "magnetite.batching.QueryPairs"
        )
    if numbers.ndim != 2 or 2 not in numbers.shape or numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise ValueError(
            f"{where} must be a list of node pairs [2, m], got {numbers.dtype} of shape {tuple(numbers.shape)}"
        )
    if numbers.shape[0] != 2 or (by_row and numbers.shape[1] == 2):
        numbers = numbers.T
    pairs = numbers.long().numpy()
    wrong = ((pairs < 0) | (pairs >= graphs.num_nodes)).any(0)
    if wrong.any():
        source, target = pairs[:, np.flatnonzero(wrong)[0]]
        raise ValueError(f"{where} has ({source}, {target}), but the graph has nodes 0 to {graphs.num_nodes - 1}")
    return pairs


def pairs_in_table(
    table: Table, graphs: Digraphs, names: Sequence[str], files: Sequence[str] | None = None
) -> QueryPairs:
    """The node pairs in a table, in the order of its rows; an error names the line of a node that does not exist.

    Args:
        table: A table with columns `source` and `target`, and `graph` with files or numbers, if there are several.
        graphs: The graphs.
        names: The name of each node.
        files: The file of each graph, if it has one.
    """
    numbered = GRAPH in table.columns and all(text.isdecimal() for text in table.texts(GRAPH))
    graph, ends = nodes_in_table(table, graphs, names, None if numbered else files)
    wrong = np.flatnonzero(np.diff(graph) < 0)
    if len(wrong):
        raise ValueError(f"{table.where(int(wrong[0]) + 1)}: sort the rows by graph")
    counts = torch.bincount(torch.from_numpy(graph), minlength=len(graphs))
    return QueryPairs(
        node_ptr=graphs.node_ptr,
        query_ptr=starts(counts),
        nodes=torch.from_numpy(ends - graphs.node_ptr.numpy()[graph]),
        labels=torch.zeros(len(graph), dtype=torch.int16),
    )


def _mask_of(pairs: Int[np.ndarray, "2 pairs"], edges: _Edges, split: str) -> Bool[Tensor, " rows"]:
    """The edges in a list."""
    codes = edges.code_of(np.zeros_like(pairs[0]), *pairs)
    missing = np.flatnonzero(~_among(codes, edges.known))
    if len(missing):
        source, target = pairs[:, missing[0]]
        raise ValueError(
            f"edge ({source}, {target}) of the {split} split is not in the graph: give the graph with the edges of all "
            "splits; a model sees those of training only"
        )
    return torch.from_numpy(_among(edges.code, np.unique(codes)))


def _of_graphs(given: Tensor, graphs: Digraphs) -> bool:
    """Whether ids or a mask are those of graphs, not of edges."""
    return given.dtype != torch.bool or (given.shape == (len(graphs),) and len(graphs) != graphs.num_edges)


def _check_parallel(edges: _Edges, split: Numbers) -> None:
    order = np.lexsort((split, edges.code))
    code, number = edges.code[order], split[order]
    wrong = np.flatnonzero((code[1:] == code[:-1]) & (number[1:] != number[:-1]) & (number[:-1] >= 0))
    if len(wrong):
        edge = order[wrong[0]]
        names = " and ".join(SPLITS[number[row]] for row in (wrong[0], wrong[0] + 1))
        raise ValueError(
            f"edge ({edges.source[edge]}, {edges.target[edge]}) is in {names}: give parallel edges the same split"
        )


def _negatives(given: Any, split: str, edges: _Edges, graphs: Digraphs) -> Int[np.ndarray, "2 pairs"] | None:
    """The pairs without an edge that are given for a split."""
    if not isinstance(given, Mapping) or "edge_neg" not in given:
        return None
    pairs = node_pairs(given["edge_neg"], graphs, f"edge_neg of the {split} split", by_row=True)
    wrong = _among(edges.code_of(np.zeros_like(pairs[0]), *pairs), edges.known)
    if wrong.any():
        source, target = pairs[:, np.flatnonzero(wrong)[0]]
        raise ValueError(f"edge_neg of the {split} split has ({source}, {target}), which is an edge: leave it out")
    return pairs


def _folds(unit: Numbers, graph: Numbers, dealt: Mask, folds: int, seed: int) -> Numbers:
    """The fold of each edge: those of every graph are dealt out in random order, and the others have any."""
    _, first, inverse = np.unique(unit, return_index=True, return_inverse=True)
    order = np.random.default_rng([seed, 1]).permutation(len(first))
    order = order[np.lexsort((~dealt[first][order], graph[first][order]))]  # the others last, so that folds are equal
    sorted_graph = graph[first][order]
    begin = np.searchsorted(sorted_graph, sorted_graph)
    fold = np.empty(len(first), dtype=np.int64)
    fold[order] = (np.arange(len(first)) - begin) % folds
    return fold[inverse]


@dataclass(frozen=True)
class _Views:
    """The copies of the graphs: copy `f · graphs + g` of graph `g` lacks fold `f`; the last has all training edges."""

    found: _Split
    fold: Numbers
    folds: int
    graphs: int

    def view(self, edge: Numbers) -> Numbers:
        """The copy in which an edge is asked about."""
        return np.where(self.fold[edge] >= 0, self.fold[edge], self.folds)

    def visible(self, view: int) -> Mask:
        """The edges that a model sees in a copy."""
        known = self.found.split >= 0 if self.found.by_graph else self.found.split == 0
        return known & (self.fold != view)


@dataclass(frozen=True)
class _Pairs:
    """Query pairs in rows: copy of the graph, graph, split, source, target and label."""

    view: Numbers
    graph: Numbers
    split: Numbers
    source: Numbers
    target: Numbers
    label: Numbers

    @classmethod
    def concat(cls, parts: Iterable["_Pairs"]) -> "_Pairs":
        parts = list(parts)
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))


def _positives(edges: _Edges, queried: Mask, views: _Views) -> Numbers:
    """One edge of each node pair that is asked about, sorted by copy, graph and nodes."""
    numbers = np.flatnonzero(queried)
    numbers = numbers[np.unique(edges.code[numbers], return_index=True)[1]]
    return numbers[np.argsort(views.found.split[numbers] * (views.folds + 1) + views.view(numbers), kind="stable")]


def _rows(edges: _Edges, views: _Views, edge: Numbers, source: Numbers, target: Numbers, label: Numbers) -> _Pairs:
    """Query pairs in the place of these edges."""
    return _Pairs(views.view(edge), edges.graph[edge], views.found.split[edge], source, target, label)


def _direction(edges: _Edges, queried: Mask, views: _Views, seed: int) -> _Pairs:
    """Every other edge, in random order, is asked about in reverse."""
    edge = _positives(edges, queried, views)
    order = np.random.default_rng([seed, 2]).permutation(len(edge))
    place = views.found.split[edge] * (views.folds + 1) + views.view(edge)
    order = order[np.argsort(place[order], kind="stable")]
    label = np.empty(len(edge), dtype=np.int64)
    label[order] = np.arange(len(edge)) % 2
    source, target = edges.source[edge], edges.target[edge]
    forward = label == 1
    return _rows(edges, views, edge, np.where(forward, source, target), np.where(forward, target, source), label)


def _existence(
    edges: _Edges,
    queried: Mask,
    views: _Views,
    negatives: str,
    given: Mapping[str, Int[np.ndarray, "2 pairs"]],
    reverse: bool,
    seed: int,
) -> _Pairs:
    """Edges, and pairs without an edge."""
    edge = _positives(edges, queried, views)
    parts = [_rows(edges, views, edge, edges.source[edge], edges.target[edge], np.ones_like(edge))]
    drawn = edge[~np.isin(views.found.split[edge], [SPLITS.index(name) for name in given])]
    if negatives in ("reversed", "both"):
        one_way = drawn[~edges.both_ways[drawn]]
        parts.append(_rows(edges, views, one_way, edges.target[one_way], edges.source[one_way], np.zeros_like(one_way)))
    if negatives in ("random", "both"):
        # The reverse of an edge may be one that the model sees, which edges that are asked about never have; and with
        # both kinds of negatives it would be asked about twice.
        unlinked = reverse and negatives == "random"
        linked = edges.code if unlinked else np.concatenate([edges.code, edges.reverse])
        code = _random_codes(edges, edges.graph[drawn], np.unique(linked), seed)
        drawn, code = drawn[code >= 0], code[code >= 0]
        parts.append(_rows(edges, views, drawn, *edges.ends(edges.graph[drawn], code), np.zeros_like(drawn)))
    for name, (source, target) in given.items():
        split = np.full_like(source, SPLITS.index(name))
        view = np.arange(len(source)) % views.folds if name == "train" else np.full_like(source, views.folds)
        zeros = np.zeros_like(source)
        parts.append(_Pairs(view, zeros, split, source, target, zeros))
    return _Pairs.concat(parts)


def _random_codes(edges: _Edges, graph: Numbers, known: Numbers, seed: int) -> Numbers:
    """For each entry, a random pair of different nodes of its graph that is not known, or −1; no pair twice."""
    random = np.random.default_rng([seed, 3])
    codes = np.full(len(graph), -1)
    waiting = np.flatnonzero(edges.sizes[graph] > 1)
    for _ in range(TRIES):
        if not len(waiting):
            return codes
        size = edges.sizes[graph[waiting]]
        source = random.integers(0, size)
        target = random.integers(0, size - 1)
        code = edges.code_of(graph[waiting], source, target + (target >= source))
        new = np.zeros(len(code), dtype=bool)
        new[_first_of_each(code, ~_among(code, known))] = True
        codes[waiting[new]] = code[new]
        known = np.sort(np.concatenate([known, code[new]]))
        waiting = waiting[~new]
    for number in np.unique(graph[waiting]):
        size, begin = int(edges.sizes[number]), int(edges.offset[number])
        free = np.ones(size * size, dtype=bool)
        free[:: size + 1] = False
        inside = known[np.searchsorted(known, begin) : np.searchsorted(known, begin + size * size)]
        free[inside - begin] = False
        left = random.permutation(np.flatnonzero(free)) + begin
        rows = waiting[graph[waiting] == number][: len(left)]
        codes[rows] = left[: len(rows)]
    return codes


def _among(codes: Numbers, known: Numbers) -> Mask:
    """Which codes are in a sorted list; `np.isin` would sort both each time."""
    if not len(known):
        return np.zeros(len(codes), dtype=bool)
    return known[np.minimum(np.searchsorted(known, codes), len(known) - 1)] == codes


def _first_of_each(code: Numbers, chosen: Mask) -> Numbers:
    """The first of the chosen entries with each code."""
    places = np.flatnonzero(chosen)
    return places[np.unique(code[places], return_index=True)[1]]


def _check_labels(pairs: _Pairs, target: str, negatives: str) -> None:
    for number, split in enumerate(SPLITS):
        labels = pairs.label[pairs.split == number]
        if not len(labels) or (target == "existence" and not labels.any()):
            raise ValueError(f"the {split} split has no edge to predict: give every split at least one")
        if target == "existence" and labels.all():
            why = "every edge also exists in reverse" if negatives == "reversed" else "almost all nodes are linked"
            raise ValueError(f"the {split} split has no {negatives} negatives: {why}; choose others, or other splits")


def _data_set(data: DataSet, pairs: _Pairs, views: _Views) -> DataSet:
    """The copies that are asked about, with their query pairs."""
    place = pairs.view * views.graphs + pairs.graph
    order = np.argsort(place, kind="stable")
    used, counts = np.unique(place, return_counts=True)
    node = torch.from_numpy(np.stack([pairs.source, pairs.target])[:, order])
    copies = []
    for view in np.unique(pairs.view).tolist():
        chosen = torch.from_numpy(used[used // views.graphs == view] % views.graphs)
        visible = with_edges(data.graphs, torch.from_numpy(views.visible(view)))
        copies.append(visible if len(chosen) == views.graphs else visible.select(chosen))
    graphs = Digraphs.concat(copies)
    query = QueryPairs(
        node_ptr=graphs.node_ptr,
        query_ptr=starts(torch.from_numpy(counts)),
        nodes=node,
        labels=torch.from_numpy(pairs.label[order].astype(np.int16)),
    )
    split = torch.from_numpy(pairs.split[order])
    masks = {name: split == number for number, name in enumerate(SPLITS)}
    return DataSet(graphs, query, {SPLIT: masks}, data.source, data.classes, data.labels)


def with_edges(graphs: Digraphs, mask: Bool[Tensor, " edges"]) -> Digraphs:
    """The graphs with some of their edges, and the weights and features of these.

    >>> with_edges(Digraphs.from_edges([[0, 1], [1, 2]]), torch.tensor([False, True])).edges.tolist()
    [[1], [2]]
    """
    mask = mask.to(graphs.device)
    return graphs.replace(
        edge_ptr=starts(mask.long())[graphs.edge_ptr],
        edges=graphs.edges[:, mask],
        weights=None if graphs.weights is None else graphs.weights[mask],
        edge_features={name: values[mask] for name, values in graphs.edge_features.items()},
    )
