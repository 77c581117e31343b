"""Training: configurations, data at training speed, optimiser, checkpoints and the loop.

`import magnetite` loads nothing of it; Lightning is loaded only when a training starts.
"""

from magnetite.training.checkpoints import load

__all__ = ["load"]
