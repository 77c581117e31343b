"""Training: configurations, data at training speed, optimiser, checkpoints and the loop.

Nothing here is loaded by `import magnetite`; Lightning is loaded only when a training starts.
"""

from magnetite.training.checkpoints import load

__all__ = ["load"]
