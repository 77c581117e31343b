"""Cases that end in every way there is, for the test of the runner."""

import os
import signal
from pathlib import Path

import numpy as np

CASES = 4


def case(random: np.random.Generator, folder: Path) -> None:
    number = int(random.integers(3))
    if number == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 1:
        raise ValueError("no crash")
