"""The model of sorting networks that comes with the explorer: measured, and described in a card."""

import json
import shutil

import pytest
import torch

import magnetite as mt
from magnetite.explorer import judge as shown
from magnetite.io.storage import read_json, write_json
from magnetite.sorting import SortingNetworks
from paper import judge, known
from paper.shipping import CARD, TEXT

SMALL = {
    "task.train": 8, "task.valid": 8, "task.test": 8, "task.train_longest": 4, "task.valid_longest": 5,
    "task.longest": 6, "task.inputs": 4, "model.width": 8, "model.steps": 1, "optim.batch": 8, "data.pool": 16,
    "run.evaluate_every": 1.0,
}  # fmt: skip


TABLES = ("encoding", "model", "optim", "data", "run")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    mt.train("sorting", preset="inputs", out=folder, device="cpu", settings=SMALL)
    return folder


def test_the_folder_has_the_model_of_the_run_and_a_card(run, tmp_path, monkeypatch):
    out = tmp_path / "model"
    card = judge.ship(run, out, tmp_path / "results", pairs=6)
    assert {path.name for path in out.iterdir()} == {"model.json", "model.safetensors", CARD, TEXT}
    assert read_json(out / CARD, "card", "") == json.loads(json.dumps(card))
    assert (out / TEXT).read_text(encoding="utf-8") == judge.text_of(card)
    assert (tmp_path / "results" / "sorting-model.json").is_file()
    assert {row["length"] for row in card["metrics"]} == {3, 4, 5, 6}
    monkeypatch.setattr(shown, "SHIPPED", out)
    shown.load_judge.cache_clear()
    networks = SortingNetworks.from_networks([mt.sorting.batcher(4), mt.sorting.batcher(5)])
    [ours, theirs] = (
        shown.probabilities(model, networks)
        for model in (shown.load_judge(), mt.nn.load(run / "checkpoints" / f"best-{card['run']['best_step']:08}"))
    )
    assert torch.equal(ours, theirs)
    # Random inputs do not depend on the place of a network among others.
    first, second = shown.probabilities(shown.load_judge(), SortingNetworks.from_networks([mt.sorting.batcher(10)] * 2))
    torch.testing.assert_close(first, second)
    assert shown.accuracy(4)["rows"] == [row for row in card["metrics"] if row["length"] == 4]
    shown.load_judge.cache_clear()


def test_known_networks_are_judged_beside_the_execution_of_their_inputs(run, tmp_path):
    known.main([run], tmp_path, "cpu")
    ours, executed = read_json(tmp_path / "known-networks.json", "result", "")["result"]["rows"]
    assert (ours["run"], executed["run"]) == ("tiny", "tiny: its inputs, executed")
    assert ours["training"]["graphs_seen"] == 16
    assert executed["smallest"] == 1
    assert 0.5 < executed["balanced accuracy"] <= 1


def test_a_run_that_was_stopped_is_shipped_and_says_so(run, tmp_path):
    stopped = tmp_path / "stopped"
    shutil.copytree(run, stopped)
    (stopped / "result.json").unlink()
    card = judge.ship(stopped, tmp_path / "model", tmp_path / "results", pairs=6)
    assert not card["run"]["complete"]
    assert card["run"]["graphs_seen"] == 16
    assert "it was stopped there, before the 16" in judge.text_of(card)


def test_every_kind_has_the_label_that_the_card_counts_it_as():
    for kind, (correct, wrong) in judge.kinds_of(5, 12).items():
        assert bool(correct.is_correct().all()), kind
        assert not bool(wrong.is_correct().any()), kind
        assert set(judge.WORDS) >= {kind}


def test_a_run_of_another_task_is_refused(tmp_path):
    write_json(tmp_path / "run" / "config.json", {"task": {"name": "distances"}, **{table: {} for table in TABLES}})
    with pytest.raises(ValueError, match="give one of the task sorting"):
        judge.ship(tmp_path / "run", tmp_path / "model")


@pytest.mark.skipif(not (shown.SHIPPED / CARD).is_file(), reason="no model is shipped")
def test_the_shipped_card_is_that_of_the_shipped_model():
    card = read_json(shown.SHIPPED / CARD, "card", "")
    assert (shown.SHIPPED / TEXT).read_text(encoding="utf-8") == judge.text_of(card)
    assert sum(path.stat().st_size for path in shown.SHIPPED.iterdir()) <= judge.LIMIT
    assert shown.load_judge().parameter_count == card["run"]["parameters"]
