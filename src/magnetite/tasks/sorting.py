"""The sorting task: does a network of comparators sort every input?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings.checks import COUNT, SEED, SIZE_OR_NONE, Domain, later
from magnetite.graphs import Digraphs
from magnetite.linalg.counter import derive, mix, shift_right, signed
from magnetite.linalg.potential import Relative
from magnetite.nn.embeddings import CategoryEdges, Embedding, Embeddings, LinearNodes, node_feature
from magnetite.nn.heads import GraphHead
from magnetite.sorting import SortingNetworks, beginnings, damaged, generate, known_networks, matched_pairs, optimal
from magnetite.sorting.generator import LONGEST as LONGEST_GENERATED
from magnetite.sorting.known import OPTIMAL
from magnetite.sorting.matched import CHUNK, KINDS
from magnetite.tasks.base import SPLITS, STREAM, Examples, Presets, Split, Task, check_split
from magnetite.tasks.metrics import ClassificationByGroup

SHORTEST, LONGEST = 7, 16
"""Lengths of the networks of all splits together, as in the paper."""

KNOWN = "known"
"""Name of the evaluation set of the smallest networks known, with copies that lack a comparator or have another one."""

UNFINISHED = "unfinished"
"""Name of incorrect networks that are a beginning of another one."""

GROUPS = (*KINDS, "smallest", "removed", "rewired", UNFINISHED)
"""Kinds of networks: those that are generated, the three of the evaluation set, and beginnings."""

INPUTS = "inputs"
"""Node feature with the values that reach a comparator from outside the network: 1, −1 for zero, or 0 if none does."""

CANDIDATES = 64
"""Number of random inputs among which training chooses one per network."""

FAILING = 0.75
"""Share of the incorrect networks whose input in training is one that they do not sort, if there is one."""

SEED_OF_INPUTS = 17
"""Number of the stream of random inputs."""

VARIANTS = 3
"""Largest number of networks for each one that is generated: itself, its twin and its reverse."""

KNOWN_VARIANTS = 8
"""Number of wirings of each of the smallest networks known."""

MOST_KNOWN = 10_000
"""More networks than the evaluation set has."""

PRESETS: Presets = {
    "paper": {
        "encoding": {"k": 25, "rank": 25, "scaling": "none"},
        "optim": {
            "lr": 4e-4, "weight_decay": 6e-5, "betas": (0.7, 0.9), "clip": 0.075,
            "batch": 1536, "epochs": 15, "warmup": 2,
        },
        "run": {"precision": "bf16-mixed"},
        "encodings": {"magnetic": {"optim": {"lr": 5e-4, "betas": (0.6, 0.9), "clip": 0.005}}},
    },
    # A recurrence in topological order, whose second pass reads what nodes know of both directions. No graph of more
    # than 11 wires is looked at.
    "best": {
        "base": "paper",
        "positions": "none",
        "task": {
            "train": 3_000_000, "valid": 2_000, "test": 9_000, "train_longest": 10, "valid_longest": 11, "longest": 20,
            "places": 24, "ports": True,
        },
        "model": {"name": "gnn", "network": "recurrent", "steps": 2, "width": 64, "readout": "max"},
        "optim": {"lr": 3e-3, "betas": (0.9, 0.98), "clip": 0.075, "batch": 128, "epochs": 1, "warmup": 0.01},
        "data": {"mode": "fresh", "pool": 8192, "tokens": 32_768},
        "run": {"precision": "32-true", "evaluate_every": 0.1},
    },
    # A transformer whose accuracy does not fall with the length: 0.97 from 12 to 16 wires, trained on 7 to 11.
    "flat": {
        "base": "paper",
        "task": {"places": 24},
        "encoding": {"scaling": "nodes"},
        "model": {"length_scaled": True},
    },
    # Minutes on two cores: accuracy 0.88 at 9 wires and 0.83 at 10, trained on 7 and 8.
    "quick": {
        "base": "paper",
        "task": {"train": 40_000, "valid": 500, "test": 500, "train_longest": 8, "valid_longest": 9, "places": 24},
        "encoding": {"k": 8, "rank": 8, "scaling": "nodes", "dropout": 0.0},
        "model": {"width": 64, "layers": 2, "dropout": 0.0, "norm": "pre", "length_scaled": True},
        "optim": {"lr": 1e-3, "betas": (0.9, 0.98), "clip": 0.075, "batch": 64, "epochs": 4, "warmup": 0.5},
        "data": {"tokens": 8192},
        "run": {"precision": "32-true"},
    },
    # A network is judged by what happens to its inputs, see `inputs`. About ten minutes on one core; the model of the
    # explorer.
    "inputs": {
        "base": "paper",
        "positions": "none",
        "task": {
            "train": 300_000, "valid": 100, "test": 100, "shortest": 3, "train_longest": 10, "valid_longest": 11,
            "compact": 0.8, "ports": True, "places": 24, "inputs": 256,
        },
        "model": {"name": "gnn", "network": "recurrent", "steps": 2, "width": 64, "readout": "max"},
        "optim": {"lr": 3e-3, "betas": (0.9, 0.98), "clip": 0.075, "batch": 384, "epochs": 1, "warmup": 0.02},
        "data": {"mode": "fresh", "pool": 8192, "tokens": 32_768},
        "run": {"precision": "32-true", "evaluate_every": 0.2},
    },
    # As the authors' code trains, where it differs from the text of the paper.
    "authors": {
        "base": "paper",
        "task": {"base": 26.0},
        "encoding": {
            "attention_dropout": 0.15, "attention_biases": False, "parallel": "once", "signs": "independent",
        },
        "model": {"inner_dropout": True, "init": "fan-in"},
        "optim": {"clipped": "update"},
        "encodings": {
            "walks": {"encoding": {"hidden": 8, "node_layers": 1}},
            "laplacian": {"encoding": {"absolute_first": True}},
        },
        "models": {"magnet": {"order": 1, "real_start": True}},
    },
}  # fmt: skip


@dataclass(frozen=True)
class Sorting(Task):
    """Whether a network sorts: correct networks and incorrect twins; validation and test also have reversed networks.

    The twin lacks the last comparator; a reversed network may or may not sort, and its label says which. Counts are
    those of the generated networks: a split holds two or three times as many graphs. Graph feature `label` is 1 if the
    network sorts; node feature `wires` has the two wires of the comparator. Within a split, all lengths are equally
    likely.

    With `inputs`, an example is a network with one input of zeros and ones, given as the node feature `inputs` of the
    comparators that it enters, and its label says whether the network sorts this input. In training, inputs that are
    not sorted are preferred. In the other splits, each network has `inputs` random inputs, and counts as correct if the
    model finds all of them sorted: the metrics are those of these verdicts.

    With `compact` or `merging`, all splits have pairs of a correct and an incorrect network that agree in length,
    number of comparators and depth (see `magnetite.sorting.matched_pairs`), and no reversed networks. The evaluation
    set `known` has the smallest networks known, and copies of them with one comparator removed or with other wires.

    Args:
        train: Number of networks generated for training.
        valid: Number of networks generated for validation.
        test: Number of networks generated for the test split.
        train_longest: Length of the longest training networks.
        valid_longest: Length of the longest validation networks; test networks are longer.
        train_reversed: Whether to train on reversed networks, too.
        places: Number of wires within which each training network is shifted at random; 0 does not shift.
        borders: Number of wires at either end that are marked as such; 0 marks none.
        seed: Seed of the data.
        shard_size: Number of networks per file.
        shortest: Length of the shortest training networks.
        longest: Length of the longest test networks, at most 20.
        compact: Fraction of the networks that have no superfluous comparators.
        merging: Fraction of the networks that begin like a merge sort and have no superfluous comparators.
        ports: Whether edges say which output of a comparator they carry, and which input they enter, for models that
            read edge features.
        unfinished: Fraction of the incorrect networks, with `compact` or `merging`, that are cut at random, like one
            that is being drawn.
        base: Base of the wavelengths of the codes of wires.
        inputs: Number of random inputs by which a network is judged; 0 to show networks without an input, as in the
            paper.

    >>> examples = Sorting(test=100).shard("test", 0)
    >>> len(examples), int(examples.graphs.graph_features["label"].sum()) >= 100
    (300, True)
    """

    presets: ClassVar[Presets] = PRESETS
    potential = Relative  # as in the paper
    model_options: ClassVar[tuple[str, ...]] = ("places", "borders", "base")
    evaluations: ClassVar[tuple[str, ...]] = (KNOWN,)

    train: Annotated[int, COUNT] = 400_000
    valid: Annotated[int, COUNT] = 20_000
    test: Annotated[int, COUNT] = 20_000
    train_longest: int = 11
    valid_longest: int = 12
    train_reversed: bool = False
    places: Annotated[int, SIZE_OR_NONE] = 0
    borders: Annotated[int, SIZE_OR_NONE] = 0
    seed: Annotated[int, SEED] = 0
    shard_size: Annotated[int, COUNT] = 10_000
    shortest: Annotated[int, Domain(3, LONGEST_GENERATED)] = later(SHORTEST)
    longest: Annotated[int, Domain(3, LONGEST_GENERATED)] = later(LONGEST)
    compact: Annotated[float, Domain(0, 1)] = later(0.0)
    merging: Annotated[float, Domain(0, 1)] = later(0.0)
    ports: bool = later(False)
    unfinished: Annotated[float, Domain(0, 1)] = later(0.0)
    base: Annotated[float, Domain(1, 1e6, above=True)] = later(100.0)
    inputs: Annotated[int, SIZE_OR_NONE] = later(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.shortest <= self.train_longest < self.valid_longest < self.longest:
            raise ValueError(
                f"{self.shortest} ≤ train_longest < valid_longest < {self.longest} must hold, "
                f"got train_longest={self.train_longest}, valid_longest={self.valid_longest}"
            )
        if self.compact + self.merging > 1:
            raise ValueError(f"compact + merging must be at most 1, got compact={self.compact}, merging={self.merging}")
        if self.mixed and self.train_reversed:
            raise ValueError("train_reversed has no effect with compact or merging: leave it out")
        if self.unfinished and not self.mixed:
            raise ValueError("unfinished has no effect without compact or merging: leave it out")

    @property
    def mixed(self) -> bool:
        """Whether networks are paired by size and depth, and only some of them are random."""
        return self.compact + self.merging > 0

    @property
    def reported(self) -> tuple[str, ...]:
        """Models that are trained on compact networks are evaluated on known ones."""
        return self.evaluations if self.mixed else ()

    @property
    def shares(self) -> dict[str, float]:
        """Fraction of the networks of each kind."""
        rest = max(0.0, 1 - self.compact - self.merging)
        return {"random": rest if rest > 1e-9 else 0.0, "compact": self.compact, "merging": self.merging}

    @property
    def selects(self) -> str:
        """Validation chooses by accuracy."""
        return "accuracy"

    def split(self, name: str) -> Split:
        """Lengths and number of generated networks of a split.

        >>> Sorting().split("train")
        Split(name='train', sizes=range(7, 12), count=400000)
        """
        check_split(name)
        ends = [self.shortest, self.train_longest + 1, self.valid_longest + 1, self.longest + 1]
        number = SPLITS.index(name)
        return Split(name, range(ends[number], ends[number + 1]), getattr(self, name))

    def shard(self, split: str, number: int, device: torch.device | str = "cpu") -> Examples:
        """Some networks of a split: first the correct ones, then their twins, then the reversed ones."""
        part = self.split(split)
        first, size = self.shard_span(split, number)
        key = derive(self.seed, part.number)
        if self.mixed:
            found = self._paired(size, part.sizes, key, first, min(CHUNK, part.count))
        else:
            reverse = split != "train" or self.train_reversed
            found = examples(generate(size, part.sizes, key, first), reverse, self.ports)
        return self._with_inputs(found, key, VARIANTS * first, training=split == "train").to(device)

    def examples(self, split: str, device: torch.device | str = "cpu") -> Examples:
        """A whole split, or the evaluation set `known`, on `device`."""
        if split != KNOWN:
            return super().examples(split, device)
        # With inputs, each network is as many graphs.
        variants = KNOWN_VARIANTS if self.inputs == 0 else KNOWN_VARIANTS // 4
        networks = known_networks(range(self.shortest, min(self.longest, max(OPTIMAL)) + 1), variants)
        wrong = damaged(networks)
        smallest = torch.tensor([len(optimal(length)) if length in OPTIMAL else 0 for length in range(LONGEST + 1)])
        kinds = torch.where(wrong.sizes < smallest[wrong.lengths], 1, 2)
        kinds = torch.cat([torch.zeros(len(networks), dtype=torch.long), kinds]) + len(KINDS)
        found = _with_kinds(SortingNetworks.concat([networks, wrong]), kinds, self.ports)
        return self._with_inputs(found, derive(self.seed, len(SPLITS)), 0, training=False).to(device)

    def _paired(self, count: int, lengths: range, seed: int, start: int, chunk: int) -> Examples:
        """Correct networks, followed by their counterparts."""
        correct, wrong, kinds = matched_pairs(count, lengths, self.shares, seed, start, chunk)
        if not self.unfinished:
            return _with_kinds(SortingNetworks.concat([correct, wrong]), kinds.repeat(2), self.ports)
        key = torch.tensor(signed(derive(seed, len(GROUPS))))
        part = shift_right(mix(key, torch.arange(start, start + count)), 11).double() / 2**53
        cut, whole = (part < self.unfinished).nonzero().squeeze(1), (part >= self.unfinished).nonzero().squeeze(1)
        wrong = SortingNetworks.concat([wrong.select(whole), beginnings(wrong, derive(seed, 1), start).select(cut)])
        unfinished = torch.full_like(cut, GROUPS.index(UNFINISHED))
        return _with_kinds(
            SortingNetworks.concat([correct, wrong]), torch.cat([kinds, kinds[whole], unfinished]), self.ports
        )

    def _with_inputs(self, found: Examples, seed: int, start: int, training: bool) -> Examples:
        """The same networks, each with one input in training and with `inputs` otherwise, if there are to be any.

        Args:
            found: Networks.
            seed: Seed of the inputs.
            start: Number of the first network in the split.
            training: Whether to prefer inputs that are not sorted.
        """
        if not self.inputs:
            return found
        graphs, key = found.graphs, torch.tensor(signed(derive(seed, SEED_OF_INPUTS)))
        numbers = torch.arange(start, start + len(graphs))
        networks = SortingNetworks(
            node_ptr=graphs.node_ptr, lengths=graphs.graph_features["length"], wires=graphs.node_features["wires"]
        )
        values = draw_inputs(networks, CANDIDATES if training else self.inputs, mix(key, numbers))
        is_sorted = networks.sorts(values)
        if training:
            chosen = _chosen(is_sorted, mix(key + 1, numbers))[:, None]
            values = values.gather(1, chosen[..., None].expand(-1, -1, values.shape[2]))
            is_sorted = is_sorted.gather(1, chosen)
        features = {**graphs.graph_features, "sorts": graphs.graph_features["label"], "network": numbers}
        graphs = with_inputs(graphs.replace(graph_features=features), values)
        features = {**graphs.graph_features, "label": is_sorted.flatten().long()}
        return Examples(graphs.replace(graph_features=features))

    def stream(self, seed: int, batch: int, device: torch.device | str = "cpu", start: int = 0) -> Iterator[Examples]:
        """An endless stream of fresh training examples; each batch has as many twins as correct networks."""
        kinds = 3 if self.train_reversed else 2
        if batch < kinds or batch % kinds:
            raise ValueError(f"batch must be a multiple of {kinds} (each network with its variants), got {batch}")
        key = derive(seed, STREAM)
        each, lengths = batch // kinds, self.split("train").sizes
        for first in count(start * each, each):
            if self.mixed:
                found = self._paired(each, lengths, key, first, min(CHUNK, each))
            else:
                found = examples(generate(each, lengths, key, first), self.train_reversed, self.ports)
            yield self._with_inputs(found, key, VARIANTS * first, training=True).to(device)

    def embedding(self) -> Embeddings:
        """Codes of the two wires, and the values that enter on them if there are any."""
        wires = WireNodes(base=self.base, places=self.places or None, borders=self.borders)
        return [wires, LinearNodes(INPUTS, 2)] if self.inputs else wires

    def edge_embedding(self) -> Embeddings:
        """Which output an edge carries and which input it enters."""
        return CategoryEdges({"ports": (2, 2)}) if self.ports else None

    def head(self, readout: str, pair_channels: int) -> GraphHead:  # noqa: ARG002
        """Two logits per network; the second is that of "it sorts"."""
        return GraphHead(2, readout)

    def loss(self, outputs: Float[Tensor, "b 2"], batch: Batch) -> Float[Tensor, ""]:
        """Sum over the networks of the cross-entropy `−log p(label)`."""
        labels = batch.graph_features["label"].long()
        return torch.nn.functional.cross_entropy(outputs.float(), labels, reduction="sum")

    def metric(self, device: torch.device | str = "cpu") -> "ClassificationByGroup | Verdicts":
        """Accuracy, F1 and AUC, in total, by length, and if there are several kinds of networks, by kind."""
        if self.inputs:
            return Verdicts(max(VARIANTS * self.valid, VARIANTS * self.test, MOST_KNOWN), device)
        return ClassificationByGroup("label", "length", LONGEST_GENERATED + 1, device, GROUPS)


class Verdicts:
    """Accuracy, F1 and AUC of networks, each of which counts as correct if all its inputs are found sorted.

    The score of a network is the share of its inputs that are found sorted. `input_accuracy` is that of single inputs.

    Args:
        networks: Largest number of networks.
        device: Where to count.
    """

    def __init__(self, networks: int, device: torch.device | str = "cpu"):
        # By network: inputs, those found unsorted, those found right, and sums of label, length and kind over them.
        self.state = torch.zeros(networks, 6, dtype=torch.long, device=device)

    def update(self, outputs: Float[Tensor, "b 2"], batch: Batch) -> None:
        """Count the inputs of a batch."""
        self.count(outputs[:, 1] > outputs[:, 0], batch.graph_features)

    def count(self, found: Bool[Tensor, " b"], features: Mapping[str, Tensor]) -> None:
        """Count inputs by what was found of them, sorted or not, and the graph features of their networks."""
        ones = torch.ones_like(features["label"].long())
        kind = features["kind"].long() if "kind" in features else torch.zeros_like(ones)
        columns = (
            ones, (~found).long(), (found == features["label"].bool()).long(),
            features["sorts"].long(), features["length"].long(), kind,
        )  # fmt: skip
        self.state.index_add_(0, features["network"].long(), torch.stack(columns, dim=1))

    def compute(self) -> dict[str, float]:
        """The metrics of `ClassificationByGroup`, and `input_accuracy`."""
        state = self.state.cpu()
        state = state[state[:, 0] > 0]
        inputs, unsorted, right, *sums = state.unbind(1)
        label, length, kind = (each // inputs for each in sums)
        counts = ClassificationByGroup("label", "length", LONGEST_GENERATED + 1, "cpu", GROUPS)
        counts.count(torch.where(unsorted == 0, 1.0, -unsorted / inputs), label, length, kind)
        return counts.compute() | {"input_accuracy": float(right.sum() / inputs.sum())}


class WireNodes(Embedding):
    """Sinusoidal codes of a comparator's two wires, concatenated, then a linear layer.

    `c_j(w) = [cos(w / base^{2j/c}), sin(w / base^{2j/c})]` for wire `w`.

    Args:
        channels: Size of the code of a wire.
        base: Base of the wavelengths.
        places: In training, all wires of a network are shifted by the same random number and stay below `places`, so
            that the model sees the codes of wires that only longer networks have; None does not shift.
        borders: Number of wires at either end for which the distance from that end is marked beside the codes.
        feature: Node feature with the two wires.
    """

    def __init__(
        self,
        channels: int = 64,
        base: float = 100.0,
        places: int | None = None,
        borders: int = 0,
        feature: str = "wires",
    ):
        super().__init__()
        self.channels, self.places, self.borders, self.feature = channels, places, borders, feature
        self.register_buffer("rates", base ** -(torch.arange(0, channels, 2) / channels), persistent=False)

    rates: Tensor

    def setup(self, width: int) -> None:
        """Create the linear layer."""
        self.linear = torch.nn.Linear(2 * self.channels + 4 * self.borders, width)

    def forward(self, batch: Batch) -> Float[Tensor, "n d"]:
        """The transformed codes."""
        wires = node_feature(batch, self.feature).long()
        shift = self._shift(_last_wire(wires, batch), self.places) if self.places and self.training else None
        angle = (wires if shift is None else wires + batch.per_node(shift)[:, None])[..., None] * self.rates
        codes = [angle.cos(), angle.sin()]
        if self.borders:
            codes.append(self._near(wires, batch.per_node(_last_wire(wires, batch))[:, None]))
        return self.linear(torch.cat(codes, dim=-1).flatten(1))

    def _near(self, wires: Int[Tensor, "n 2"], last: Int[Tensor, "n 1"]) -> Float[Tensor, "n 2 near"]:
        """For both ends, a one-hot code of the wire's distance if it is below `borders`, else zeros."""
        distances = torch.stack([wires, last - wires], dim=-1)
        near = distances[..., None] == torch.arange(self.borders, device=wires.device)
        return near.flatten(-2).float()

    def _shift(self, last: Int[Tensor, " g"], places: int) -> Int[Tensor, " g"]:
        """A random shift per network that leaves its last wire below `places`."""
        free = (places - last).clamp(min=1)
        return (torch.rand(free.shape, device=last.device) * free).long()


