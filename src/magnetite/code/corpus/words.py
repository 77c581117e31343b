"""The words of a name: what a model of function names predicts."""


def words_of(name: str) -> list[str]:
    """The words of an identifier in lower case: separated by underscores, or by a change to upper case.

    Digits belong to the word before them. A name that consists of underscores has no words.

    Args:
        name: The identifier.

    >>> words_of("_read_utf8"), words_of("parseHTTPHeader"), words_of("__")
    (['read', 'utf8'], ['parse', 'http', 'header'], [])
    """
    return [word.lower() for part in name.split("_") for word in _camel_case(part)]


def _camel_case(part: str) -> list[str]:
    """Split before an upper-case letter that follows another character, or that begins a word after an acronym."""
    words, start = [], 0
    for at in range(1, len(part)):
        ends_acronym = part[at - 1].isupper() and part[at + 1 : at + 2].islower()
        if part[at].isupper() and (not part[at - 1].isupper() or ends_acronym):
            words.append(part[start:at])
            start = at
    return [*words, part[start:]] if part else []
