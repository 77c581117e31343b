"""Many graphs as one `Batch`: packed nodes, edges, features and encodings, and buckets of graphs with one padded shape.

Only this package handles padding: models keep packed states, and call `Batch.pad` and `Batch.unpad` where they need
rectangular tensors.
"""

from magnetite.batching.batch import Batch, BatchedEigenpairs, BatchedTopPairs
from magnetite.batching.buckets import BatchShape, Bucket
from magnetite.batching.gather import batch, gather
from magnetite.batching.neighbours import Neighbourhoods, sampled_batch
from magnetite.batching.query import Query, QueryPairs
from magnetite.batching.sources import Copies, by_source

__all__ = [
    "Batch",
    "BatchShape",
    "BatchedEigenpairs",
    "BatchedTopPairs",
    "Bucket",
    "Copies",
    "Neighbourhoods",
    "Query",
    "QueryPairs",
    "batch",
    "by_source",
    "gather",
    "sampled_batch",
]
