"""What might explain that some of the paper's claims do not hold here, and the trainings that test it."""

from dataclasses import dataclass, replace

from magnetite.reproduce.cells import SIX_MILLION, TWO_MILLION, WHOLE, Cell, Changes
from magnetite.reproduce.playground import COMPARED, KINDS, cell_name, longer, playground_cells, shorter, walk_cells
from magnetite.reproduce.sorting import STEPS, encoding_cells, message_cells, potential_cells
from magnetite.training.presets import configuration, merge

FIGURES = {
    "figure-playground": playground_cells,
    "figure-walks": walk_cells,
    "figure-sorting": encoding_cells,
    "figure-gnn": message_cells,
    "figure-q-sweep": potential_cells,
}
"""What is explained: the cells of these figures."""

BY_LENGTH = ("accuracy/12", "accuracy/16", "auc/12", "auc/16")
"""What is shown of sorting networks: accuracy depends on where answers stand to a threshold, AUC does not."""


@dataclass(frozen=True)
class Hypothesis:
    """What might explain that a claim does not hold, what is trained to test it, and cells that it is read beside.

    `distances` are figures of directed distances in both kinds of graphs that tell more, by the name that they have in
    `distributions.json`, which `benchmarks/distributions.py` writes.
    """

    claim: str
    text: str
    cells: tuple[Cell, ...]
    beside: tuple[str, ...]
    measures: tuple[str, ...] = ("rmse",)
    distances: tuple[str, ...] = ()


def hypotheses() -> list[Hypothesis]:
    """All of them, by what they are about."""
    distances = [*_of_directed_distances(), *_of_undirected_distances(), *_of_the_appendix()]
    return [*distances, *_of_walks(), *_of_messages(), *_of_potentials()]


def _of_directed_distances() -> list[Hypothesis]:
    directed = tuple(cell_name(model, "directed-distance", "general") for model in COMPARED)
    fewer = tuple(cell_name(shorter(model), "directed-distance", "general") for model in COMPARED)
    return [
        Hypothesis(
            "1",
            "directed distances in DAGs: hardly a pair has another undirected distance, so direction counts for little",
            (),
            tuple(cell_name(model, "directed-distance", "dag") for model in ("magnetic", "laplacian")),
            distances=("share_that_differs", "rmse_of_its_best_function"),
        ),
        Hypothesis(
            "2",
            "directed distances: what lies between walks and magnetic depends on seed and length of the training",
            tuple(map(_second, fewer)),
            directed + fewer,
        ),
    ]


def _of_undirected_distances() -> list[Hypothesis]:
    encodings = ("magnetic", "laplacian", "svd")
    undirected = tuple(cell_name(encoding, "undirected-distance", "dag") for encoding in encodings)
    return [
        Hypothesis(
            "1, 3",
            "undirected distances: after more graphs, magnetic and combinatorial are equal, and SVD is further behind",
            tuple(map(_longer, undirected)),
            undirected,
        ),
        Hypothesis(
            "1, 3",
            "undirected distances, small networks: the same",
            tuple(_small(encoding, times) for times in (1, 3, 9) for encoding in encodings),
            (),
        ),
        Hypothesis(
            "1",
            "undirected distances: an eigenvector of the magnetic Laplacian has two numbers a node, and not one",
            (_changed(undirected[1], "twice", {"encoding": {"k": 32}}),),
            undirected[:2],
        ),
    ]


