"""A corpus of functions as one small file, to take it to a machine with a GPU.

    python -m paper pack-code CORPUS corpus.xz      # 210,000 functions take 36 MiB
    python -m paper unpack-code corpus.xz CORPUS    # there

What training, baselines and robustness read stays, and so does the fingerprint: sources, names, words, projects and
splits of all functions, and the hashes and places of those of the test split. Similar functions lie side by side, so a
compressor with a large window needs a seventh of the room.
"""

import io
import lzma
import tarfile
import tempfile
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from magnetite.code import corpus
from magnetite.code.corpus.stored import DESCRIPTION, file_hash
from magnetite.io.storage import CHECKSUM, DamagedFile, replacing, replacing_folder, write_json

KEPT = ("source", "name", "words", "project", "method", "nodes", "split")
"""Columns that are kept of all functions; others have their values for the test split only."""

WINDOW = 2**28
"""Bytes in which the compressor looks for repetitions; it needs ten times, and unpacking once, as much memory."""

packer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
unpacker = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@packer.command("pack-code")
def pack(
    folder: Annotated[Path, typer.Argument(help="Folder of a corpus.")],
    file: Annotated[Path, typer.Argument(help="File to write.")],
) -> None:
    """Write a corpus as one small file."""
    info = dict(corpus.load(folder).info)
    with tempfile.TemporaryDirectory() as name:
        part = Path(name)
        for shard, entry in info["shards"].items():
            table = _without_unread(pq.read_table(folder / shard))
            pq.write_table(table, part / shard, compression="none", use_dictionary=False)
            entry["sha256"] = file_hash(part / shard)
        write_json(part / DESCRIPTION, {key: value for key, value in info.items() if key != CHECKSUM})
        joined = io.BytesIO()
        with tarfile.open(fileobj=joined, mode="w") as tar:
            for path in sorted(part.iterdir()):
                tar.add(path, path.name)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 7, "dict_size": WINDOW}]
    with replacing(file) as target:
        target.write_bytes(lzma.compress(joined.getvalue(), format=lzma.FORMAT_XZ, filters=filters))
    typer.echo(f"{file}: {joined.tell() / 2**20:.1f} MiB in {file.stat().st_size / 2**20:.1f} MiB")


@unpacker.command("unpack-code")
def unpack(
    file: Annotated[Path, typer.Argument(help="File that `pack-code` wrote.")],
    folder: Annotated[Path, typer.Argument(help="Folder of the corpus; it must not exist.")],
) -> None:
    """Write the corpus of a packed file."""
    if folder.exists():
        raise ValueError(f"{folder} exists: choose another folder or remove it")
    try:
        content = lzma.decompress(file.read_bytes())
        with tarfile.open(fileobj=io.BytesIO(content)) as tar, replacing_folder(folder) as part:
            for member in tar.getmembers():
                found = tar.extractfile(member)
                if found is None or Path(member.name).name != member.name:
                    raise DamagedFile(f"{file} has the member {member.name!r}: it is not a file of `pack-code`")
                (part / member.name).write_bytes(found.read())
            corpus.load(part)
    except (lzma.LZMAError, tarfile.TarError, EOFError) as error:
        raise DamagedFile(f"{file} is not a whole file of `pack-code` ({error}): pack the corpus again") from error


def _without_unread(table: pa.Table) -> pa.Table:
    """The table with empty values in columns that are not read of functions outside the test split."""
    test = [split == "test" for split in table["split"].to_pylist()]
    for place, field in enumerate(table.schema):
        if field.name not in KEPT:
            empty = 0 if pa.types.is_integer(field.type) else ""
            values = [value if kept else empty for value, kept in zip(table[field.name].to_pylist(), test, strict=True)]
            table = table.set_column(place, field, pa.array(values, field.type))
    return table
