"""Counts of a corpus, which must add up: what was found, what was kept, and what was left out and why."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

EXPECTED_PROBLEMS = ("test file", "hidden file or folder")
"""Reasons for which files are counted, but not listed one by one."""


class Progress(NamedTuple):
    """How far a corpus is.

    Args:
        project: The project that was just finished.
        done: Number of finished projects.
        total: Number of all projects.
        functions: Number of functions found so far, before selection.
        problem: Why the project failed; empty if it did not.
    """

    project: str
    done: int
    total: int
    functions: int
    problem: str


def merged(summaries: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any], list[list[str]]]:
    """The counts of all projects.

    Args:
        summaries: The counts of each project.

    Returns:
        Counts of files, counts of functions, and a list of project, file, reason and details.
    """
    files, functions = Counter(), Counter()
    files_left_out, functions_left_out = Counter(), Counter()
    problems = []
    for project, summary in summaries.items():
        files.update({name: summary["files"][name] for name in ("found", "read")})
        functions.update({"found": summary["functions"]["found"]})
        files_left_out.update(summary["files"]["left_out"])
        functions_left_out.update(summary["functions"]["left_out"])
        problems += [[project, *entry] for entry in summary["problems"] if entry[1] not in EXPECTED_PROBLEMS]
    return (
        {"found": files["found"], "read": files["read"], "left_out": _sorted(files_left_out)},
        {"found": functions["found"], "left_out": _sorted(functions_left_out)},
        problems,
    )


def of_functions(tables: Iterable["pa.Table"]) -> dict[str, Any]:
    """Statistics of the functions that are kept.

    Args:
        tables: Tables with the columns name, words, nodes and licence.
    """
    names, words, licences = Counter(), Counter(), Counter()
    nodes: list[np.ndarray] = []
    length = 0
    for table in tables:
        names.update(table["name"].to_pylist())
        licences.update(table["licence"].to_pylist())
        for each in table["words"].to_pylist():
            words.update(each)
            length += len(each)
        nodes.append(table["nodes"].to_numpy())
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *nodes])
    return {
        "nodes": {
            "mean": round(float(sizes.mean()), 2) if sizes.size else 0,
            "median": int(np.median(sizes)) if sizes.size else 0,
            "99%": int(np.quantile(sizes, 0.99)) if sizes.size else 0,
            "largest": int(sizes.max()) if sizes.size else 0,
        },
        "words_per_name": round(length / max(sizes.size, 1), 3),
        "distinct_words": len(words),
        "distinct_names": len(names),
        "most_frequent_names": dict(_ranked(names)[:10]),
        "most_frequent_words": dict(_ranked(words)[:10]),
        "licences": _sorted(licences),
    }


def check_sums(info: Mapping[str, Any]) -> None:
    """Raise an error if anything was lost: what was found is kept, left out for a reason, or failed.

    Args:
        info: Content of corpus.json.
    """
    projects, files, functions = info["projects"], info["files"], info["functions"]
    of_projects = projects["read"] + sum(map(len, projects["left_out"].values())) + len(projects["failed"])
    sums = {
        "projects": (projects["found"], of_projects),
        "files": (files["found"], files["read"] + sum(files["left_out"].values())),
        "functions": (functions["found"], functions["kept"] + sum(functions["left_out"].values())),
        "functions in splits": (functions["kept"], sum(split["functions"] for split in info["splits"].values())),
        "functions in files": (functions["kept"], sum(shard["functions"] for shard in info["shards"].values())),
    }
    for what, (found, accounted) in sums.items():
        if found != accounted:
            raise RuntimeError(f"{found} {what} were found, but {accounted} are accounted for: please report this")


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(_ranked(counts))


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Most frequent first, equal ones in alphabetical order."""
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
