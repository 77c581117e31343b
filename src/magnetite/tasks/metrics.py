"""Metrics as sums: each keeps one tensor of counts that is added up over batches and processes, and read at the end."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, PaddedPairs

Count = float | int

BINS = 4096
"""Steps of the score in which the ranking behind the AUC is kept."""


@runtime_checkable
class Metric(Protocol):
    """What a task measures. Nothing is read back from the device before `compute`."""

    state: Tensor
    """Everything that was counted; those of several processes are added."""

    def update(self, outputs: Tensor, batch: Batch) -> None:
        """Count a batch."""
        ...

    def compute(self) -> dict[str, float]:
        """The figures by name, those of the whole first."""
        ...


class ClassificationByGroup:
    """Accuracy, F1 and AUC of a yes-or-no answer a graph, in total and by a whole-numbered graph feature.

    The AUC ranks scores in `BINS` steps; equal ones count half.
    """

    def __init__(self, label: str, group: str, groups: int, device: torch.device | str = "cpu"):
        self.label, self.group, self.groups = label, group, groups
        self.state = torch.zeros(groups, 2, BINS, dtype=torch.long, device=device)

    def update(self, outputs: Float[Tensor, "b 2"], batch: Batch) -> None:
        """Count the answers; empty graphs do not count."""
        score = outputs[:, 1].float() - outputs[:, 0].float()
        # Monotone, fine around 0 and never saturated: a probability in single precision would be 1 from a score of 17.
        step = ((score / (1 + score.abs()) + 1) * (BINS / 2)).floor().long().clamp(0, BINS - 1)
        group = batch.graph_features[self.group].long().clamp(0, self.groups - 1)
        place = (group * 2 + batch.graph_features[self.label].long()) * BINS + step
        self.state.view(-1).index_add_(0, place, batch.graph_mask.long())

    def compute(self) -> dict[str, float]:
        """`accuracy`, `f1`, `auc`, and each as `accuracy/12` for the graphs of group 12."""
        counts = self.state.cpu()
        figures = _classification(counts.sum(0))
        for group in counts.sum((1, 2)).nonzero().flatten().tolist():
            figures |= {f"{name}/{group}": value for name, value in _classification(counts[group]).items()}
        return figures


class PairClassification:
    """F1, precision, recall and accuracy of the pooled counts over all asked pairs."""

    def __init__(self, device: torch.device | str = "cpu"):
        self.state = torch.zeros(4, dtype=torch.long, device=device)

    def update(self, outputs: Float[Tensor, "p 1"], batch: Batch) -> None:
        """Count the pairs."""
        asked = pairs_of(batch)
        said, true, mask = outputs[:, 0] > 0, asked.wanted > 0, asked.mask
        cases = (said & true & mask, said & ~true & mask, ~said & true & mask, ~said & ~true & mask)
        self.state += torch.stack([case.sum() for case in cases])

    def compute(self) -> dict[str, float]:
        """`f1`, `precision`, `recall`, `accuracy`."""
        hits, false_alarms, misses, rest = self.state.tolist()
        return {
            "f1": f1(hits, false_alarms, misses),
            "precision": _share(hits, hits + false_alarms),
            "recall": _share(hits, hits + misses),
            "accuracy": _share(hits + rest, hits + false_alarms + misses + rest),
        }


class PairError:
    """Root of the mean squared error, and mean absolute error, over all asked pairs."""

    def __init__(self, device: torch.device | str = "cpu"):
        self.state = torch.zeros(3, dtype=torch.float64, device=device)

    def update(self, outputs: Float[Tensor, "p 1"], batch: Batch) -> None:
        """Add up the errors."""
        asked = pairs_of(batch)
        error = torch.where(asked.mask, outputs[:, 0].float() - asked.wanted, 0.0).double()
        self.state += torch.stack([error.square().sum(), error.abs().sum(), asked.mask.sum().double()])

    def compute(self) -> dict[str, float]:
        """`rmse` and `mae`."""
        square, absolute, count = self.state.tolist()
        return {"rmse": _share(square, count) ** 0.5, "mae": _share(absolute, count)}


def pairs_of(batch: Batch) -> PaddedPairs:
    """The pairs that a batch asks about; it has to."""
    if batch.asked is None:
        raise ValueError("the batch asks about no pairs: pad(graphs, …, asked=targets.asked())")
    return batch.asked


def f1(hits: Count, false_alarms: Count, misses: Count) -> float:
    """`2 h / (2 h + a + m)`, the harmonic mean of precision and recall; NaN where there was nothing to find.

    >>> f1(8, 2, 2)
    0.8
    """
    return _share(2 * hits, 2 * hits + false_alarms + misses)


def _classification(counts: Int[Tensor, "2 bins"]) -> dict[str, float]:
    no, yes = counts.double()
    half = BINS // 2
    hits, false_alarms, misses = (float(part.sum()) for part in (yes[half:], no[half:], yes[:half]))
    total = float(counts.sum())
    return {
        "accuracy": _share(total - false_alarms - misses, total),
        "f1": f1(hits, false_alarms, misses),
        "auc": _share(float((yes * (no.cumsum(0) - no / 2)).sum()), float(yes.sum() * no.sum())),
    }


def _share(part: Count, whole: Count) -> float:
    return part / whole if whole else float("nan")
