"""Damaged folders of users' data: a task is made of them, or they are refused in one line before training."""

import gzip
import json
from pathlib import Path

import numpy as np

from tests.fuzz import refusing

CASES = 5_000

TOKENS = [
    "",
    "0",
    "1",
    "-1",
    "7",
    "0.5",
    "nan",
    "inf",
    "1e400",
    "x",
    "ä",
    '"',
    ",",
    ";",
    "\t",
    "\n",
    "\r\n",
    "\x00",
    "[0]",
]
TOKENS += ["99999999999999999999", "true", "train", "graph", "node", "{", "}", "[", "null", "-", "1_0", " ", "٣"]


def case(random: np.random.Generator, folder: Path) -> None:
    try:
        from magnetite.tasks import Supervised
    except ImportError:
        return  # a tree from before there were data sets of one's own

    files = (_ogb if random.random() < 0.5 else _labelled)(random)
    for name in random.permutation(list(files))[: random.integers(0, 3)]:
        files[name] = _damaged(files[name], random)
    if random.random() < 0.1:
        del files[str(random.choice(list(files)))]
    compress = random.random() < 0.3
    for name, text in files.items():
        packed = compress and name.endswith(".csv") and not name.startswith("g")
        path = folder / (f"{name}.gz" if packed else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode("utf-8", "surrogatepass")
        content = gzip.compress(content) if packed else content
        if random.random() < 0.03:
            content = content[: random.integers(0, len(content) + 1)]
        path.write_bytes(content)
    level = str(random.choice(["graph", "node"]))
    kind = str(random.choice(["regression", "classification", "multilabel"]))
    with refusing():
        task = Supervised(folder, target=str(random.choice(["y", "c"])), level=level, kind=kind)
        for split in ("train", "valid", "test"):
            assert len(task.examples(split)) > 0
        assert bool(task.targets.values.isfinite().all())


def _ogb(random: np.random.Generator) -> dict[str, str]:
    sizes = random.integers(1, 5, 8)
    counts = random.integers(0, 4, 8)
    edges = [random.integers(0, size, 2) for size, count in zip(sizes, counts, strict=True) for _ in range(count)]
    files = {
        "num-node-list.csv": _lines(sizes),
        "num-edge-list.csv": _lines(counts),
        "edge.csv": "".join(f"{u},{v}\n" for u, v in edges),
        "node-feat.csv": "".join(f"{node % 3},{node}.5\n" for node in range(sizes.sum())),
        "edge-feat.csv": _lines(range(len(edges))),
        "graph-label.csv": _lines(random.integers(0, 2, 8)),
        "graph-label-c.csv": _lines(random.integers(0, 2, 8)),
        "node-label.csv": _lines(random.integers(0, 2, sizes.sum())),
    }
    return {f"raw/{name}": text for name, text in files.items()} | _splits()


def _labelled(random: np.random.Generator) -> dict[str, str]:
    sizes = random.integers(2, 5, 8)
    files = {f"g{i}.txt": "".join(f"n{v} n{v + 1}\n" for v in range(size - 1)) for i, size in enumerate(sizes)}
    parts = ["train"] * 4 + ["valid"] * 2 + ["test"] * 2
    files["labels.csv"] = "graph,y,c,split\n" + "".join(
        f"g{i},{random.integers(0, 2)},{random.choice(['a', 'b'])},{part}\n" for i, part in enumerate(parts)
    )
    if random.random() < 0.5:
        rows = [(i, v) for i, size in enumerate(sizes) for v in range(size)]
        files["nodes.csv"] = "graph,node,y,x[0],x[1]\n" + "".join(
            f"g{i},n{v},{random.integers(0, 2)},{v},{i}.5\n" for i, v in rows
        )
    return files


def _splits() -> dict[str, str]:
    return {"splits.json": json.dumps({"train": [0, 1, 2, 3], "valid": [4, 5], "test": [6, 7]})}


def _lines(values) -> str:
    return "".join(f"{value}\n" for value in values)


def _damaged(text: str, random: np.random.Generator) -> str:
    """Some text replaced, removed, repeated or exchanged."""
    for _ in range(random.integers(1, 4)):
        begin, end = np.sort(random.integers(0, len(text) + 1, 2)) if text else (0, 0)
        end = min(end, begin + random.integers(0, 8))
        choice = random.random()
        if choice < 0.6:
            text = text[:begin] + str(random.choice(TOKENS)) + text[end:]
        elif choice < 0.8:
            text = text[:begin] + text[end:]
        else:
            lines = text.split("\n")
            first, second = random.integers(0, len(lines), 2)
            lines[first], lines[second] = lines[second], lines[first]
            text = "\n".join(lines if random.random() < 0.5 else [*lines[:first], lines[second], *lines[first:]])
    return text
