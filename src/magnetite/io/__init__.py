"""Readers and writers, below graphs: other libraries, users' files, atomic storage, provenance of results."""