def _last_wire(wires: Int[Tensor, "n 2"], batch: Batch) -> Int[Tensor, " g"]:
    """The largest wire number of each network."""
    return batch.max_nodes(wires.amax(1)[:, None].float()).long()[:, 0]


def draw_inputs(
    networks: SortingNetworks, count: int, keys: Int[Tensor, " networks"]
) -> Bool[Tensor, "networks count wires"]:
    """Inputs of zeros and ones for each network: random ones, or all there are, repeated, if these are at most `count`.

    Args:
        networks: The networks.
        count: Number of inputs of each.
        keys: Keys of their random numbers.
    """
    longest = int(networks.lengths.max()) if len(networks) else 0
    numbers, possible = torch.arange(count), 2 ** networks.lengths.clamp(max=62)[:, None]
    # The bits of a word are the values on the wires.
    words = torch.where(possible <= count, numbers.remainder(possible), mix(keys[:, None], numbers))
    return (words[..., None] >> torch.arange(longest)).bitwise_and(1).bool()


def with_inputs(graphs: Digraphs, values: Bool[Tensor, "graphs inputs wires"]) -> Digraphs:
    """Each network once per input, with the node feature `inputs`.

    It holds the values that enter the comparators from outside the network: 1, −1 for zero, and 0 where none does.

    Args:
        graphs: Graphs of sorting networks.
        values: The inputs of each, of zeros and ones.
    """
    graphs = graphs.select(torch.arange(len(graphs)).repeat_interleave(values.shape[1]))
    values = values.flatten(0, 1)
    number = graphs.node_graph[:, None] * values.shape[1] + graphs.node_features["wires"].long()
    order = torch.arange(number.numel()).view(-1, 2)
    first = torch.full((values.numel(),), number.numel()).scatter_reduce(0, number.flatten(), order.flatten(), "amin")
    entering = torch.where(first[number] == order, 2 * values.flatten()[number].to(torch.int8) - 1, 0)
    return graphs.replace(node_features={**graphs.node_features, INPUTS: entering.to(torch.int8)})


