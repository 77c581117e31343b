"""Settings of a corpus: which functions belong to it, and how they are split."""

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Which functions belong to a corpus, and how projects are split.

    Args:
        lines: Least number of lines of a body, without docstring, comments and blank lines.
        nodes: Largest number of nodes of the data-flow graph.
        per_project: Largest number of functions of a project; the others are left out at random.
        per_name: Largest number of functions with the same name; the others are left out at random.
        shares: Expected shares of the projects in train, valid and test.
        seed: Seed of the split and of all random choices.
        any_licence: Whether to keep projects whose licence is not permissive, or unknown.
        time_limit: Seconds after which the graph of a function is given up.
    """

    lines: int = 3
    nodes: int = 1000
    per_project: int = 5000
    per_name: int = 200
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 0
    any_licence: bool = False
    time_limit: float = 10.0

    def __post_init__(self) -> None:
        for name in ("lines", "nodes", "per_project", "per_name"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        if not isinstance(self.seed, int) or isinstance(self.seed, bool):
            raise ValueError(f"seed must be an integer, got {self.seed!r}")
        if not (isinstance(self.time_limit, int | float) and 0 < self.time_limit < math.inf):
            raise ValueError(f"time_limit must be a positive number of seconds, got {self.time_limit!r}")
        shares = tuple(float(share) for share in self.shares)
        if len(shares) != 3 or not all(0 <= share <= 1 for share in shares) or abs(sum(shares) - 1) > 1e-9:
            raise ValueError(f"shares must be three numbers from 0 to 1 with the sum 1, got {self.shares!r}")
        object.__setattr__(self, "shares", shares)

    def plain(self) -> dict[str, Any]:
        """The settings as they are written to corpus.json."""
        return {**asdict(self), "shares": list(self.shares)}

    def of_extraction(self) -> dict[str, Any]:
        """The settings on which the functions found in one project depend."""
        return {"lines": self.lines, "nodes": self.nodes, "time_limit": self.time_limit}
