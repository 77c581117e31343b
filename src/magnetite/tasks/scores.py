"""Kinds of targets: the loss and the metrics of regression, classification and multilabel classification."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn import functional

from magnetite.batching import Batch

if TYPE_CHECKING:
    from torchmetrics import Metric

EXACT, THRESHOLDS = 10, 1001
"""Up to so many classes the AUC is exact; beyond, it is computed from so many thresholds, to limit its memory."""

Targets = Callable[[Batch], tuple[Shaped[Tensor, "rows ..."], Bool[Tensor, " rows"]]]


@dataclass(frozen=True)
class Kind:
    """What a network predicts.

    Args:
        metrics: Names of its metrics, with whether larger values are better; the first one chooses the best model.
        loss: One loss per row from outputs, targets, and the standard deviation of each target.
        make: Functions that compute the metrics, by name, for a number of outputs.
        predict: Values or probabilities from outputs.
    """

    metrics: Mapping[str, bool]
    loss: Callable[[Tensor, Tensor, Tensor], Float[Tensor, " rows"]]
    make: Callable[[int], dict[str, "Metric"]]
    predict: Callable[[Tensor], Tensor]


class Scores:
    """The metrics of a kind of target over a split, by `torchmetrics`.

    Args:
        kind: The kind of target.
        outputs: Number of outputs per row.
        names: Names of the targets, for metrics of each of them.
        targets: Function that returns the targets of a batch, and which of them count.
        device: Where to compute.
    """

    def __init__(
        self, kind: Kind, outputs: int, names: Sequence[str], targets: Targets, device: torch.device | str = "cpu"
    ):
        from torchmetrics import MetricCollection

        self.kind, self.targets, self.names = kind, targets, names
        self.collection = MetricCollection(kind.make(outputs)).to(device)  # type: ignore[arg-type]
        self.collection.set_dtype(torch.float64)
        self.state = torch.zeros(0, device=device)

    def update(self, outputs: Float[Tensor, "rows outputs"], batch: Batch) -> None:
        """Count the targets of a batch that belong to the split."""
        targets, selected = self.targets(batch)
        if bool(selected.any()):
            self.collection.update(self.kind.predict(outputs[selected].double()), targets[selected])

    def compute(self) -> dict[str, float]:
        """The metrics by name; in regression of several targets, also those of each of them, such as `rmse/area`."""
        found: dict[str, float] = {}
        for name, value in self.collection.compute().items():
            found[name] = float(value.mean())
            if value.numel() > 1:
                found |= {f"{name}/{each}": float(one) for each, one in zip(self.names, value, strict=True)}
        return found


def _squared_error(outputs: Tensor, targets: Tensor, scale: Tensor) -> Float[Tensor, " rows"]:
    return ((outputs - targets) / scale).square().mean(1)


def _cross_entropy(outputs: Tensor, targets: Tensor, scale: Tensor) -> Float[Tensor, " rows"]:  # noqa: ARG001
    return functional.cross_entropy(outputs, targets.long(), reduction="none")


def _binary_cross_entropy(outputs: Tensor, targets: Tensor, scale: Tensor) -> Float[Tensor, " rows"]:  # noqa: ARG001
    return functional.binary_cross_entropy_with_logits(outputs, targets.float(), reduction="none").mean(1)


def _errors(outputs: int) -> dict[str, Any]:
    from torchmetrics import MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredError, R2Score

    return {
        "rmse": MeanSquaredError(squared=False, num_outputs=outputs),
        "mae": MeanAbsoluteError(num_outputs=outputs),
        "r2": R2Score(multioutput="raw_values"),
        "mape": MeanAbsolutePercentageError(),  # of all targets together
    }


def _of_classes(classes: int) -> dict[str, Any]:
    from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC, MulticlassF1Score

    return {
        "accuracy": MulticlassAccuracy(classes, average="micro"),
        "f1": MulticlassF1Score(classes, average="macro"),
        "auc": MulticlassAUROC(classes, average="macro", thresholds=None if classes <= EXACT else THRESHOLDS),
    }


def _of_labels(labels: int) -> dict[str, Any]:
    from torchmetrics.classification import MultilabelAccuracy, MultilabelAUROC, MultilabelF1Score

    return {
        "auc": MultilabelAUROC(labels, thresholds=None if labels <= EXACT else THRESHOLDS),
        "f1": MultilabelF1Score(labels),
        "accuracy": MultilabelAccuracy(labels),
    }


KINDS: dict[str, Kind] = {
    "regression": Kind(
        {"rmse": False, "mae": False, "r2": True, "mape": False}, _squared_error, _errors, lambda outputs: outputs
    ),
    "classification": Kind(
        {"accuracy": True, "f1": True, "auc": True}, _cross_entropy, _of_classes, lambda outputs: outputs.softmax(-1)
    ),
    "multilabel": Kind({"auc": True, "f1": True, "accuracy": True}, _binary_cross_entropy, _of_labels, torch.sigmoid),
}
"""The kinds of targets by name."""
