"""Corpora of Python functions: read from the standard library, installed packages, a recipe or a folder; never run.

`extraction` finds functions and builds their graphs, `words` splits names, `recipe`, `index` and `archives` read
packages, `projects` what is on this machine; `selection` removes duplicates and splits by project, `statistics`
counts, `writing` puts everything together, `stored` reads the result, and `sampling` makes it smaller.
"""

from magnetite.code.corpus.recipe import read_recipe
from magnetite.code.corpus.sampling import sample
from magnetite.code.corpus.settings import Settings
from magnetite.code.corpus.stored import Corpus, CorpusFunction, load
from magnetite.code.corpus.words import words_of
from magnetite.code.corpus.writing import write

__all__ = ["Corpus", "CorpusFunction", "Settings", "load", "read_recipe", "sample", "words_of", "write"]
