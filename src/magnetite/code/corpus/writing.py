"""Write a corpus: read projects in parallel, keep what each one gave, select and split, write Parquet files."""

import json
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from magnetite.code.blocks import SPLITS
from magnetite.code.corpus.archives import BadArchive, Member, python_files
from magnetite.code.corpus.extraction import DIED, FileResult, Row, extract
from magnetite.code.corpus.index import Index, Unavailable, is_complete, pip_index
from magnetite.code.corpus.projects import (
    NOT_PERMISSIVE,
    PERMISSIVE,
    Project,
    content_key,
    folder_projects,
    site_packages,
    standard_library,
)
from magnetite.code.corpus.recipe import LEFT_OUT, Package, read_recipe
from magnetite.code.corpus.selection import Candidates, select, split_of
from magnetite.code.corpus.settings import Settings
from magnetite.code.corpus.statistics import Progress, check_sums, merged, of_functions
from magnetite.code.corpus.stored import DESCRIPTION, Corpus, CorpusFunction, file_hash, load
from magnetite.io.storage import (
    LOCK,
    DamagedFile,
    foreign_files,
    locked,
    read_json,
    remove_folder,
    remove_leftovers,
    replacing,
    write_json,
)
from magnetite.version import __version__
from magnetite.workers import Workers, start

if TYPE_CHECKING:
    import pyarrow as pa

UNFINISHED = "functions.unfinished"
"""Folder for downloads and for the functions of each project, removed when the corpus is complete."""

SHARD = 20_000
"""Number of functions in a Parquet file."""

CHUNK_BYTES, CHUNK_FILES = 2**18, 64
"""Size of the work that a process gets at once."""

AHEAD = 4
"""Number of chunks per worker that are submitted ahead of the reader."""

CONNECTIONS = 4
"""Number of packages that are downloaded at the same time."""

COUNTED = ["name", "words", "nodes", "licence"]
"""Columns for statistics."""

PAGE = 2**25
"""Size of a page of a Parquet file in bytes."""

REPEATED = ["name", "words", "project", "licence", "path", "split"]
"""Columns in which values occur several times."""

PYTHON = ".".join(map(str, sys.version_info[:3]))


class Plan(NamedTuple):
    """Where the projects come from, those to read, and those left out, by reason."""

    origin: dict[str, Any]
    projects: list[Project]
    left_out: dict[str, list[str]]


def write(
    origin: str | Path,
    folder: str | Path,
    settings: Settings | None = None,
    workers: int | None = None,
    packages: Sequence[str] = (),
    downloads: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    ray: str | None = None,
) -> Corpus:
    """Build a corpus of functions; code is read, never run.

    Call it again with the same arguments to continue after an interruption, or to try packages again that failed:
    projects that are finished are neither downloaded nor read again.

    Args:
        origin: "stdlib", "site-packages", "recipe", a recipe (.tsv file), or a folder with one entry per project.
        folder: Where to write.
        settings: Which functions to keep, and how to split them.
        workers: Number of processes; by default all cores, of this machine or of the Ray cluster.
        packages: Names of the packages of a recipe to use; all by default.
        downloads: Folder for the files of packages, which are kept; by default they are removed in the end.
        progress: Called after each project.
        ray: Address of a Ray cluster whose processes read the files; "auto" for the one that runs on this machine,
            "local" for a new one.

    Returns:
        The corpus. If `complete` is false, some packages failed, and the others are there.
    """
    folder, settings = Path(folder), settings or Settings()
    with ExitStack() as stack:
        kept = Path(downloads) if downloads is not None else folder / UNFINISHED / "downloads"
        fetching = stack.enter_context(Downloads(kept))
        plan = _plan(origin, settings, packages, fetching)
        identity = {"origin": plan.origin, "settings": settings.plain(), "magnetite": __version__, "python": PYTHON}
        check_free(folder)
        if (found := _finished(folder, identity)) is not None:
            return found
        stack.enter_context(locked(folder / LOCK, str(folder)))
        remove_leftovers(folder)
        remove_leftovers(folder / UNFINISHED / "projects")
        remove_leftovers(kept)
        with start(extract, workers, ray) as pool:
            summaries, failed = _read_all(plan.projects, folder, settings, pool, fetching, progress)
        _write_corpus(folder, plan, identity, settings, summaries, failed)
        if not failed:
            remove_folder(folder / UNFINISHED)
    return load(folder, verify=False)


