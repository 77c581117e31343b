"""A packed corpus has the same functions, splits and fingerprint."""

import pytest

from magnetite.code import corpus
from magnetite.code.corpus import Settings
from magnetite.io.storage import DamagedFile
from paper.pack_code import pack, unpack

SOURCE = "def total_{n}(values):\n    total = {n}\n    for value in values:\n        total += value\n    return total\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("packed")
    for number in range(12):
        (home / "source" / f"p{number}").mkdir(parents=True)
        (home / "source" / f"p{number}" / "m.py").write_text(SOURCE.format(n=number))
    corpus.write(home / "source", home / "corpus", Settings(shares=(0.5, 0.25, 0.25)), workers=1)
    return home / "corpus"


def test_a_packed_corpus_is_the_same(folder, tmp_path):
    pack(folder, tmp_path / "corpus.xz")
    unpack(tmp_path / "corpus.xz", tmp_path / "again")
    one, two = corpus.load(folder), corpus.load(tmp_path / "again")
    assert one.info["fingerprint"] == two.info["fingerprint"]
    assert len(one) == len(two)
    assert {each.split for each in one.functions()} == {"train", "valid", "test"}
    for before, after in zip(one.functions(), two.functions(), strict=True):
        assert (before.source, before.name, before.words) == (after.source, after.name, after.words)
        assert (before.project, before.method, before.split) == (after.project, after.method, after.split)
        assert after == before if before.split == "test" else after.dataflow == ""
    with pytest.raises(ValueError, match="exists: choose another folder"):
        unpack(tmp_path / "corpus.xz", tmp_path / "again")


def test_a_damaged_file_is_named(folder, tmp_path):
    file = tmp_path / "corpus.xz"
    pack(folder, file)
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(DamagedFile, match=r"corpus\.xz is not a whole file of `pack-code`"):
        unpack(file, tmp_path / "again")
    assert not (tmp_path / "again").exists()
