"""WireRelations: a model for sorting networks alone, as a reference for general models of directed graphs."""

from paper.relations.model import WireRelations


__all__ = ["WireRelations"]