class Downloads:
    """Files of packages, downloaded ahead by a few threads.

    Args:
        folder: Folder for the files.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.packages: dict[str, Package] = {}
        self._index: Index | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._futures: dict[str, Future[Path]] = {}

    def __enter__(self) -> "Downloads":
        return self

    def __exit__(self, *error: object) -> None:
        if self._index is not None:
            self._index.stopped.set()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def start(self, package: Package) -> None:
        """Put a package in the queue."""
        path = self.folder / package.file
        if is_complete(path, package):
            future: Future[Path] = Future()
            future.set_result(path)
            self._futures[package.package] = future
            return
        self._index = self._index or pip_index()
        self._pool = self._pool or ThreadPoolExecutor(CONNECTIONS)
        self._futures[package.package] = self._pool.submit(self._index.fetch, package, self.folder)

    def files(self, package: Package) -> list[Member]:
        """Wait for a package and read its Python files."""
        return python_files(self._futures.pop(package.package).result())


def _plan(origin: str | Path, settings: Settings, packages: Sequence[str], downloads: Downloads) -> Plan:
    """The projects of an origin."""
    is_recipe = origin == "recipe" or (str(origin).endswith(".tsv") and not Path(origin).is_dir())
    if packages and not is_recipe:
        raise ValueError(f"packages can be chosen from a recipe only, not from {origin}")
    left_out: dict[str, list[str]] = {}
    if is_recipe:
        recipe = read_recipe(None if origin == "recipe" else origin, packages)
        description = {"from": "recipe", "recipe": recipe.fingerprint}
        projects = []
        for package in recipe.packages:
            if origin == "recipe" and package.package in LEFT_OUT:
                left_out.setdefault("generated, or a copy of another package", []).append(package.package)
            else:
                downloads.packages[package.package] = package
                read = partial(downloads.files, package)
                projects.append(Project(package.package, package.licence, read, package.sha256))
    elif origin == "stdlib":
        description, projects = {"from": "stdlib"}, standard_library()
    elif origin == "site-packages":
        description, projects = {"from": "site-packages"}, site_packages()
    else:
        description, projects = {"from": str(Path(origin).resolve())}, folder_projects(Path(origin))
    if not settings.any_licence and (is_recipe or origin == "site-packages"):
        refused = [project for project in projects if project.licence not in PERMISSIVE]
        projects = [project for project in projects if project.licence in PERMISSIVE]
        for project in refused:
            left_out.setdefault(f"{NOT_PERMISSIVE} ({project.licence})", []).append(project.name)
    return Plan(description, projects, left_out)


def _schema(columns: Sequence[str]) -> "pa.Schema":
    """The types of some columns, in this order."""
    import pyarrow as pa

    kinds = {"words": pa.list_(pa.string()), "line": pa.int32(), "method": pa.bool_(), "nodes": pa.int32()}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in columns])


def check_free(folder: Path) -> None:
    """Raise an error if a folder has anything but parts of a corpus."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: give a folder for the corpus")
    for path in foreign_files(folder):
        if path.name not in (DESCRIPTION, UNFINISHED) and not _is_shard(path):
            raise ValueError(f"{folder} has other files, such as {path.name}: choose a new or empty folder")


def _is_shard(path: Path) -> bool:
    return re.fullmatch(r"functions-\d{5}\.parquet", path.name) is not None


def _finished(folder: Path, identity: dict[str, Any]) -> Corpus | None:
    """The corpus in the folder if it is complete and undamaged; an error if it is another one."""
    if not (folder / DESCRIPTION).exists():
        if any(_is_shard(path) for path in foreign_files(folder)) and not (folder / UNFINISHED).is_dir():
            raise ValueError(f"{folder} has Parquet files, but no {DESCRIPTION}: choose a new or empty folder")
        return None
    info = read_json(folder / DESCRIPTION, "description of a corpus", "remove it, or choose another folder")
    differing = [name for name in identity if info.get(name) != identity[name]]
    if differing:
        given = ", ".join(f"{name} {info.get(name)} instead of {identity[name]}" for name in differing)
        raise ValueError(f"{folder} holds another corpus ({given}): choose another folder or remove it")
    try:
        corpus = load(folder)
    except (DamagedFile, FileNotFoundError):
        return None  # it is built again
    return corpus if corpus.complete else None


