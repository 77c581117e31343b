"""The view Sorting: drawn, generated and known networks, their graphs and topological sorts, and whether they sort."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import torch

from magnetite.explorer import judge
from magnetite.explorer.graph_view import layout
from magnetite.explorer.limits import Limits, Refused, field, number
from magnetite.sorting import (
    SortingNetwork,
    SortingNetworks,
    batcher,
    bitonic,
    estimate_topological_sorts,
    generate,
    optimal,
)
from magnetite.sorting.topological_sorts import TooManyStates

KNOWN = {"batcher": batcher, "bitonic": bitonic, "optimal": optimal}

WORK = 300_000
"""Down-sets times comparators up to which topological sorts are counted exactly, which takes about a second."""

Payload = Mapping[str, Any]


def known(payload: Payload, limits: Limits) -> dict[str, Any]:
    """A known network."""
    name = field(payload, "name", str)
    if name not in KNOWN:
        raise Refused(f"name must be one of {', '.join(KNOWN)}, got {name!r:.20}")
    return KNOWN[name](number(payload, "length", 2, limits.wires)).to_dict()


def generated(payload: Payload, limits: Limits) -> dict[str, Any]:
    """A random correct network as in the paper's data, or its twin without the last comparator."""
    length = number(payload, "length", 2, min(limits.wires, 12))
    network = generate(1, [length], number(payload, "seed", 0, 2**31, 0))[0]
    return (network if field(payload, "correct", bool, True) else network.without_last()).to_dict()


def check(payload: Payload, limits: Limits) -> dict[str, Any]:
    """Everything the page says about a network."""
    network = _network(payload, limits)
    failing = failing_input(network)
    found: dict[str, Any] = {
        **network.to_dict(),
        "layers": [[list(pair) for pair in layer] for layer in network.layers()],
        "correct": failing is None,
        "failing": failing,
        "output": None if failing is None else network.sort(failing),
        "graph": None,
        "sorts": None,
    }
    if len(network):
        graph = network.to_digraphs()
        found["graph"] = {"nodes": len(network), "edges": graph.edges.T.tolist(), "positions": layout(graph)}
        found["sorts"] = _sorts(network)
    return found


def verdict(payload: Payload, limits: Limits) -> dict[str, Any]:
    """The model's probability that a network sorts, and how often it is right on networks of this length.

    `model` is the folder of a run that the server was started with, or null for the model that comes with magnetite.
    """
    network = _network(payload, limits)
    folder = field(payload, "model", (str, type(None)), None)
    if not len(network):
        return _no_verdict("A network without comparators has no graph to judge.")
    try:
        model = judge.load_judge(folder)
    except FileNotFoundError:
        return _no_verdict(
            "This copy of magnetite has no model of sorting networks: train one with `magnetite train sorting`, and "
            "start with `magnetite explore --sorting-model RUN`."
        )
    [probability] = judge.probabilities(model, SortingNetworks.from_networks([network])).tolist()
    about = judge.accuracy(network.length) if folder is None else None
    return {"probability": probability, "reason": None, "accuracy": about}


def _no_verdict(reason: str) -> dict[str, Any]:
    return {"probability": None, "reason": reason, "accuracy": None}


def failing_input(network: SortingNetwork) -> list[int] | None:
    """Zeros and ones that the network does not sort, with the fewest ones, or None if it sorts everything.

    Args:
        network: The network.

    >>> failing_input(SortingNetwork(3, [(0, 1), (1, 2)]))
    [1, 1, 0]
    >>> failing_input(batcher(4)) is None
    True
    """
    if network.is_correct():
        return None
    inputs = torch.tensor(list(product((0, 1), repeat=network.length)), dtype=torch.int8)
    wires = inputs.T.clone()
    for low, high in network.comparators:
        small, large = torch.minimum(wires[low], wires[high]), torch.maximum(wires[low], wires[high])
        wires[low], wires[high] = small, large
    wrong = inputs[(wires.diff(dim=0) < 0).any(0)]
    return wrong[wrong.sum(1).argmin()].tolist()


def _network(payload: Payload, limits: Limits) -> SortingNetwork:
    length = number(payload, "length", 1, limits.wires)
    comparators = field(payload, "comparators", list)
    if len(comparators) > limits.comparators:
        raise Refused(
            f"the network has {len(comparators):,} comparators, but the page shows up to {limits.comparators}", 413
        )
    for pair in comparators:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(wire) is int for wire in pair)):
            raise Refused(f"a comparator must be two wires, such as [0, 1], got {pair!r:.60}")
    return SortingNetwork(length, [(low, high) for low, high in comparators])


def _sorts(network: SortingNetwork) -> dict[str, Any]:
    """The number of topological sorts: exact, or an estimate where there are too many."""
    states = WORK // len(network)
    try:
        return {"exact": True, "text": f"{network.topological_sorts(states):,}"}
    except TooManyStates:
        estimate = estimate_topological_sorts(network.to_digraphs(), states=max(states // 40, 10), runs=4)
        return {"exact": False, "text": str(estimate)}


JOBS = {
    "sorting/known": known,
    "sorting/generated": generated,
    "sorting/check": check,
    "sorting/verdict": verdict,
}
"""The jobs of this view by name."""
