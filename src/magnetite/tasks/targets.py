"""Targets of your own data as one tensor of rows, and which rows each split has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.batching.buckets import epoch_order
from magnetite.tasks.base import SPLITS
from magnetite.tasks.datasets import DataSet
from magnetite.tasks.labelled import PAIRS

FRACTIONS = (0.8, 0.1, 0.1)
"""Sizes of training, validation and test split, where data have no split of their own."""

MASKS = {
    "train": ("train_mask", "train"),
    "valid": ("val_mask", "valid_mask", "valid", "val"),
    "test": ("test_mask", "test"),
}
"""Names by which masks and ids of the splits are known."""

EXACT = 2**53
"""From here on, floating-point numbers do not tell whole numbers apart."""

RESOLVED = 0.05
"""Largest rounding error of a quantity in single precision, as a share of its standard deviation."""

GIVEN = "given"
"""What a configuration stores in place of ids or masks that were in memory."""

ROWS = {"graph": "graph", "node": "node", "pair": "pair", "link": "pair"}
"""The levels of targets, and what has a row of outputs in each: links are node pairs that are drawn from the edges."""

Masks = dict[str, Bool[Tensor, " rows"]]


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of all graphs, nodes or node pairs.

    Args:
        values: `[rows, outputs]` numbers, or `[rows]` class numbers in classification.
        graph: Graph of each row.
        masks: The rows of each split.
        classes: The classes as they are written in the data, in classification.
        names: The name of each column: that of its target, with a number if the target has several columns.
    """

    values: Shaped[Tensor, "rows ..."]
    graph: Int[Tensor, " rows"]
    masks: Masks
    classes: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def outputs(self) -> int:
        """Number of outputs of the network per row."""
        return len(self.classes) or self.values.shape[1]


def targets_of(data: DataSet, names: Sequence[str], level: str, kind: str, splits: Any, seed: int) -> Targets:
    """The targets of a data set, checked, with their splits.

    Args:
        data: The data set.
        names: Names of the targets.
        level: What has a target: graph, node or pair.
        kind: regression, classification or multilabel.
        splits: Fractions, the name of a split, ids or masks by split; None takes the split of the data, if they have
            one, otherwise `FRACTIONS`.
        seed: Seed of a drawn split.
    """
    columns = [_column(data, name, level) for name in names]
    if PAIRS in data.splits:  # of node pairs, for nothing else
        own = {name: split for name, split in data.splits.items() if (name == PAIRS) == (level == "pair")}
        data = replace(data, splits=own)
    graph = _graph_of_rows(data, level)
    chosen = chosen_split(data, data.graphs.node_features if level == "node" else {}, splits)
    masks = given_masks(chosen, graph, len(data.graphs), level) if isinstance(chosen, Mapping) else {}
    if masks:
        columns = [_without_unused(column, masks) for column in columns]
    for name, column in zip(names, columns, strict=True):
        if name in data.classes and kind != "classification":
            texts = ", ".join(map(repr, data.classes[name][:3]))
            raise ValueError(f"target {name!r} is text ({texts}, …), but {kind} needs numbers: use kind classification")
        _check_known(column, name, level, data, graph)
    values, classes = _ENCODED[kind](columns, names)
    if isinstance(chosen, tuple):
        masks = drawn_masks(chosen, graph, len(data.graphs), values if kind == "classification" else None, seed)
    for split, mask in masks.items():
        if not bool(mask.any()):
            raise ValueError(f"the {split} split has no {level}: give every split at least one")
    if classes and names[0] in data.classes:
        classes = tuple(data.classes[names[0]][number] for number in classes)
    if len(classes) == 1:
        raise ValueError(f"target {names[0]!r} has the single class {classes[0]!r}: there is nothing to learn")
    _check_classes(values, masks, classes, names)
    return Targets(values, graph, masks, classes, tuple(_column_names(columns, names)))


