import pytest

from magnetite.code.corpus import load, sample, write
from tests.code.corpus.fake_index import module


@pytest.fixture
def corpus(tmp_path):
    """Four projects with 2, 4, 6 and 8 functions."""
    for number in range(4):
        folder = tmp_path / "projects" / f"project{number}"
        folder.mkdir(parents=True)
        names = [f"item{number}_{place}" for place in range(2 * number + 2)]
        bodies = [module(name).replace("return", f"x = {place}\n    return") for place, name in enumerate(names)]
        (folder / "code.py").write_text("\n".join(bodies))
    return write(tmp_path / "projects", tmp_path / "corpus", workers=1)


def test_a_sample_is_a_corpus_of_the_same_functions(corpus, tmp_path):
    every = {function.dataflow: function for function in corpus.functions()}
    found = sample(corpus, tmp_path / "sample", len(corpus) // 2)
    functions = list(load(tmp_path / "sample").functions())
    assert 0 < len(found) == len(functions) <= len(corpus) // 2
    assert all(every[function.dataflow] == function for function in functions)
    assert found.info["fingerprint"] != corpus.info["fingerprint"]
    assert sum(split["functions"] for split in found.info["splits"].values()) == len(found)


def test_a_sample_depends_on_the_seed_only(corpus, tmp_path):
    first, again, other = (
        sample(corpus, tmp_path / f"sample{number}", len(corpus) // 2, seed) for number, seed in enumerate((0, 0, 1))
    )
    assert first.info["fingerprint"] == again.info["fingerprint"] != other.info["fingerprint"]


def test_a_large_sample_is_the_whole(corpus, tmp_path):
    found = sample(corpus, tmp_path / "sample", 10**6)
    assert len(found) == len(corpus)
    assert found.info["fingerprint"] == corpus.info["fingerprint"]


def test_rejected_samples(corpus, tmp_path):
    with pytest.raises(ValueError, match="functions must be a positive integer, got 0"):
        sample(corpus, tmp_path / "sample", 0)
    with pytest.raises(ValueError, match="has a corpus already"):
        sample(corpus, corpus.folder, 5)