def _read_all(
    projects: list[Project],
    folder: Path,
    settings: Settings,
    pool: Workers[tuple[str, bytes, Settings], FileResult],
    downloads: Downloads,
    progress: Callable[[Progress], None] | None,
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Read all projects, and keep the functions of each in a file.

    Returns:
        The counts of each project, and what went wrong with those that failed.
    """
    summaries: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    functions = 0

    def report(name: str) -> None:
        nonlocal functions
        functions += summaries.get(name, {}).get("rows", 0)
        if progress is not None:
            progress(Progress(name, len(summaries) + len(failed), len(projects), functions, failed.get(name, "")))

    kept = {project.name: _kept(folder, project, settings) for project in projects if project.key}
    for project in projects:
        if project.name in downloads.packages and kept[project.name] is None:
            downloads.start(downloads.packages[project.name])
    pending: deque[tuple[Project, str, list[Member], list[Callable[[], list[FileResult | None]]]]] = deque()
    chunks = 0

    def collect() -> None:
        nonlocal chunks
        project, key, members, waiting = pending.popleft()
        results = [result for wait in waiting for result in wait()]
        chunks -= len(waiting)
        summaries[project.name] = _keep(folder, project, key, members, results)
        report(project.name)

    for project in projects:
        found = kept.get(project.name)
        if found is None:
            try:
                members = project.read()
            except (Unavailable, BadArchive) as error:
                failed[project.name] = str(error)
                report(project.name)
                continue
            key = _key(project.key or content_key(members), settings)
            found = None if project.key else _kept_summary(_place(folder, project), key)
            if found is None:
                jobs = [(member.path, member.content, settings) for member in members if member.content is not None]
                waiting = [pool.submit(chunk) for chunk in _chunks(jobs)]
                pending.append((project, key, [Member(m.path, None, m.problem) for m in members], waiting))
                chunks += len(waiting)
                while chunks > AHEAD * pool.count and len(pending) > 1:
                    collect()
                continue
        summaries[project.name] = found
        report(project.name)
    while pending:
        collect()
    return summaries, failed


def _chunks(jobs: list[tuple[str, bytes, Settings]]) -> Iterator[list[tuple[str, bytes, Settings]]]:
    chunk, size = [], 0
    for job in jobs:
        chunk.append(job)
        size += len(job[1])
        if size >= CHUNK_BYTES or len(chunk) >= CHUNK_FILES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _place(folder: Path, project: Project) -> Path:
    """The file for the functions of a project."""
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", project.name)[:60].lstrip(".")
    digest = blake2b(project.name.encode(), digest_size=6).hexdigest()
    return folder / UNFINISHED / "projects" / f"{readable}-{digest}.parquet"


def _key(content: str, settings: Settings) -> str:
    """What the functions of a project depend on."""
    return json.dumps([content, settings.of_extraction(), __version__, PYTHON])


def _kept(folder: Path, project: Project, settings: Settings) -> dict[str, Any] | None:
    return _kept_summary(_place(folder, project), _key(project.key, settings))


def _kept_summary(path: Path, key: str) -> dict[str, Any] | None:
    """The counts of a project that was read before; None if it was not, or if its file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        return None
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        summary = json.loads((table.schema.metadata or {})[b"magnetite"])
    except (OSError, pa.ArrowException, KeyError, ValueError):
        return None
    return summary if summary.get("key") == key and summary.get("rows") == table.num_rows else None


def _keep(
    folder: Path, project: Project, key: str, members: list[Member], results: Sequence[FileResult | None]
) -> dict[str, Any]:
    """Write the functions of a project, and return its counts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    read = [member for member in members if not member.problem]
    files, functions = Counter(member.problem for member in members if member.problem), Counter()
    problems = [[member.path, member.problem, ""] for member in members if member.problem]
    rows: list[Row] = []
    found = 0
    for member, result in zip(read, results, strict=True):
        result = result or FileResult(problem=DIED)
        if result.problem:
            files[result.problem] += 1
            problems.append([member.path, result.problem, result.details])
        rows += result.rows
        found += result.found
        functions += result.left_out
    summary = {
        "key": key,
        "rows": len(rows),
        "files": {"found": len(members), "read": len(members) - files.total(), "left_out": dict(files)},
        "functions": {"found": found, "left_out": dict(functions)},
        "problems": sorted(problems),
    }
    columns = {name: [getattr(row, name) for row in rows] for name in Row._fields}
    table = pa.table(columns, schema=_schema(Row._fields).with_metadata({"magnetite": json.dumps(summary)}))
    path = _place(folder, project)
    with replacing(path) as part:
        pq.write_table(table, part, compression="zstd", write_page_checksum=True)
    return summary


def _write_corpus(
    folder: Path,
    plan: Plan,
    identity: dict[str, Any],
    settings: Settings,
    summaries: dict[str, dict[str, Any]],
    failed: dict[str, str],
) -> None:
    """Select and split the functions of all projects, and write them with their description."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    projects = [project for project in plan.projects if project.name in summaries]
    selected = ["name", "dataflow"]
    tables = {project.name: pq.read_table(_place(folder, project), columns=selected) for project in projects}
    candidates = Candidates(
        [name for name, table in tables.items() for _ in range(table.num_rows)],
        [name for table in tables.values() for name in table["name"].to_pylist()],
        [value for table in tables.values() for value in table["dataflow"].to_pylist()],
    )
    kept, left_out = select(candidates, settings)
    with suppress(FileNotFoundError):
        (folder / DESCRIPTION).unlink()  # it does not describe the files that are written now
    shards, start = ShardWriter(folder), 0
    for project in projects:
        table = pq.read_table(_place(folder, project), page_checksum_verification=True)
        mask = kept[start : start + table.num_rows]
        start += table.num_rows
        shards.add(_with_project(table.filter(pa.array(mask)), project, split_of(project.name, settings)))
    shards.close()
    files, functions, problems = merged({project.name: summaries[project.name] for project in projects})
    functions["left_out"] = dict(Counter(functions["left_out"]) + left_out)
    functions = {"found": functions["found"], "kept": int(kept.sum()), "left_out": functions["left_out"]}
    info = {
        **identity,
        "complete": not failed,
        "fingerprint": shards.fingerprint,
        "projects": {
            "found": len(plan.projects) + sum(map(len, plan.left_out.values())),
            "read": len(projects),
            "left_out": plan.left_out,
            "failed": failed,
        },
        "files": files,
        "functions": functions,
        "splits": shards.splits,
        "statistics": shards.statistics(),
        "shards": shards.files,
        "problems": problems,
    }
    check_sums(info)
    write_json(folder / DESCRIPTION, info)


def _with_project(table: "pa.Table", project: Project, split: str) -> "pa.Table":
    import pyarrow as pa

    added = {"project": project.name, "licence": project.licence, "split": split}
    names = CorpusFunction._fields
    columns = [pa.array([added[name]] * len(table), pa.string()) if name in added else table[name] for name in names]
    return pa.table(columns, schema=_schema(names))


class ShardWriter:
    """Writes tables of functions as the Parquet files of a corpus, and counts what its description says about them.

    Args:
        folder: Folder of the corpus.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}
        self._hash = sha256()
        self._pieces: list[pa.Table] = []
        self._projects: dict[str, set[str]] = {split: set() for split in SPLITS}
        self._functions: Counter[str] = Counter()

    def add(self, table: "pa.Table") -> None:
        """Append functions; a file is written as soon as it is full."""
        import pyarrow as pa

        for split, project in zip(table["split"].to_pylist(), table["project"].to_pylist(), strict=True):
            self._projects[split].add(project)
            self._functions[split] += 1
        self._pieces.append(table)
        while self._waiting >= SHARD:
            whole = pa.concat_tables(self._pieces)
            self._write(whole.slice(0, SHARD))
            self._pieces = [whole.slice(SHARD)]

    def close(self) -> None:
        """Write the rest, and remove files of an earlier corpus."""
        import pyarrow as pa

        if self._waiting or not self.files:
            self._write(pa.concat_tables([*self._pieces, _schema(CorpusFunction._fields).empty_table()]))
        for path in foreign_files(self.folder):
            if _is_shard(path) and path.name not in self.files:
                path.unlink()

    @property
    def fingerprint(self) -> str:
        """Hash of all functions in their order."""
        return self._hash.hexdigest()

    @property
    def splits(self) -> dict[str, dict[str, int]]:
        """Number of projects and functions of each split."""
        return {
            split: {"projects": len(self._projects[split]), "functions": self._functions[split]} for split in SPLITS
        }

    def statistics(self) -> dict[str, Any]:
        """Statistics of all functions."""
        import pyarrow.parquet as pq

        return of_functions(pq.read_table(self.folder / name, columns=COUNTED) for name in self.files)

    @property
    def _waiting(self) -> int:
        return sum(piece.num_rows for piece in self._pieces)

    def _write(self, table: "pa.Table") -> None:
        import pyarrow.parquet as pq

        path = self.folder / f"functions-{len(self.files):05d}.parquet"
        with replacing(path) as part:
            # Similar functions stand side by side, which large pages let the compression use; texts and hashes are
            # unique.
            options: dict[str, Any] = {"data_page_size": PAGE, "use_dictionary": REPEATED}
            pq.write_table(table, part, compression="zstd", compression_level=12, **options)
        self.files[path.name] = {"functions": table.num_rows, "sha256": file_hash(path)}
        for row in table.to_pylist():
            self._hash.update(json.dumps(row, sort_keys=True).encode())
