"""Heads: the predictions of a model for graphs, nodes, node pairs, or sequences of words."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, Query
from magnetite.kernels.cuda import pair_head as cuda
from magnetite.nn.embeddings import node_feature
from magnetite.nn.encoders.base import Positions
from magnetite.nn.layers import Norm, activation_named, mean_and_std
from magnetite.nn.module import Module

States = Float[Tensor, "tokens d"]

LARGEST_SCORE = 30.0
"""The largest score of a node that offers a word, so that sums of exponentials stay finite."""


def cls(states: States, batch: Batch) -> Float[Tensor, "graphs d"]:
    """The state of the graph token."""
    return states[batch.num_nodes :].float()


def total(states: States, batch: Batch) -> Float[Tensor, "graphs d"]:
    """`Σ_v h_v`."""
    return batch.sum_nodes(nodes(states, batch))


def mean(states: States, batch: Batch) -> Float[Tensor, "graphs d"]:
    """`Σ_v h_v / n`."""
    return batch.mean_nodes(nodes(states, batch))


def largest(states: States, batch: Batch) -> Float[Tensor, "graphs d"]:
    """`max_v h_v`, in which a single node among many can stand out."""
    return batch.max_nodes(nodes(states, batch))


READOUTS: dict[str, Callable[[States, Batch], Float[Tensor, "graphs d"]]] = {
    "cls": cls,
    "mean": mean,
    "sum": total,
    "max": largest,
}


def nodes(states: States, batch: Batch) -> Float[Tensor, "nodes d"]:
    """The states of the nodes, without the graph tokens that may follow."""
    return states[: batch.num_nodes]


class Head(Module):
    """Base class of heads: `setup` creates the parameters once the model's width is known."""

    needs_graph_token = False

    def setup(self, width: int) -> None:
        """Make the parameters."""
        raise NotImplementedError

    def forward(self, states: States, batch: Batch, positions: Positions) -> Tensor:
        """The prediction, in single precision."""
        raise NotImplementedError


class GraphHead(Head):
    """`W r + b` of the readout `r` of each graph: `[graphs, outputs]`.

    Args:
        outputs: Number of outputs per graph.
        readout: How a graph is read: cls (a graph token), mean, sum or max over its nodes.
    """

    def __init__(self, outputs: int, readout: str = "cls"):
        super().__init__()
        self.outputs, self.needs_graph_token = outputs, _check_readout(readout) == "cls"
        self.readout = READOUTS[readout]

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(width, self.outputs)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "graphs outputs"]:  # noqa: ARG002
        """One row per graph."""
        return self.linear(self.readout(states, batch)).float()


