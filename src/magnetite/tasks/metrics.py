"""Metrics as sums: each keeps one tensor of counts, which is added up over batches and processes."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, Query

Count = float | int

BINS = 4096
"""Number of bins of the score from which the AUC is computed."""


@runtime_checkable
class Metric(Protocol):
    """Base class of metrics. Nothing is read back from the device before `compute`."""

    state: Tensor
    """All counts; those of several processes are added."""

    def update(self, outputs: Tensor, batch: Batch) -> None:
        """Count a batch."""
        ...

    def compute(self) -> dict[str, float]:
        """The metrics by name, those of the whole split first."""
        ...


class ClassificationByGroup:
    """Accuracy, F1 and AUC of a binary label per graph, in total and by an integer graph feature.

    The AUC ranks scores in `BINS` bins; ties count one half.

    Args:
        label: Graph feature with the label, 0 or 1.
        group: Graph feature with the group of each graph.
        groups: Number of groups.
        device: Where to count.
        kinds: Names of the kinds of graphs, by which the metrics are given as well; the graph feature `kind` has their
            numbers. Empty for none.
    """

    def __init__(
        self, label: str, group: str, groups: int, device: torch.device | str = "cpu", kinds: tuple[str, ...] = ()
    ):
        self.label, self.group, self.groups, self.kinds = label, group, groups, kinds
        self.state = torch.zeros(max(1, len(kinds)) * groups, 2, BINS, dtype=torch.long, device=device)

    def update(self, outputs: Float[Tensor, "b 2"], batch: Batch) -> None:
        """Count the graphs of a batch."""
        features = batch.graph_features
        kind = features["kind"] if self.kinds and "kind" in features else torch.zeros_like(features[self.group])
        self.count(outputs[:, 1].float() - outputs[:, 0].float(), features[self.label], features[self.group], kind)

    def count(
        self,
        score: Float[Tensor, " b"],
        label: Int[Tensor, " b"],
        group: Int[Tensor, " b"],
        kind: Int[Tensor, " b"],
    ) -> None:
        """Count graphs by their scores, which are positive where the label is predicted to be 1."""
        # Monotone, fine around 0 and never saturated: a probability in single precision would be 1 from a score of 17.
        bins = ((score / (1 + score.abs()) + 1) * (BINS / 2)).floor().long().clamp(0, BINS - 1)
        group = group.long().clamp(0, self.groups - 1)
        if self.kinds:
            group = group + self.groups * kind.long().clamp(0, len(self.kinds) - 1)
        index = (group * 2 + label.long()) * BINS + bins
        self.state.view(-1).index_add_(0, index, torch.ones_like(index))

    def compute(self) -> dict[str, float]:
        """`accuracy`, `balanced_accuracy`, `f1`, `auc`, and each per group, such as `accuracy/12`, and per kind."""
        by_kind = self.state.cpu().unflatten(0, (-1, self.groups))
        counts = by_kind.sum(0)
        metrics = _classification(counts.sum(0))
        for group in counts.sum((1, 2)).nonzero().flatten().tolist():
            metrics |= {f"{name}/{group}": value for name, value in _classification(counts[group]).items()}
        several = [number for number in range(len(self.kinds)) if by_kind[number].any()]
        for number, kind in enumerate(self.kinds):
            found = by_kind[number].sum(0)
            if number in several and several != [0]:  # graphs without kinds are counted as the first one
                metrics |= {f"{name}/{kind}": value for name, value in _classification(found).items()}
        return metrics


class PairClassification:
    """F1, precision, recall and accuracy from the pooled counts over all query pairs.

    Args:
        device: Where to count.
    """

    def __init__(self, device: torch.device | str = "cpu"):
        self.state = torch.zeros(4, dtype=torch.long, device=device)

    def update(self, outputs: Float[Tensor, "p 1"], batch: Batch) -> None:
        """Count the query pairs of a batch."""
        query = query_of(batch)
        predicted, true = outputs[:, 0] > 0, query.labels > 0
        cases = (predicted & true, predicted & ~true, ~predicted & true, ~predicted & ~true)
        self.state += torch.stack([query.sum(case.long()) for case in cases])

    def compute(self) -> dict[str, float]:
        """`f1`, `precision`, `recall`, `accuracy`."""
        hits, false_alarms, misses, rest = self.state.tolist()
        return {
            "f1": f1(hits, false_alarms, misses),
            "precision": _ratio(hits, hits + false_alarms),
            "recall": _ratio(hits, hits + misses),
            "accuracy": _ratio(hits + rest, hits + false_alarms + misses + rest),
        }


class PairError:
    """Root mean squared error and mean absolute error over all query pairs, and the mean of the errors of graphs.

    `rmse` is the root of the mean of `e²` over the pairs of all graphs. `rmse_by_graph` is the mean of each graph's own
    root mean squared error over the graphs with query pairs, so that graphs with few pairs count as much as others.

    Args:
        device: Where to add up.
    """

    def __init__(self, device: torch.device | str = "cpu"):
        self.state = torch.zeros(5, dtype=torch.float64, device=device)

    def update(self, outputs: Float[Tensor, "p 1"], batch: Batch) -> None:
        """Add up the errors of a batch."""
        query = query_of(batch)
        error = (outputs[:, 0].float() - query.labels).double()
        ones = torch.ones_like(error)
        squares, counts = (_by_graph(each, batch, query) for each in (error.square(), ones))
        roots = torch.where(counts > 0, squares / counts.clamp(min=1), 0).sqrt()
        sums = [query.sum(each) for each in (error.square(), error.abs(), ones)]
        self.state += torch.stack([*sums, roots.sum(), (counts > 0).double().sum()])

    def compute(self) -> dict[str, float]:
        """`rmse`, `mae` and `rmse_by_graph`."""
        square, absolute, count, roots, graphs = self.state.tolist()
        rmse, mae = _ratio(square, count) ** 0.5, _ratio(absolute, count)
        return {"rmse": rmse, "mae": mae, "rmse_by_graph": _ratio(roots, graphs)}


def _by_graph(values: Float[Tensor, " p"], batch: Batch, query: Query) -> Float[Tensor, " graphs"]:
    """The sum of the values of each graph's query pairs, without padding."""
    kept = torch.where(query.mask, values, 0)
    return kept.new_zeros(len(batch)).index_add(0, batch.node_graph[query.source], kept)


