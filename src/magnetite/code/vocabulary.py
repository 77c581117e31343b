"""The vocabulary of node attributes: names and constants as numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

UNKNOWN, NONE = 0, 1
"""The number of a text that is not in the vocabulary, and that of a node without an attribute."""


@dataclass(frozen=True)
class Vocabulary:
    """Numbers for the attributes of nodes: 0 is "unknown", 1 is "none", the texts follow in their order.

    Unknown is 0 because embeddings with dropout replace a category by 0.

    Args:
        texts: The known texts.

    >>> vocabulary = Vocabulary.most_frequent(["x", "y", "x", None, "None"], size=4)
    >>> vocabulary, vocabulary.numbers(["x", "None", None, "y"])
    (Vocabulary(4 categories), [2, 3, 1, 0])
    """

    texts: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(self.texts))
        if len(set(self.texts)) != len(self.texts):
            text = next(text for text, count in Counter(self.texts).items() if count > 1)
            raise ValueError(f"the vocabulary has {text[:60]!r} twice: give each text once")

    def __len__(self) -> int:
        return len(self.texts) + 2

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} categories)"

    @classmethod
    def most_frequent(cls, attributes: Iterable[str | None], size: int = 10_030) -> "Vocabulary":
        """The vocabulary of the most frequent attributes; of equally frequent ones, the first in the alphabet.

        Args:
            attributes: The attributes of all nodes, of training data only; they are counted as they come.
            size: Number of categories, "unknown" and "none" included.
        """
        if size < 2:
            raise ValueError(f"size must be at least 2, for 'unknown' and 'none', got {size}")
        counts = Counter(attribute for attribute in attributes if attribute is not None)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls([text for text, _ in ranked[: size - 2]])

    @cached_property
    def number_of(self) -> dict[str | None, int]:
        """The number of each text, and of None."""
        return {None: NONE} | {text: number for number, text in enumerate(self.texts, 2)}

    def numbers(self, attributes: Iterable[str | None]) -> list[int]:
        """The numbers of some attributes.

        Args:
            attributes: Texts, or None for a node without an attribute.
        """
        known = self.number_of
        return [known.get(attribute, UNKNOWN) for attribute in attributes]