class SequenceHead(Head):
    """Logits of a sequence of words, `[graphs, length, vocabulary]`, with one matrix per position.

    If words are `shared`, all positions have one matrix of words, and each attends to the nodes:
    `x_i = E σ(W_i r + U Σ_v α_iv h_v) + c_i` with `α_i = softmax_v(a_i · h_v)`. If words are `copied`, nodes offer
    words, whose logits at position `i` grow by `log(1 + Σ_v exp(b_i · h_v))` over the nodes `v` that offer them: a word
    that occurs in a graph can be predicted from where it occurs, however rare it is elsewhere.

    `lowered` turns logits into the scores that choose the words: probabilities, less an offset for words such as
    "unknown", `softmax(x)_w − o_w`. Offsets are saved with the model, and may be tuned after it was made.

    Args:
        vocabulary: Number of words.
        length: Number of positions in the sequence.
        readout: How a graph is read: cls, mean, sum or max.
        lowered: Offsets by word; those of other words are 0.
        shared: Whether all positions share the matrix of the words, and read the nodes by attention.
        copied: Node feature `[nodes, m]` with the numbers of the words that nodes offer, −1 for none; None if words are
            not copied.

    >>> head = SequenceHead(3, length=1, lowered={2: 0.5})
    >>> head.lowered(torch.tensor([[[0.0, 0.0, 0.7]]])).argmax(-1).tolist()
    [[0]]
    """

    def __init__(
        self,
        vocabulary: int,
        length: int = 5,
        readout: str = "cls",
        lowered: dict[int, float] | None = None,
        shared: bool = False,
        copied: str | None = None,
    ):
        super().__init__()
        self.vocabulary, self.length, self.shared, self.copied = vocabulary, length, shared, copied
        self.needs_graph_token = _check_readout(readout) == "cls"
        self.readout = READOUTS[readout]
        offsets = torch.zeros(vocabulary)
        for word, offset in (lowered or {}).items():
            offsets[int(word)] = offset
        self.register_buffer("offsets", offsets)

    offsets: Tensor

    def setup(self, width: int) -> None:
        """Make the matrices."""
        if self.shared:
            self.hidden = torch.nn.Linear(width, self.length * width)
            self.attention = torch.nn.Linear(width, self.length)
            self.attended = torch.nn.Linear(width, width, bias=False)
            self.words = torch.nn.Linear(width, self.vocabulary, bias=False)
            self.bias = torch.nn.Parameter(torch.zeros(self.length, self.vocabulary))
        else:
            self.linear = torch.nn.Linear(width, self.length * self.vocabulary)
        if self.copied is not None:
            self.copy = torch.nn.Linear(width, self.length)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "graphs length words"]:  # noqa: ARG002
        """The logits per position."""
        readout = self.readout(states, batch)
        if self.shared:
            own = nodes(states, batch)
            attended = self.attended(batch.attend_nodes(self.attention(own), own))
            hidden = self.hidden(readout).unflatten(-1, (self.length, -1)) + attended
            logits = self.words(torch.nn.functional.gelu(hidden)).float() + self.bias
        else:
            logits = self.linear(readout).float().unflatten(-1, (self.length, self.vocabulary))
        return logits if self.copied is None else logits + self._offered(nodes(states, batch), batch)

    def _offered(self, states: Float[Tensor, "nodes d"], batch: Batch) -> Float[Tensor, "graphs length words"]:
        """What is added to the logits of the words that nodes offer; 0 for all others."""
        numbers = node_feature(batch, self.copied or "").long()
        offers = (numbers >= 0) & batch.node_mask[:, None]
        first = self.length * batch.node_graph[:, None] + torch.arange(self.length, device=batch.device)
        places = self.vocabulary * first[:, None] + numbers.clamp(min=0)[..., None]
        scores = self.copy(states).float().clamp(max=LARGEST_SCORE).exp()
        sums = scores.new_zeros(len(batch) * self.length * self.vocabulary)
        sums = sums.index_add(0, places.flatten(), (scores[:, None] * offers[..., None]).flatten())
        return sums.log1p().view(len(batch), self.length, self.vocabulary)

    def lowered(self, logits: Float[Tensor, "graphs length words"]) -> Float[Tensor, "graphs length words"]:
        """The probabilities less the offsets; the largest is the predicted word."""
        return logits.float().softmax(-1) - self.offsets


class NodeHead(Head):
    """`W h_v + b` of each node: `[nodes, outputs]`.

    Args:
        outputs: Number of outputs per node.
    """

    def __init__(self, outputs: int):
        super().__init__()
        self.outputs = outputs

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(width, self.outputs)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "nodes outputs"]:  # noqa: ARG002
        """One row per node."""
        return self.linear(nodes(states, batch)).float()


