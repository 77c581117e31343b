"""Sorting networks: generate, check and draw them, and count their topological sorts.

>>> from magnetite import sorting
>>> nets = sorting.generate(100, lengths=range(7, 12), seed=0)
>>> nets[0].is_correct()
True
>>> nets[0].without_last().is_correct()
False
"""

from magnetite.sorting.compact import beginnings, compact, depths, merging, prune, relabel, spoil
from magnetite.sorting.generator import generate
from magnetite.sorting.known import batcher, bitonic, damaged, known_networks, optimal
from magnetite.sorting.matched import matched_pairs
from magnetite.sorting.networks import SortingNetwork, SortingNetworks
from magnetite.sorting.topological_sorts import Estimate, count_topological_sorts, estimate_topological_sorts

__all__ = [
    "Estimate",
    "SortingNetwork",
    "SortingNetworks",
    "batcher",
    "beginnings",
    "bitonic",
    "compact",
    "count_topological_sorts",
    "damaged",
    "depths",
    "estimate_topological_sorts",
    "generate",
    "known_networks",
    "matched_pairs",
    "merging",
    "optimal",
    "prune",
    "relabel",
    "spoil",
]