def mask_names(features: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Features of nodes or edges that hold the splits, and are not read by a model."""
    known = {name for names in MASKS.values() for name in names if name.endswith("mask")}
    return tuple(name for name in features if name in known)


def _column(data: DataSet, name: str, level: str) -> Shaped[Tensor, "rows columns"]:
    if level == "pair":
        if data.pairs is None:
            raise ValueError(
                "level pair needs node pairs with targets: give a folder with pairs.csv, or in Python "
                "mt.tasks.DataSet(graphs, pairs=mt.batching.QueryPairs(…))"
            )
        if data.pair_target not in (None, name):
            raise ValueError(f"the node pairs have the target {data.pair_target!r}, got {name!r}: name it as target")
        values = data.pairs.labels
    else:
        known = data.graphs.graph_features if level == "graph" else data.graphs.node_features
        if name not in known:
            raise ValueError(
                f"the data have no {level} feature {name!r} to predict (they have {', '.join(known) or 'none'}): "
                "name one of them as target"
            )
        values = known[name]
    if values.ndim > 2 or values.is_complex() or (values.ndim == 2 and not values.shape[1]):
        raise ValueError(f"target {name!r} must have one or two dimensions of real numbers, got {_described(values)}")
    return values[:, None] if values.ndim == 1 else values


def _without_unused(values: Shaped[Tensor, "rows columns"], masks: Masks) -> Shaped[Tensor, "rows columns"]:
    """The targets, where rows of no split have the value of another: they need not be known."""
    used = torch.stack(list(masks.values())).any(0)
    if bool(used.all()) or not bool(used.any()):
        return values
    return torch.where(used[:, None], values, values[used.nonzero()[0]])


def _check_known(
    values: Shaped[Tensor, "rows columns"], name: str, level: str, data: DataSet, graph: Int[Tensor, " rows"]
) -> None:
    known = values >= 0 if name in data.classes else values.isfinite()
    wrong = (~known).any(1).nonzero()
    if len(wrong):
        row = int(wrong[0])
        found = "missing" if name in data.classes else _shown(values[row].tolist())
        raise ValueError(
            f"target {name!r} of {data.described(level, row, int(graph[row]))} is {found}: give it a value, or leave "
            f"the {level} out of the splits"
        )


def _shown(row: Sequence[float]) -> str:
    return str(row[0] if len(row) == 1 else list(row))


def check_resolved(values: Shaped[Tensor, "rows ..."], what: str) -> None:
    """Raise an error if single precision, in which networks compute, loses the differences between these values.

    Args:
        values: Finite numbers, in one or several columns.
        what: What they are, for messages.
    """
    if not values.numel() or values.dtype in (torch.float32, torch.float16, torch.bfloat16, torch.bool):
        return
    exact = values.double().reshape(len(values), -1)
    single = exact.float().double()
    if not bool(single.isfinite().all()):
        raise ValueError(f"{what} has the value {_largest(exact):.3g}, beyond single precision: scale it down")
    largest = exact.abs().amax(0).clamp(min=torch.finfo(torch.float64).tiny)
    spread = (exact / largest).std(0, correction=0) * largest
    lost = ((single - exact).abs().amax(0) > RESOLVED * spread) & (exact != exact[0]).any(0)
    if bool(lost.any()):
        column = int(lost.nonzero()[0])
        raise ValueError(
            f"{what} differs by {float(spread[column]):.2g} around {float(exact[:, column].mean()):.6g}, which single "
            "precision does not resolve: subtract a constant, or scale it"
        )


def _largest(values: Tensor) -> float:
    return float(values.flatten()[values.abs().argmax()])


def _numbers(columns: Sequence[Tensor], names: Sequence[str]) -> tuple[Float[Tensor, "rows outputs"], tuple[Any, ...]]:
    for column, name in zip(columns, names, strict=True):
        check_resolved(column, f"target {name!r}")
    return torch.cat([column.double() for column in columns], 1).float(), ()


def _classes(columns: Sequence[Tensor], names: Sequence[str]) -> tuple[Int[Tensor, " rows"], tuple[Any, ...]]:
    column = columns[0]
    if len(columns) > 1 or column.shape[1] > 1:
        raise ValueError(
            f"classification has one target with one column, got {_listed(columns, names)}: use kind multilabel for "
            "several yes-or-no targets"
        )
    if column.is_floating_point() and not bool((column == column.round()).all()):
        raise ValueError(f"target {names[0]!r} has fractions, but classes are whole numbers: use kind regression")
    if column.is_floating_point() and bool((column.double().abs() >= EXACT).any()):
        raise ValueError(
            f"target {names[0]!r} has the class {_largest(column):.17g}, beyond the whole numbers that floating-point "
            "numbers tell apart: number the classes from 0"
        )
    classes, numbers = torch.unique(column.long(), return_inverse=True)
    return numbers.reshape(-1), tuple(classes.tolist())


def _labels(columns: Sequence[Tensor], names: Sequence[str]) -> tuple[Float[Tensor, "rows outputs"], tuple[Any, ...]]:
    for column, name in zip(columns, names, strict=True):
        wrong = column[(column != 0) & (column != 1)]
        if wrong.numel():
            raise ValueError(f"multilabel targets are 0 or 1, but {name!r} has {wrong[0].item()}")
    return torch.cat([column.float() for column in columns], 1), ()


_ENCODED = {"regression": _numbers, "classification": _classes, "multilabel": _labels, "link": _labels}


def _graph_of_rows(data: DataSet, level: str) -> Int[Tensor, " rows"]:
    graphs = data.graphs
    if level == "node":
        return graphs.node_graph
    if level == "pair" and data.pairs is not None:
        return torch.repeat_interleave(data.pairs.counts)
    return torch.arange(len(graphs))


def chosen_split(data: DataSet, features: Mapping[str, Tensor], splits: Any) -> Mapping[str, Any] | tuple[Any, ...]:
    """The ids or masks of a split, or fractions to draw one.

    Args:
        data: The data set, which may have splits by name.
        features: Features of the nodes or edges, among which there may be masks.
        splits: What the user gave, as in `targets_of`.
    """
    masks = masks_of(features)
    if splits is None:
        splits = masks or _own_splits(data)
        if splits is FRACTIONS:
            _check_masks(features)
    if isinstance(splits, str):
        if masks and splits.isdecimal() and int(splits) < next(iter(masks.values()))[0].numel():
            return {name: mask.reshape(len(mask), -1)[:, int(splits)] for name, mask in masks.items()}
        if splits not in data.splits:
            if splits == GIVEN:
                raise ValueError("the splits of this run were given in memory: make the task again, with the same ones")
            known = ", ".join(data.splits) or "none, or give fractions"
            raise ValueError(f"unknown split {splits!r}: choose one of {known}")
        splits = data.splits[splits]
    if splits is masks and (columns := next(iter(masks.values())).shape[1:]):
        raise ValueError(f"the masks have {columns[0]} splits: choose one with splits, '0' to '{columns[0] - 1}'")
    if isinstance(splits, Mapping):
        return splits
    if isinstance(splits, np.ndarray | Tensor):
        splits = splits.tolist()
    if not isinstance(splits, Sequence):
        raise ValueError(f"splits must be fractions, the name of a split, or ids by split, got {splits!r}")
    return tuple(splits)


def _own_splits(data: DataSet) -> Any:
    """The only split of the data, otherwise fractions."""
    if len(data.splits) > 1:
        raise ValueError(f"the data have several splits: choose one of {', '.join(data.splits)}")
    return next(iter(data.splits.values()), FRACTIONS)


def masks_of(features: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The masks among the features, as in PyG's data sets, with one column per split if there are several; or none.

    Truth values may be written as 0 and 1.
    """
    names = {split: next((name for name in known if name in features), None) for split, known in MASKS.items()}
    masks = {split: _truth(features[name]) for split, name in names.items() if name is not None}
    found = {split: mask for split, mask in masks.items() if mask is not None}
    shapes = {mask.shape for mask in found.values()}
    if len(found) == len(SPLITS) and len(shapes) == 1 and len(next(iter(shapes))) <= 2:
        return found
    return {}


def _check_masks(features: Mapping[str, Tensor]) -> None:
    """Raise an error if there are masks that are no split, rather than ignore them."""
    names = mask_names(features)
    if names:
        described = ", ".join(f"{name} ({_described(features[name])})" for name in names)
        raise ValueError(
            f"the data have {described}, which are no split: give train_mask, val_mask and test_mask of truth values, "
            "or splits"
        )


def _truth(values: Tensor) -> Bool[Tensor, "rows ..."] | None:
    """Truth values; None if there are other values than 0 and 1."""
    return values.bool() if not values.is_complex() and bool(((values == 0) | (values == 1)).all()) else None


def given_masks(splits: Mapping[str, Any], graph: Int[Tensor, " rows"], graphs: int, level: str) -> Masks:
    """Masks from ids or masks of rows, or, for nodes, pairs and edges of several graphs, of graphs.

    Args:
        splits: Ids or masks by split.
        graph: Graph of each row.
        graphs: Number of graphs.
        level: What the rows are, for messages.
    """
    masks: Masks = {}
    for split in SPLITS:
        masks[split] = _mask(as_ids(part_of(splits, split), split), graph, graphs, f"the {split} split", level)
    taken = torch.stack([masks[split].long() for split in SPLITS]).sum(0)
    if bool((taken > 1).any()):
        row = int((taken > 1).nonzero()[0])
        both = [split for split in SPLITS if bool(masks[split][row])]
        raise ValueError(f"{level} {row} is in {' and '.join(both)}: every {level} belongs to one split")
    return masks


def part_of(splits: Mapping[str, Any], split: str) -> Any:
    """What is given for a split, under one of its names."""
    names = [name for name in splits if name in MASKS[split]]
    if len(names) != 1:
        raise ValueError(f"splits must have train, valid and test, got {', '.join(map(str, splits)) or 'none'}")
    return splits[names[0]]


def as_ids(given: Any, split: str) -> Tensor:
    """Ids or a mask as a tensor."""
    try:
        if not isinstance(given, Tensor):
            given = np.asarray(given)
            given = torch.as_tensor(given if given.size else given.astype(np.int64))
        return given.cpu()
    except (TypeError, ValueError) as error:
        raise ValueError(f"the {split} split must be a list of ids or a mask, got {given!r:.60}") from error


def _mask(given: Tensor, graph: Int[Tensor, " rows"], graphs: int, where: str, level: str) -> Bool[Tensor, " rows"]:
    rows = len(graph)
    by_graph = graphs > 1 and level != "graph"
    if given.dtype == torch.bool:
        if given.shape == (rows,):
            return given
        if by_graph and given.shape == (graphs,):
            return given[graph]
        raise ValueError(f"the mask of {where} has shape {tuple(given.shape)}, expected one entry per {level} ({rows})")
    if given.ndim != 1 or given.is_floating_point() or given.is_complex():
        raise ValueError(f"{where} must be a list of ids or a mask, got {_described(given)}")
    count = graphs if by_graph else rows
    wrong = given[(given < 0) | (given >= count)]
    if wrong.numel():
        raise ValueError(f"{where} has id {int(wrong[0])}, but ids go from 0 to {count - 1}")
    seen = torch.bincount(given.long(), minlength=count)
    if bool((seen > 1).any()):
        raise ValueError(f"{where} has id {int((seen > 1).nonzero()[0])} twice")
    chosen = seen > 0
    return chosen[graph] if by_graph else chosen


def drawn_masks(
    fractions: tuple[Any, ...], graph: Int[Tensor, " rows"], graphs: int, classes: Tensor | None, seed: int
) -> Masks:
    """Random splits of these fractions: rows of a single graph and graphs by themselves, other rows graph by graph.

    Args:
        fractions: Sizes of training, validation and test split.
        graph: Graph of each row.
        graphs: Number of graphs.
        classes: Class of each row, whose proportions every split keeps.
        seed: Seed of the split.
    """
    numbers = [float(each) for each in fractions if isinstance(each, Real)]
    if (
        len(numbers) != len(SPLITS)
        or len(fractions) != len(SPLITS)
        or not all(number > 0 for number in numbers)
        or abs(sum(numbers) - 1) > 1e-6
    ):
        raise ValueError(
            f"splits must be three fractions above 0 that add up to 1, such as [0.8, 0.1, 0.1], got {fractions}"
        )
    by_graph = graphs > 1 and len(graph) != graphs
    count = graphs if by_graph else len(graph)
    if count < len(SPLITS):
        raise ValueError(f"{count} graphs cannot be split into three parts: give splits, or more graphs")
    order = epoch_order(count, seed, 0)
    if classes is not None and not by_graph:
        labels = classes.numpy()
        order = order[np.argsort(labels[order], kind="stable")]  # class by class, so that each has its share
        order = np.delete(order, np.unique(labels[order], return_index=True)[1])  # training has one row of each class
    split = np.zeros(count, dtype=np.int64)
    for number, size in zip((1, 2), _held_out(count, numbers), strict=True):
        remaining = order[split[order] == 0]
        split[remaining[_spaced(len(remaining), min(size, len(remaining)))]] = number
    masks = {name: torch.from_numpy(split == number) for number, name in enumerate(SPLITS)}
    return {name: mask[graph] if by_graph else mask for name, mask in masks.items()}


def _held_out(count: int, fractions: Sequence[float]) -> tuple[int, int]:
    """Sizes of validation and test split, so that no split is empty."""
    valid, test = (max(1, round(fraction * count)) for fraction in fractions[1:])
    test = min(test, count - 2)
    return min(valid, count - test - 1), test


def _spaced(count: int, chosen: int) -> Bool[np.ndarray, " count"]:
    """A mask of so many of the entries, in equal distances."""
    steps = (np.arange(count + 1) * chosen + count // 2) // max(count, 1)
    return np.diff(steps) > 0


def _check_classes(values: Tensor, masks: Masks, classes: tuple[Any, ...], names: Sequence[str]) -> None:
    if not classes:
        return
    known = set(values[masks["train"]].unique().tolist())
    for split in SPLITS[1:]:
        missing = sorted(set(values[masks[split]].unique().tolist()) - known)
        if missing:
            raise ValueError(
                f"class {classes[missing[0]]!r} of target {names[0]!r} is in the {split} split, but not in training: "
                "it cannot be learned; remove it, or draw other splits"
            )


def _column_names(columns: Sequence[Tensor], names: Sequence[str]) -> Iterator[str]:
    for column, name in zip(columns, names, strict=True):
        yield from [name] if column.shape[1] == 1 else [f"{name}_{number}" for number in range(column.shape[1])]


def _described(values: Tensor) -> str:
    return f"{values.dtype} of shape {tuple(values.shape)}"


def _listed(columns: Sequence[Tensor], names: Sequence[str]) -> str:
    return ", ".join(f"{name!r} with {column.shape[1]}" for name, column in zip(names, columns, strict=True))