class Rescaled(Head):
    """The outputs of another head in the units of the targets: `σ y + μ`, where `μ = 0` and `σ = 1` until `fit`.

    A network learns best if its outputs have mean 0 and variance 1.

    Args:
        head: The head.
        outputs: Number of its outputs.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, head: Head, outputs: int):
        super().__init__()
        self.head, self.needs_graph_token = head, head.needs_graph_token
        self.register_buffer("mean", torch.zeros(outputs))
        self.register_buffer("std", torch.ones(outputs))

    def setup(self, width: int) -> None:
        """Make the parameters of the head."""
        self.head.setup(width)

    def fit(self, targets: Float[Tensor, "rows outputs"]) -> None:
        """Take the mean and the standard deviation of these targets, which are saved with the model."""
        mean, std = mean_and_std(targets)
        self.mean.copy_(mean)
        self.std.copy_(std)

    @property
    def pair_channels(self) -> int:
        """Number of pair features that the head reads."""
        return getattr(self.head, "pair_channels", 0)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Tensor:
        """The outputs of the head, rescaled."""
        return self.head(states, batch, positions) * self.std + self.mean


class PairHead(Head):
    """`[h_u, h_v, r, n]` → 2 × (linear, LayerNorm, activation) → linear, one row per query pair `(u, v)`.

    Query pairs are those of `batch.query`, or all node pairs of each graph, source by source. `r` is the sum of the
    nodes. Since the first layer is linear, `W [h_u, h_v, r] = W₁h_u + W₂h_v + W₃r` takes `n` products instead of `n²`.
    Pair features of the position encoders have their own first layer, whose result is added after the LayerNorm: next
    to `r` and `n`, which grow with the graph, the LayerNorm would leave little of them.

    Args:
        outputs: Number of outputs per query pair.
        hidden: Size of the hidden layers; the model's width by default.
        pair_channels: Number of pair features, `position.pair_channels`.
        positive: Whether outputs end in softplus, as distances do.
        activation: gelu or relu.
        pair_layer: Whether pair features have their own first layer; otherwise they are added before the LayerNorm.
    """

    def __init__(
        self,
        outputs: int = 1,
        hidden: int | None = None,
        pair_channels: int = 0,
        positive: bool = False,
        activation: str = "gelu",
        pair_layer: bool = True,
    ):
        super().__init__()
        self.outputs, self.hidden, self.positive = outputs, hidden, positive
        self.pair_channels, self.pair_layer = pair_channels, pair_layer
        self.activation = activation_named(activation)

    def setup(self, width: int) -> None:
        """Make the layers."""
        hidden = self.hidden or width
        self.ends = torch.nn.Linear(width, 2 * hidden)
        self.whole = torch.nn.Linear(width + 1, hidden, bias=False)
        if self.pair_channels:
            self.between = torch.nn.Linear(self.pair_channels, hidden, bias=self.pair_layer)
            self.between_norm = Norm(hidden) if self.pair_layer else None
        self.first_norm, self.second_norm = Norm(hidden), Norm(hidden)
        self.second = torch.nn.Linear(hidden, hidden)
        self.last = torch.nn.Linear(hidden, self.outputs)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "pairs outputs"]:
        """One row per query pair."""
        query = batch.query if batch.query is not None else batch.all_pairs()
        self._check_features(positions)
        between = None if positions.pairs is None else self.between(batch.at_query(positions.pairs, query))
        hidden = nodes(states, batch)
        source, target = self.ends(hidden).chunk(2, dim=-1)
        readout = torch.cat([batch.sum_nodes(hidden), batch.sizes[:, None].float()], dim=-1)
        target = target + batch.per_node(self.whole(readout))
        answer = self._last(self.second(self._first(source, target, query, between)))
        return torch.nn.functional.softplus(answer) if self.positive else answer

    def _first(
        self,
        source: Float[Tensor, "nodes hidden"],
        target: Float[Tensor, "nodes hidden"],
        query: Query,
        between: Float[Tensor, "pairs hidden"] | None,
    ) -> Float[Tensor, "pairs hidden"]:
        """The first layer, by a fused kernel unless pair features are added before the LayerNorm."""
        norm, joined = self.first_norm, between is not None and self.between_norm is None
        if not joined and self._fuses(norm, source):
            scale, shift = norm.weight.float(), norm.bias.float()
            pairs = query.source.long(), query.target.long()
            ends = cuda.first(source.float(), target.float(), *pairs, scale, shift)
        else:
            ends = _chosen(source, query.source) + _chosen(target, query.target)
            ends = self.activation(norm(ends if between is None or not joined else ends + between))
        if between is None or self.between_norm is None:
            return ends
        return ends + self.activation(self.between_norm(between))

    def _last(self, pairs: Float[Tensor, "pairs hidden"]) -> Float[Tensor, "pairs outputs"]:
        """The last layer; a single output is computed as a sum, which can be fused, since a matrix product is slow."""
        norm = self.second_norm
        if self.outputs == 1 and self._fuses(norm, pairs):
            parameters = (norm.weight.float(), norm.bias.float(), self.last.weight[0].float())
            return cuda.last(pairs.bfloat16(), *parameters)[..., None] + self.last.bias
        pairs = self.activation(norm(pairs))
        if self.outputs > 1:
            return self.last(pairs).float()
        return (pairs.float() * self.last.weight).sum(-1, keepdim=True) + self.last.bias

    def _fuses(self, norm: Norm, given: Tensor) -> bool:
        return cuda.suits(norm, self.activation, given.device)

    def _check_features(self, positions: Positions) -> None:
        given = 0 if positions.pairs is None else positions.pairs[0].shape[-1]
        if given != self.pair_channels:
            raise ValueError(
                f"the position encoder gives {given} features per pair, this PairHead takes {self.pair_channels}: make "
                f"it with pair_channels={given}"
            )


def _chosen(rows: Float[Tensor, "nodes d"], numbers: Int[Tensor, " pairs"]) -> Float[Tensor, "pairs d"]:
    """The rows with these numbers, in single precision, since the backward pass adds one gradient per query pair."""
    return rows.float().index_select(0, numbers)


def _check_readout(name: str) -> str:
    if name not in READOUTS:
        raise ValueError(f"readout must be one of {', '.join(READOUTS)}, got {name!r}")
    return name
