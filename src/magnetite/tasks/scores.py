"""Kinds of targets: the loss and the metrics of regression, classification, multilabel classification and links."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn import functional

from magnetite.batching import Batch

if TYPE_CHECKING:
    from torchmetrics import Metric

MOST_RANKED = 1_000
"""Number of classes or labels up to which there is an AUC: it needs the probabilities of all of them, for all rows."""

AUC, COUNTS = "auc", "counts"

HITS = {"hits@10": 10, "hits@50": 50, "hits@100": 100}
"""The number of negatives that each of these metrics looks at."""

Targets = Callable[[Batch], tuple[Shaped[Tensor, "rows ..."], Bool[Tensor, " rows"]]]


@dataclass(frozen=True)
class Kind:
    """What a network predicts.

    Args:
        metrics: Names of its metrics, with whether larger values are better; the first one chooses the best model.
        loss: One loss per row from outputs, targets, and the standard deviation of each target.
        make: Functions that compute the metrics, by name, for a number of outputs.
        predict: Values or probabilities from outputs.
        score: What the metrics take: the values or probabilities, or numbers in [0, 1] of the same order.
        dtype: The type in which the metrics take targets.
        single: Whether a row has one target, whatever the number of outputs.
    """

    metrics: Mapping[str, bool]
    loss: Callable[[Tensor, Tensor, Tensor], Float[Tensor, " rows"]]
    make: Callable[[int], dict[str, "Metric"]]
    predict: Callable[[Tensor], Tensor]
    score: Callable[[Tensor], Tensor]
    dtype: torch.dtype = torch.long
    single: bool = False


class Scores:
    """The metrics of a kind of target over a split, by `torchmetrics`.

    Args:
        kind: The kind of target.
        outputs: Number of outputs per row.
        names: Names of the outputs, for metrics of each of them.
        targets: Function that returns the targets of a batch, and which of them count.
        device: Where to compute.
    """

    def __init__(
        self, kind: Kind, outputs: int, names: Sequence[str], targets: Targets, device: torch.device | str = "cpu"
    ):
        from torchmetrics import MetricCollection

        self.kind, self.outputs, self.targets, self.names = kind, outputs, targets, names
        self.collection = MetricCollection(kind.make(outputs)).to(device)  # type: ignore[arg-type]
        self.collection.set_dtype(torch.float64)
        self.state = torch.zeros(0, device=device)

    def update(self, outputs: Float[Tensor, "rows outputs"], batch: Batch) -> None:
        """Count the targets of a batch that belong to the split."""
        targets, selected = self.targets(batch)
        if bool(selected.any()):
            found, known = outputs[selected].double(), targets[selected].to(self.kind.dtype)
            self.collection.update(self.kind.score(found), known)

    def compute(self) -> dict[str, float]:
        """The metrics by name; in regression of several targets, also those of each of them, such as `rmse/area`.

        The AUC is the mean over the classes that the split has. NaN stands for a metric that is not defined.
        """
        found: dict[str, float] = {}
        with warnings.catch_warnings():
            # See `_mean_auc` and `_fill_empty`.
            for message in ("No (positive|negative) samples", "The ``compute`` method of metric"):
                warnings.filterwarnings("ignore", message, UserWarning)
            self._fill_empty()
            computed = self.collection.compute()
        counts = computed.pop(COUNTS, None)
        if AUC in computed:
            computed[AUC] = _mean_auc(computed[AUC], counts)
        for name, value in computed.items():
            found[name] = float(value.mean())
            if value.numel() > 1:
                found |= {f"{name}/{each}": float(one) for each, one in zip(self.names, value, strict=True)}
        return found

    def _fill_empty(self) -> None:
        """Give metrics without rows empty ones of their type and shape: another process may have all rows."""
        row = torch.zeros(1, self.outputs, dtype=torch.float64, device=self.state.device)
        target = (row[:, 0] if self.kind.single else row).to(self.kind.dtype)
        for each in self.collection.values(copy_state=False):
            metric: Any = each
            if isinstance(getattr(metric, "target", None), list) and not metric.target:
                sample = deepcopy(metric)
                sample.update(self.kind.score(row), target)
                metric.preds, metric.target = [sample.preds[0][:0]], [sample.target[0][:0]]


def _mean_auc(values: Float[Tensor, "*outputs"], counts: Float[Tensor, " counts"]) -> Float[Tensor, ""]:
    """The mean AUC of the outputs that have both positive and negative targets; NaN if there are none."""
    defined = (counts[1:] > 0) & (counts[1:] < counts[0])
    return values.reshape(-1)[defined].mean()


def _ordered(logits: Tensor) -> Tensor:
    """Numbers in [0, 1] in the order of the logits, ½ for 0: probabilities of large logits would all be 1."""
    return 0.5 + logits.atan() / torch.pi


def _squared_error(outputs: Tensor, targets: Tensor, scale: Tensor) -> Float[Tensor, " rows"]:
    return ((outputs - targets) / scale).square().mean(1)


def _cross_entropy(outputs: Tensor, targets: Tensor, scale: Tensor) -> Float[Tensor, " rows"]:  # noqa: ARG001
    return functional.cross_entropy(outputs, targets.long(), reduction="none")


def _binary_cross_entropy(outputs: Tensor, targets: Tensor, scale: Tensor) -> Float[Tensor, " rows"]:  # noqa: ARG001
    return functional.binary_cross_entropy_with_logits(outputs, targets.float(), reduction="none").mean(1)


def _errors(outputs: int) -> dict[str, Any]:
    from torchmetrics import MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredError, R2Score

    class Explained(R2Score):
        """R², which a single target, or equal ones, do not have; torchmetrics takes small variances for none."""

        def __init__(self) -> None:
            super().__init__(multioutput="raw_values")
            # Of their final shape from the start, so that processes without any target can add up with others.
            for name in ("sum_squared_error", "sum_error", "residual"):
                self.add_state(name, torch.zeros(outputs), dist_reduce_fx="sum")

        def compute(self) -> Tensor:
            variation = self.sum_squared_error - self.sum_error.square() / self.total
            varied = (self.total > 1) & (variation > 1e-14 * self.sum_squared_error)
            return torch.where(varied, 1 - self.residual / variation, torch.nan)

    class Percentage(MeanAbsolutePercentageError):
        """Over the targets that are not 0, of which no error is a percentage; NaN, and left out, without any.

        torchmetrics divides by 1e-6 at least, which is wrong for small units.
        """

        def update(self, preds: Tensor, target: Tensor) -> None:
            chosen = target != 0
            if bool(chosen.any()):
                self.sum_abs_per_error += ((preds - target)[chosen] / target[chosen]).abs().sum()
                self.total += int(chosen.sum())

    return {
        "rmse": MeanSquaredError(squared=False, num_outputs=outputs),
        "mae": MeanAbsoluteError(num_outputs=outputs),
        "r2": Explained(),
        "mape": Percentage(),  # of all targets together
    }


def _of_classes(classes: int) -> dict[str, Any]:
    from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC, MulticlassF1Score

    found: dict[str, Any] = {
        "accuracy": MulticlassAccuracy(classes, average="micro"),
        "f1": MulticlassF1Score(classes, average="macro"),
    }
    if classes > MOST_RANKED:
        return found
    return {**found, AUC: MulticlassAUROC(classes, average="none"), COUNTS: _counter(classes)}


def _of_labels(labels: int) -> dict[str, Any]:
    from torchmetrics import classification as metrics

    if labels == 1:
        found = {AUC: metrics.BinaryAUROC(), "f1": metrics.BinaryF1Score(), "accuracy": metrics.BinaryAccuracy()}
        return {**found, COUNTS: _counter(1)}
    found = {"f1": metrics.MultilabelF1Score(labels), "accuracy": metrics.MultilabelAccuracy(labels)}
    if labels > MOST_RANKED:
        return found
    return {AUC: metrics.MultilabelAUROC(labels, average="none"), **found, COUNTS: _counter(labels)}


def _of_links(outputs: int) -> dict[str, Any]:  # noqa: ARG001
    from torchmetrics.classification import BinaryAccuracy, BinaryAUROC, BinaryAveragePrecision

    found = {AUC: BinaryAUROC(), "ap": BinaryAveragePrecision(), "accuracy": BinaryAccuracy()}
    return {**found, "ranks": _ranks(), COUNTS: _counter(1)}


def _ranks() -> "Metric":
    """Ranks of the links among the negatives of the split."""
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat

    class Ranks(Metric):
        """MRR and Hits@k.

        The rank of a link is `r = 1 + #{negatives with a higher score} + ½ #{negatives with the same score}`, over all
        negatives of the split; other links are not counted, which is called filtered. MRR is the mean of `1 / r`.
        Hits@k is the fraction of links with a score above that of the k-th best negative; NaN if there are fewer.
        """

        preds: list[Tensor]
        target: list[Tensor]

        def __init__(self) -> None:
            super().__init__()
            self.add_state("preds", [], dist_reduce_fx="cat")
            self.add_state("target", [], dist_reduce_fx="cat")

        def update(self, preds: Tensor, target: Tensor) -> None:
            self.preds.append(preds.reshape(-1))
            self.target.append(target.reshape(-1))

        def compute(self) -> dict[str, Tensor]:
            scores, labels = dim_zero_cat(self.preds), dim_zero_cat(self.target)
            links, others = scores[labels > 0], scores[labels == 0].sort().values
            above = len(others) - torch.searchsorted(others, links, right=True)
            same = len(others) - torch.searchsorted(others, links) - above
            ranks = 1 + above.double() + same.double() / 2
            hits = {name: (above + same < count).double().mean() for name, count in HITS.items()}
            none = scores.new_tensor(torch.nan)
            return {
                "mrr": ranks.reciprocal().mean(),
                **{name: hits[name] if len(others) >= count else none for name, count in HITS.items()},
            }

    return Ranks()


def _counter(outputs: int) -> "Metric":
    """Number of all targets, and of those of each class or label."""
    from torchmetrics import Metric

    class Counter(Metric):
        """Counts, which are added up over processes as in any other metric."""

        counts: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.add_state("counts", torch.zeros(outputs + 1), dist_reduce_fx="sum")

        def update(self, preds: Tensor, target: Tensor) -> None:  # noqa: ARG002
            each = torch.bincount(target, minlength=outputs) if target.ndim == 1 else target.sum(0)
            self.counts += torch.cat([each.new_tensor([len(target)]), each])

        def compute(self) -> Tensor:
            return self.counts

    return Counter()


KINDS: dict[str, Kind] = {
    "regression": Kind(
        {"rmse": False, "mae": False, "r2": True, "mape": False},
        _squared_error,
        _errors,
        lambda outputs: outputs,
        lambda outputs: outputs,
        torch.float64,
    ),
    "classification": Kind(
        {"accuracy": True, "f1": True, "auc": True},
        _cross_entropy,
        _of_classes,
        lambda outputs: outputs.softmax(-1),
        lambda outputs: outputs.softmax(-1),
        single=True,
    ),
    "multilabel": Kind(
        {"auc": True, "f1": True, "accuracy": True}, _binary_cross_entropy, _of_labels, torch.sigmoid, _ordered
    ),
    "link": Kind(
        {"auc": True, "ap": True, "accuracy": True, "mrr": True, **dict.fromkeys(HITS, True)},
        _binary_cross_entropy,
        _of_links,
        torch.sigmoid,
        _ordered,
    ),
}
"""The kinds of targets by name."""
