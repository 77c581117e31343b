"""A smaller corpus from a larger one, such as one that fits onto another machine."""

from collections import Counter
from pathlib import Path

from magnetite.code.corpus.selection import limit_per_group, random_order
from magnetite.code.corpus.statistics import check_sums
from magnetite.code.corpus.stored import DESCRIPTION, Corpus, load
from magnetite.code.corpus.writing import ShardWriter, check_free
from magnetite.io.storage import LOCK, locked, write_json


def sample(corpus: Corpus, folder: str | Path, functions: int, seed: int = 0) -> Corpus:
    """Write a random sample of a corpus, in which each function keeps its split.

    Large projects are cut first: all projects have the same largest number of functions.

    Args:
        corpus: The larger corpus.
        folder: Where to write.
        functions: Largest number of functions of the sample.
        seed: Seed of the choice.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if functions < 1:
        raise ValueError(f"functions must be a positive integer, got {functions}")
    folder = Path(folder)
    check_free(folder)
    if (folder / DESCRIPTION).exists():
        raise ValueError(f"{folder} has a corpus already: choose another folder or remove it")
    projects, hashes = (
        [value for batch in corpus.batches(columns=[name]) for value in batch[name].to_pylist()]
        for name in ("project", "dataflow")
    )
    limit, taken = limit_per_group(list(Counter(projects).values()), functions), Counter[str]()
    kept = [False] * len(hashes)
    for number in sorted(range(len(hashes)), key=lambda number: random_order(seed, hashes[number])):
        taken[projects[number]] += 1
        kept[number] = taken[projects[number]] <= limit
    start = 0
    with locked(folder / LOCK, str(folder)):
        shards = ShardWriter(folder)
        for name in corpus.info["shards"]:
            table = pq.read_table(corpus.folder / name)
            shards.add(table.filter(pa.array(kept[start : start + table.num_rows])))
            start += table.num_rows
        shards.close()
        found = corpus.info["functions"]
        cut = {f"more than {limit} functions of the project, in a sample": kept.count(False)}
        info = {
            **{name: corpus.info[name] for name in ("origin", "settings", "magnetite", "python", "complete")},
            "sample": {"of": corpus.info["fingerprint"], "functions": functions, "seed": seed},
            "fingerprint": shards.fingerprint,
            "projects": corpus.info["projects"],
            "files": corpus.info["files"],
            "functions": {
                **found,
                "kept": kept.count(True),
                "left_out": dict(Counter(found["left_out"]) + Counter(cut)),
            },
            "splits": shards.splits,
            "statistics": shards.statistics(),
            "shards": shards.files,
            "problems": corpus.info["problems"],
        }
        check_sums(info)
        write_json(folder / DESCRIPTION, info)
    return load(folder, verify=False)
