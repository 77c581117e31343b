"""Users' tables: types of columns, and the line in every refusal."""

import gzip
import json

import numpy as np
import pytest

from magnetite.io.tables import read_ids, read_matrix, read_table


def matrix(tmp_path, text: str):
    path = tmp_path / "m.csv"
    path.write_text(text, encoding="utf-8")
    names, columns = read_matrix(path)
    return names, [(column.dtype.kind, column.tolist()) for column in columns]


def table(tmp_path, text: str, name: str = "t.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_table(tmp_path / name)


def test_columns_of_a_matrix_have_types_of_their_own(tmp_path):
    assert matrix(tmp_path, "1,2.5,true\n-3,4,false\n") == (
        None,
        [("i", [1, -3]), ("f", [2.5, 4]), ("b", [True, False])],
    )
    assert matrix(tmp_path, "a, b\n1,2\n") == (("a", "b"), [("i", [1]), ("i", [2])])
    names, [(kind, values)] = matrix(tmp_path, "1\n\nnan\n4\n")
    assert names is None and kind == "f" and np.isnan(values[1]) and np.isnan(values[2]) and values[3] == 4


@pytest.mark.parametrize(
    ("last", "match"), [("0.5,1", None), ("x,1", "line 400001: expected a number, got 'x'"), ("1", "line 400001 has 1")]
)
def test_types_and_lines_far_below_the_first_block(last, match, tmp_path):
    text = "1,2\n" * 400_000 + last + "\n"
    if match is None:
        (tmp_path / "m.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
        first, second = read_matrix(tmp_path / "m.csv.gz")[1]
        assert first.dtype.kind == "f" and first[-1] == 0.5 and second.dtype.kind == "i"  # the others stay integers
    else:
        with pytest.raises(ValueError, match=match):
            matrix(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("a,a\n1,2\n", "two columns 'a'"),
        ("a,b\n1\n2\n", "line 2 has 1 columns"),
        ('1\n"\n', "m.csv"),
        ("a,\n1,2\n", "column 2 .* no name"),
    ],
)
def test_matrices_without_numbers_are_refused(text, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        matrix(tmp_path, text)


def test_ids_may_have_a_name(tmp_path):
    (tmp_path / "ids.csv").write_text("id\n3\n1\n")
    assert read_ids(tmp_path / "ids.csv").tolist() == [3, 1]


def test_columns_of_a_table(tmp_path):
    found = table(
        tmp_path,
        'name,n,f,gap,flag,text,under\n"a, b",1,1.5,,true,x,1_0\n\nc,2,2,3,False,"say ""y""",2_0\n',
    )
    assert found.texts("name") == ["a, b", "c"] and list(found.lines) == [2, 4]
    assert found.values("n").dtype == np.int64 and found.values("f").tolist() == [1.5, 2]
    assert np.isnan(found.values("gap")[0]) and found.values("flag").tolist() == [True, False]
    assert found.values("text") == ["x", 'say "y"'] and found.values("under") == ["1_0", "2_0"]


def test_numbers_and_text_are_not_mixed(tmp_path):
    with pytest.raises(ValueError, match=r"line 2: column 'y' is '1', but line 3 has the text 'l'"):
        table(tmp_path, "y,z\n1,1\nl,1\n").values("y")


def test_names_with_numbers_are_one_column_of_lists(tmp_path):
    found = table(tmp_path, "v[1],v[0],w\n1,2,3\n4,5,6\n")
    assert found.values("v").tolist() == [[2, 1], [5, 4]] and set(found.columns) == {"v", "w"}
    with pytest.raises(ValueError, match=r"must be v\[0\] to v\[1\]"):
        table(tmp_path, "v[1],v[2]\n1,2\n")
    with pytest.raises(ValueError, match=r"column 'v\[0\]' must have numbers"):
        table(tmp_path, "v[0]\nx\n")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("[1]", "list of objects"),
        ('{"a": [1], "b": []}', "different lengths"),
        ('{"a": 1}', "list of objects"),
        ("[{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_other_json_is_refused(content, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        table(tmp_path, content, "t.json")


def test_json_keeps_lists_and_gaps(tmp_path):
    rows = [{"a": 1, "b": [1, 2.5]}, {"b": [3, 4]}]
    found = table(tmp_path, json.dumps(rows), "t.json")
    assert found.values("b").tolist() == [[1, 2.5], [3, 4]] and np.isnan(found.values("a")[1])


def test_integers_beyond_64_bits_are_floats(tmp_path):
    rows = [{"a": 2**64, "b": [1, 2**64]}, {"a": 1, "b": [True, -(2**63)]}]
    found = table(tmp_path, json.dumps(rows), "t.json")
    assert found.values("a").tolist() == [2.0**64, 1] and found.values("a").dtype == np.float64
    assert found.values("b").tolist() == [[1, 2.0**64], [1, -(2.0**63)]] and found.values("b").dtype == np.float64


@pytest.mark.parametrize("cell", [10**400, [0.5, -(10**400)]], ids=["number", "list"])
def test_integers_beyond_any_float_are_refused_with_their_row(tmp_path, cell):
    found = table(tmp_path, json.dumps([{"a": [1, 2] if isinstance(cell, list) else 1}, {"a": cell}]), "t.json")
    with pytest.raises(ValueError, match=r"t\.json row 2: 'a' has an integer of 401 digits, which is too large"):
        found.values("a")


def test_files_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    (tmp_path / "t.parquet").write_bytes(b"nothing")
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(ValueError, match="cannot be read"):
            read_table(tmp_path / name)