def _of_the_appendix() -> list[Hypothesis]:
    judged = (("gnn", "dag"), ("gnn", "general"), ("magnet", "general"), ("magnetic-signnet", "general"))
    ahead = tuple(cell_name(model, "directed-distance", kind) for model, kind in judged)
    magnetic = [(model, kind) for kind in KINDS for model in (shorter("magnetic"), "magnetic")]
    return [
        Hypothesis(
            "4",
            "directed distances: two million graphs are too few for magnetic, more help it more than what is ahead",
            tuple(_longer(name, WHOLE) for name in ahead),
            tuple(cell_name(model, "directed-distance", kind) for model, kind in magnetic) + ahead,
        ),
        Hypothesis(
            "4",
            "directed distances: in DAGs nearly all are within three steps of a GNN from each of both nodes",
            (),
            tuple(
                cell_name(model, "directed-distance", kind) for kind in KINDS for model in ("magnetic", longer("gnn"))
            ),
            distances=("share_up_to_3", "share_up_to_6"),
        ),
    ]


def _of_walks() -> list[Hypothesis]:
    kinds = ("reverse", "pagerank")
    pairs = [
        f"walks-{target}-{kind}-{count}"
        for target in ("reachability", "directed-distance", "undirected-distance")
        for count in (1, 2, 3)
        for kind in kinds
    ]
    more = {"reachability": shorter("walks"), "directed-distance": shorter("walks"), "undirected-distance": "walks"}
    return [
        Hypothesis(
            "5",
            "PageRank: it tells what lies beyond the steps, so one or two of them gain more from it than three",
            (),
            tuple(pairs),
            ("f1", "rmse"),
        ),
        Hypothesis(
            "5",
            "PageRank: three steps gain from it after more graphs",
            tuple(_longer(f"walks-{target}-reverse-3", TWO_MILLION) for target in more),
            tuple(cell_name(model, target, "general") for target, model in more.items()),
            ("f1", "rmse"),
        ),
    ]


def _of_messages() -> list[Hypothesis]:
    messages = ("sorting-gnn-directed-3", "sorting-gnn-walks")
    return [
        Hypothesis(
            "7",
            "GNNs: whether walks hurt depends on seed and length of the training, and on the length of the networks",
            (*map(_second, messages), *map(_longer, messages)),
            messages,
            BY_LENGTH,
        ),
        Hypothesis(
            "7",
            "GNNs: what four and five steps gain over three, they gain on the longest networks",
            (),
            tuple(f"sorting-gnn-directed-{steps}" for steps in STEPS[2:]),
            BY_LENGTH,
        ),
    ]


def _of_potentials() -> list[Hypothesis]:
    potentials = tuple(f"sorting-magnetic-q{q:g}" for q in (0.01, 0.05, 0.25, 0.5))
    return [
        Hypothesis(
            "7",
            "the potential: with a third of the warm-up little is learned before the rate falls, for most q' nothing",
            tuple(map(_hurried, potentials)),
            potentials,
            BY_LENGTH,
        ),
        Hypothesis(
            "7",
            "the potential: which of 0.25 and 0.5 is ahead depends on the seed, as results at length 16 do",
            tuple(map(_second, potentials[2:])),
            (*potentials[2:], "sorting-magnetic", "sorting-magnetic-second"),
            BY_LENGTH,
        ),
    ]


def _changed(name: str, what: str, changes: Changes) -> Cell:
    """A cell of another figure with some changes, named after it."""
    cell = _found(name)
    return replace(cell, name=f"{name}-{what}", changes=merge(cell.changes, changes))


def _found(name: str) -> Cell:
    return next(cell for cells in FIGURES.values() for cell in cells() if cell.name == name)


def _second(name: str) -> Cell:
    return _changed(name, "second", {"run": {"seed": 1}})


def _longer(name: str, share: float = SIX_MILLION) -> Cell:
    return replace(_found(name), name=longer(name), share=share)


def _small(encoding: str, times: int) -> Cell:
    """Of the quick preset, which trains on 10,000 graphs in minutes on two cores, with so many times them."""
    task = {"target": "undirected-distance", "train": times * 10_000}
    return Cell(f"quick-undirected-{encoding}-{times}", "playground", encoding, {"task": task}, "quick")


def _hurried(name: str) -> Cell:
    return _changed(name, "hurried", {"optim": {"warmup": configuration("sorting", "magnetic", "paper").optim.warmup}})
