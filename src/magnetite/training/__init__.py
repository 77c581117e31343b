"""Training: configurations, data loading, optimiser, checkpoints and the loop.

`import magnetite` does not load this package; Lightning is loaded only when training starts.
"""

from magnetite.training.checkpoints import load

__all__ = ["load"]