def _chosen(is_sorted: Bool[Tensor, "networks inputs"], keys: Int[Tensor, " networks"]) -> Int[Tensor, " networks"]:
    """One input of each network, in most cases one that is not sorted, if there is one."""
    draws = shift_right(mix(keys[:, None], torch.arange(is_sorted.shape[1] + 1)), 11).double() / 2**53
    failing = draws[:, -1] < FAILING
    wanted = is_sorted != failing[:, None]
    return torch.where(wanted, draws[:, :-1], draws[:, :-1] - 1).argmax(1)


def _with_kinds(networks: SortingNetworks, kinds: Int[Tensor, " networks"], ports: bool) -> Examples:
    """Graphs with the graph feature `kind`."""
    graphs = networks.to_digraphs(ports)
    return Examples(graphs.replace(graph_features={**graphs.graph_features, "kind": kinds}))


def examples(networks: SortingNetworks, reverse: bool, ports: bool = False) -> Examples:
    """The graphs of correct networks and of their twins, and with `reverse` those of the reversed networks.

    >>> found = examples(generate(4, lengths=[7], seed=0), reverse=False)
    >>> found.graphs.graph_features["label"].tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    """
    kinds = [networks, networks.without_last()] + ([networks.reverse()] if reverse else [])
    graphs = SortingNetworks.concat(kinds).to_digraphs(ports)
    labels = graphs.graph_features["label"][: 2 * len(networks)].view(2, -1)
    if not bool(labels[0].all()) or bool(labels[1].any()):
        raise RuntimeError("a generated network does not sort, or sorts without its last comparator: this is a bug")
    return Examples(graphs)
