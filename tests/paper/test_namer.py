"""The model that comes with magnetite: compressed to the limit, measured, and described in a card."""

import json

import pytest

from magnetite.code import corpus, names
from magnetite.code.corpus.settings import Settings
from magnetite.code.names import CARD, SHIPPED
from magnetite.io.storage import read_json, write_json
from magnetite.tasks.namer import Namer
from magnetite.tasks.naming import SubwordNodes
from paper import namer as shipping
from paper.namer import LIMIT, TEXT, by_hash, outcomes, reliability, scores, ship, text_of, trimmed
from paper.table_code import measure_baselines
from tests.code.tiny_namer import tiny_namer

FUNCTION = "def {verb}_{noun}(x):\n    y = x + {number}\n    y = y * x\n    return y\n\n"
WORDS = ("get", "set", "read", "write")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for project in range(12):
        source = "".join(
            FUNCTION.format(verb=verb, noun="value" if project % 2 else "file", number=10 * project + number)
            for number, verb in enumerate(WORDS)
        )
        (folder / "projects" / f"p{project}").mkdir(parents=True)
        (folder / "projects" / f"p{project}" / "a.py").write_text(source)
    settings = Settings(any_licence=True, shares=(0.5, 0.25, 0.25), seed=1)
    corpus.write(str(folder / "projects"), folder / "corpus", settings, 1)
    return folder / "corpus"


@pytest.fixture
def run(tmp_path, data):
    """The files of a run that matter here; the model lies beside them instead of in a checkpoint."""
    folder = tmp_path / "run"
    tiny_namer().save(folder)
    fingerprint = corpus.load(data).info["fingerprint"][:16]
    task = {"name": "naming", "data": str(data), "fingerprint": fingerprint}
    write_json(
        folder / "config.json", {"task": task, **{name: {} for name in ("encoding", "model", "optim", "data", "run")}}
    )
    result = {"parameters": 7, "graphs_seen": 8, "seconds_of_training": 90.0, "best_step": 9}
    about = {"seed": 3, "commit": "abc", "device": "a machine", "versions": {}, "date": "today"}
    figures = {"test": {"f1": 0.125, "f1_dropped": 0.25, "loss": 2.0}}
    write_json(folder / "result.json", {**about, "result": {**result, "figures": figures}})
    return folder


def test_the_folder_has_everything_and_answers_like_the_run(run, data, tmp_path):
    out = tmp_path / "namer"
    card = ship(run, out, tmp_path / "results", count=10)
    assert {path.name for path in out.iterdir()} == {
        "model.json", "model.safetensors", "vocabulary.json", CARD, TEXT,
    }  # fmt: skip
    assert card["files"]["precision"] == "float16"
    assert card["metrics"]["same_first_proposal"] == 1
    assert read_json(out / CARD, "card", "") == json.loads(json.dumps(card))
    assert names.unlikely(out) == card["unlikely"]
    text = (out / TEXT).read_text()
    assert text == text_of(card)
    assert "0.1250" in text
    assert sum(card["data"]["licences"].values()) == card["data"]["splits"]["train"]["functions"]
    result = json.loads((tmp_path / "results" / "namer.json").read_text())["result"]
    assert [example["name"] for example in result["examples"]] == [
        each.name for each in by_hash(corpus.load(data), "test", 10)
    ]
    assert all(len(example["proposals"]) == 5 for example in result["examples"])


def test_the_card_compares_with_baselines_of_the_same_corpus(run, data, tmp_path, monkeypatch):
    monkeypatch.setattr("magnetite.code.functions.cache_home", lambda: tmp_path / "cache")
    results = tmp_path / "results"
    with pytest.raises(ValueError, match="has no results of nearest on this corpus: run"):
        ship(run, tmp_path / "namer", results, count=4, baselines=results)
    measure_baselines(data, results)
    card = ship(run, tmp_path / "namer", results, count=4, baselines=results, about="some projects")
    found = card["metrics"]["baselines"]
    assert found.keys() == {"nearest", "frequent"}
    assert all(each["functions"] == card["data"]["splits"]["test"]["functions"] for each in found.values())
    assert f"| nearest neighbours by TF-IDF | {found['nearest']['f1']:.4f} |" in text_of(card)
    assert "; some projects)" in text_of(card)
    path = results / "code" / "nearest-seed0.json"
    content = read_json(path, "", "")
    write_json(path, {**content, "result": {**content["result"], "fingerprint": "0"}})
    with pytest.raises(ValueError, match="on this corpus"):
        ship(run, tmp_path / "namer", results, count=4, baselines=results)


