import gzip
import json
import random

import numpy as np
import pytest

from magnetite.io import streams
from magnetite.io.storage import DamagedFile
from magnetite.io.streams import IntegerRows, json_rows, text_lines

TEXTS = ["", "a", "é\U0001f600", 'quote " and \\ backslash', "line\nline\r\n", "\x00", "]],[[", "/" * 100, "\u2028"]


@pytest.fixture(params=[1, 7, 2**20])
def part(request, monkeypatch):
    """Parts so short that every value is cut somewhere, and the usual ones."""
    monkeypatch.setattr(streams, "PART", request.param)
    return request.param


@pytest.mark.parametrize("spaces", [None, 1])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_rows_wherever_the_text_is_cut(tmp_path, part, spaces, ascii_only):
    table = {"columns": ["id", "code"], "index": [0, 10, 200], "data": [[12345, text] for text in TEXTS]}
    path = tmp_path / "table.json.gz"
    path.write_bytes(gzip.compress(json.dumps(table, indent=spaces, ensure_ascii=ascii_only).encode()))
    assert list(json_rows(path, "code")) == TEXTS
    assert list(json_rows(path, "id")) == [12345] * len(TEXTS)


def test_an_empty_table(tmp_path, part):
    path = tmp_path / "table.json"
    path.write_text('{"columns":["code"],"index":[],"data":[]}')
    assert list(json_rows(path, "code")) == []


def test_a_text_without_an_end_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "PART", 64)
    monkeypatch.setattr(streams, "LONGEST", 1000)
    path = tmp_path / "table.json"
    path.write_text('{"columns":["code"],"index":[],"data":[["' + "x" * 100_000)
    reads = []
    monkeypatch.setattr(streams._Text, "_more", _counted(streams._Text._more, reads))
    with pytest.raises(DamagedFile, match=r"table\.json is not valid JSON: Unterminated string"):
        list(json_rows(path, "code"))
    assert len(reads) < 30


def _counted(function, calls):
    def counted(self):
        calls.append(1)
        return function(self)

    return counted


def test_rows_are_those_of_the_file_however_they_are_taken(tmp_path):
    generator = random.Random(0)
    rows = np.array([[generator.randrange(-5, 10**12) for _ in range(2)] for _ in range(1000)])
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress("".join(f"{a},{b}\n" for a, b in rows).encode()))
    for _ in range(5):
        found, reader, at = [], IntegerRows(path, 2), 0
        while at < 900:
            count = generator.randrange(100)
            if generator.random() < 0.5:
                found.append((at, reader.take(count, "x")))
                assert found[-1][1].shape == (count, 2)
            else:
                reader.skip(count, "x")
            at += count
        assert all(np.array_equal(part, rows[start : start + len(part)]) for start, part in found)
        assert np.array_equal(reader.rest(), rows[at:])
    with pytest.raises(DamagedFile, match=r"rows\.csv\.gz ends after 1000 rows, but 1001 are needed"):
        IntegerRows(path, 2).take(1001, "1001 are needed")
    with pytest.raises(DamagedFile, match=r"rows\.csv\.gz has 1000 rows, but none is needed"):
        IntegerRows(path, 2).finish("none is needed")


def test_files_that_are_missing_or_not_compressed_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.csv\.gz does not exist"):
        IntegerRows(tmp_path / "no.csv.gz").rest()
    (tmp_path / "plain.csv.gz").write_text("1\n2\n")
    for read in (lambda path: IntegerRows(path).rest(), lambda path: list(text_lines(path))):
        with pytest.raises(DamagedFile, match=r"plain\.csv\.gz cannot be read"):
            read(tmp_path / "plain.csv.gz")
    (tmp_path / "latin.txt").write_bytes("é\n".encode("latin-1"))
    with pytest.raises(DamagedFile, match=r"latin\.txt cannot be read .*utf-8"):
        list(text_lines(tmp_path / "latin.txt"))
