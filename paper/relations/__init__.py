"""WireRelations: a model for sorting networks alone, as a reference for general models of directed graphs."""

from paper.relations.model import WireRelations
from paper.relations.options import Relations

__all__ = ["Relations", "WireRelations"]