def query_of(batch: Batch) -> Query:
    """The query pairs of a batch, which must have some."""
    if batch.query is None:
        raise ValueError("the batch has no query pairs: call mt.batch(graphs, …, query=targets.query())")
    return batch.query


def f1(hits: Count, false_alarms: Count, misses: Count) -> float:
    """`2 h / (2 h + a + m)`, the harmonic mean of precision and recall; NaN if all three are 0.

    >>> f1(8, 2, 2)
    0.8
    """
    return _ratio(2 * hits, 2 * hits + false_alarms + misses)


def _classification(counts: Int[Tensor, "2 bins"]) -> dict[str, float]:
    no, yes = counts.double()
    half = BINS // 2
    hits, false_alarms, misses = (float(side.sum()) for side in (yes[half:], no[half:], yes[:half]))
    total = float(counts.sum())
    return {
        "accuracy": _ratio(total - false_alarms - misses, total),
        "balanced_accuracy": (_ratio(hits, float(yes.sum())) + 1 - _ratio(false_alarms, float(no.sum()))) / 2,
        "f1": f1(hits, false_alarms, misses),
        "auc": _ratio(float((yes * (no.cumsum(0) - no / 2)).sum()), float(yes.sum() * no.sum())),
    }


def _ratio(part: Count, whole: Count) -> float:
    return part / whole if whole else float("nan")
