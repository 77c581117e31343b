"""The version, in one place: the package, the cache keys and the files written all read it here."""

__version__ = "0.1.0"
