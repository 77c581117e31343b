"""The paper's figures, tables and claims, from a clone: `python -m paper figure-sorting`."""

from magnetite.training.models import MODELS
from paper.relations import Relations

MODELS["relations"] = Relations
