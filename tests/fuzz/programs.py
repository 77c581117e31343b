"""Random programs whose objects are reached through containers: texts of equal hash must do the same when they are run.

The texts are random exchanges of statements, legal orders and `reorderings`; legal ones must have the program's hash.
"""

from pathlib import Path

import numpy as np

from tests.code.aliasing_programs import compare

CASES = 600


def case(random: np.random.Generator, folder: Path) -> None:
    found = compare(int(random.integers(2**31)))
    assert not found.contradictions, f"equal hashes, different outcomes:\n{found.contradictions[0]}"
    assert not found.broken, f"a legal order with another hash:\n{found.broken[0]}"