def test_a_second_model_replaces_the_first(run, tmp_path):
    out = tmp_path / "namer"
    ship(run, out, tmp_path / "results", count=4)
    (out / "other").touch()
    ship(run, out, tmp_path / "results", count=4)
    assert not (out / "other").exists()


def test_a_model_that_does_not_fit_loses_precision_then_rare_texts(run, tmp_path):
    sizes = {precision: save(tiny_namer(), tmp_path / precision, precision) for precision in ("float16", "int8")}
    assert sizes["int8"] < sizes["float16"]
    room = shipping.CARD_ROOM
    card = ship(run, tmp_path / "a", tmp_path, count=4, limit=sizes["int8"] + room)
    assert card["files"]["precision"] == "int8"
    assert card["files"]["attributes"] == card["files"]["attributes_of_the_run"]
    card = ship(run, tmp_path / "b", tmp_path, count=4, limit=sizes["int8"] + room - 60)
    assert 0 < card["files"]["attributes"] < card["files"]["attributes_of_the_run"]
    assert "to fit, the rarest" in text_of(card)
    with pytest.raises(ValueError, match=r"the model has .* MiB as int8, .*: train one of a smaller width"):
        ship(run, tmp_path / "c", tmp_path, count=4, limit=room + 100)
    assert not (tmp_path / "c").exists()


def save(namer, folder, precision):
    namer.save(folder, precision)
    return sum(path.stat().st_size for path in folder.iterdir())


def test_trimming_leaves_the_answers_for_known_texts():
    whole = tiny_namer()
    kept = trimmed(whole, 0.5)
    assert kept.vocabularies.attributes == whole.vocabularies.attributes[:6]
    known = "def f(self, x):\n    return self.value + x"
    assert {"self", "x", "value"} <= set(kept.vocabularies.attributes)
    assert kept.propose([known]) == whole.propose([known])
    assert kept.propose([f"{known} + 1"]) != whole.propose([f"{known} + 1"])


def test_words_of_attributes_are_trimmed_as_well():
    description = {"class": "Summed", "parts": [{"class": "SubwordNodes", "size": 9, "dropout": 0.0}]}
    assert shipping._resized(description, 3, 5)["parts"][0]["size"] == 5
    assert SubwordNodes(5).size == 5


def test_reliability():
    found = reliability([(0.95, True, 1.0), (1.0, False, 0.5), (0.12, False, 0.0)])
    assert [(row["from"], row["functions"], row["exact"], row["f1"]) for row in found["bins"]] == [
        (0.1, 1, 0.0, 0.0),
        (0.9, 2, 0.5, 0.75),
    ]
    assert found["error"] == pytest.approx((0.12 + 2 * 0.475) / 3, abs=1e-3)
    assert reliability([]) == {"bins": [], "error": 0.0}


def test_scores_of_proposals(data):
    functions = by_hash(corpus.load(data), "test", 2)
    right, wrong = functions[0].words, ["other"]
    answers = [([(right, 0.5), (wrong, 0.1)], 0.2), ([(wrong, 0.5), (functions[1].words, 0.1)], 0.2)]
    assert scores(functions, answers) == {"f1": 0.5, "exact": 0.5, "exact_of_five": 1.0, "answered": 1.0}
    assert outcomes(functions, answers) == [(0.5, True, 1.0), (0.5, False, 0.0)]
    assert scores(functions, [([], None)] * 2)["answered"] == 0
    assert outcomes(functions, [([], None)] * 2) == []


def test_refusals(run, data, tmp_path):
    with pytest.raises(ValueError, match="is not a corpus"):
        ship(run, tmp_path / "out", tmp_path, data=tmp_path)
    config = read_json(run / "config.json", "", "")
    write_json(run / "config.json", {**config, "task": {**config["task"], "fingerprint": "0"}})
    with pytest.raises(ValueError, match="is not the corpus of the run"):
        ship(run, tmp_path / "out", tmp_path)
    write_json(run / "config.json", {**config, "task": {"name": "sorting"}})
    with pytest.raises(ValueError, match="is a run of the task sorting: give one of the task naming"):
        ship(run, tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_the_card_of_the_shipped_model_follows_from_its_numbers():
    if not (SHIPPED / CARD).is_file():
        pytest.skip("the model is not trained yet")
    card = read_json(SHIPPED / CARD, "card", "")
    assert (SHIPPED / TEXT).read_text(encoding="utf-8") == text_of(card)
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) <= LIMIT
    assert Namer.load(SHIPPED).vocabularies.mask == "strict"
