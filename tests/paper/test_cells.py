"""Training runs of figures, the store of their results, and the figures."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from magnetite.io.record import read_record
from magnetite.io.storage import DamagedFile, write_json
from paper import best, cells, hypotheses, playground, sorting
from paper.__main__ import TRAINED
from paper.cells import Cell, Request, train_missing
from paper.store import Store

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = {
    "task": {"train": 60, "valid": 12, "test": 8, "train_longest": 7, "valid_longest": 8},
    "model": {"name": "transformer", "width": 32, "layers": 1},
    "optim": {"batch": 20, "epochs": 0.34},
}


def fake(config: dict, value: float, seen: int = 100) -> dict:
    """A finished cell in which every metric has the same value."""
    names = (
        "f1",
        "rmse",
        "accuracy",
        "precision",
        "recall",
        *(f"{name}/{n}" for name in ("accuracy", "f1", "auc") for n in range(12, 17)),
    )
    figures = {"valid": dict.fromkeys(names, value), "test": dict.fromkeys(names, value)}
    details = {"hash": "", "best_step": 1, "seconds_of_training": 1.0, "graphs_per_second": 1.0, "parameters": 1}
    result = {"figures": figures, "graphs_seen": seen, "config": config, **details}
    return {"commit": "", "device": "", "date": "", "seconds": 1.0, "seed": 0, "result": result}


def keep(cell: Cell, request: Request, value: float, seen: int = 100) -> None:
    path = cell.path(request)
    write_json(path, fake(cell.config(request).to_dict(), value, seen))


@pytest.mark.parametrize("model", [{}, {"model": {"name": "relations", "width": 32, "state": 8, "wires": 7}}])
def test_a_cell_is_trained_once(tmp_path, monkeypatch, capsys, model):
    request = Request(tmp_path / "results", runs=tmp_path / "runs", device="cpu")
    cell = Cell("first", "sorting", "none", TINY | model, "quick")
    found = train_missing([cell], request)
    assert found["first"].graphs_seen == 40
    assert [path.name for path in (request.out / "cells").glob("*.json")] == [cell.path(request).name]
    monkeypatch.setattr(cells.runs, "train", lambda *_: pytest.fail("trained twice"))
    assert train_missing([cell], request) == train_missing([cell], replace(request)) == found
    capsys.readouterr()


def test_a_cell_in_progress_in_another_process_is_skipped(tmp_path, monkeypatch, capsys):
    request = Request(tmp_path / "results", runs=tmp_path / "runs", device="cpu")
    cell = Cell("first", "sorting", "none", TINY, "quick")
    monkeypatch.setattr(cells.runs, "train", lambda *_: pytest.fail("trained twice"))
    with cells.lock(cell, request):
        assert train_missing([cell], request) == {}
    assert "in progress in another process" in capsys.readouterr().err


def test_a_result_of_another_process_is_found(tmp_path, monkeypatch):
    request, cell = Request(tmp_path), Cell("first", "sorting", "none", TINY, "quick")
    assert cell.result(request) is None
    keep(cell, request, 0.5)
    monkeypatch.setattr(cells.runs, "train", lambda *_: pytest.fail("trained twice"))
    assert train_missing([cell], request)["first"].metrics["f1"] == 0.5


def test_every_file_is_read_once(tmp_path, monkeypatch):
    request = Request(tmp_path)
    for cell in sorting.encoding_cells():
        keep(cell, request, 0.5)
    read = []
    monkeypatch.setattr("paper.store.read_record", lambda path: read.append(path) or read_record(path))
    TRAINED["figure-sorting"](request)
    TRAINED["claims"](request)
    assert sorted(read) == sorted({cell.path(request) for cell in sorting.encoding_cells()})


def test_another_budget_is_another_cell(tmp_path):
    request, cell = Request(tmp_path), sorting.encoding_cells()[0]
    assert cell.path(request) != cell.path(Request(tmp_path, budget=0.1))
    assert cell.config(Request(tmp_path, budget=0.1)).optim.budget == 0.1
    keep(cell, request, 0.5, seen=10)
    keep(cell, Request(tmp_path, budget=0.1), 0.7, seen=20)
    assert Store(tmp_path).longest(cell.name).graphs_seen == 20


def test_of_equally_long_trainings_the_lowest_seed_counts(tmp_path):
    cell, request = sorting.encoding_cells()[0], Request(tmp_path)
    keep(cell, request, 0.5)
    other = read_record(cell.path(request)) | {"seed": 7}
    write_json(tmp_path / "cells" / f"{cell.name}-000000000000.json", other)
    assert Store(tmp_path).longest(cell.name).content["seed"] == 0


def test_a_result_without_metrics_is_an_error(tmp_path):
    cell, request = sorting.encoding_cells()[0], Request(tmp_path)
    keep(cell, request, 0.5)
    write_json(cell.path(request), {"result": {"config": {}}})
    with pytest.raises(DamagedFile, match=r"missing: figures, graphs_seen\): delete it"):
        train_missing([cell], request)


def test_no_train_trains_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cells.runs, "train", lambda *_: pytest.fail("trained"))
    TRAINED["figure-quick"](Request(tmp_path, train=False))
    assert "nothing trained yet" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []  # no figure of nothing


@pytest.mark.parametrize("figure", ["figure-quick", "figure-q-sweep", "figure-sorting", "claims", "hypotheses"])
@pytest.mark.parametrize("kept", [0, 1])
def test_measured_values_are_not_replaced_by_missing_ones(tmp_path, capsys, figure, kept):
    """A figure whose cells are gone, all or some of them, stays as it is."""
    cells = {
        "figure-quick": playground.quick_cells,
        "figure-q-sweep": sorting.potential_cells,
        "hypotheses": lambda: [cell for one in hypotheses.hypotheses() for cell in one.cells],
    }.get(figure, sorting.encoding_cells)()
    for cell in cells:
        keep(cell, Request(tmp_path), 0.5)
    TRAINED[figure](Request(tmp_path, train=False))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert f"{figure}.json" in before
    for cell in cells[kept:]:
        cell.path(Request(tmp_path)).unlink()
    if kept or figure in ("claims", "hypotheses"):
        with pytest.raises(ValueError, match=r"missing in the new figure: train the cell first, or pass another"):
            TRAINED[figure](Request(tmp_path, train=False))
    else:
        TRAINED[figure](Request(tmp_path, train=False))
        assert "not written, because no cell has been trained" in capsys.readouterr().out
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    capsys.readouterr()


@pytest.mark.parametrize("other", [{"budget": 0.5}, {"seed": 1}])
def test_a_shorter_training_does_not_overwrite_a_figure(tmp_path, capsys, other):
    keep(playground.quick_cells()[0], Request(tmp_path), 0.5)
    TRAINED["figure-quick"](Request(tmp_path, train=False))
    before = (tmp_path / "figure-quick.json").read_text()
    with pytest.raises(ValueError, match="has budget 1 and seed 0: pass another folder as --out"):
        TRAINED["figure-quick"](Request(tmp_path, train=False, **other))
    assert (tmp_path / "figure-quick.json").read_text() == before
    capsys.readouterr()


def test_out_must_be_a_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="must be a folder, got the file"):
        Request(tmp_path / "file")


def test_new_options_have_their_defaults_in_old_results(tmp_path):
    cell, request = sorting.encoding_cells()[0], Request(tmp_path)
    keep(cell, request, 0.5)
    content = read_record(cell.path(request))
    del content["result"]["config"]["encoding"]["magnetic"]["scaling"]
    path = cell.path(request).rename(tmp_path / "cells" / f"{cell.name}-0123456789ab.json")
    write_json(path, content)
    assert cell.result(Request(tmp_path)).content == content
    content["result"]["config"]["encoding"]["magnetic"]["colour"] = "red"
    write_json(path, content)
    assert cell.result(Request(tmp_path)) is None
    assert Store(tmp_path).longest(cell.name).content == content


@pytest.mark.parametrize(
    ("figure", "made"),
    [
        ("figure-sorting", sorting.encoding_cells),
        ("figure-q-sweep", sorting.potential_cells),
        ("figure-gnn", sorting.message_cells),
        ("figure-playground", playground.playground_cells),
        ("figure-walks", playground.walk_cells),
        ("figure-quick", playground.quick_cells),
        ("figure-quick-sorting", best.quick_cells),
        ("figure-tried-sorting", best.candidate_cells),
        ("figure-best-sorting", best.sorting_cells),
        ("figure-best-distance", best.distance_cells),
    ],
)
def test_figures(tmp_path, figure, made, capsys):
    request = Request(tmp_path)
    every = made()
    assert len({cell.name for cell in every}) == len(every)
    assert len({cell.path(request) for cell in every}) == len(every)
    for cell in every:
        keep(cell, request, 0.5)
    TRAINED[figure](request)
    printed = capsys.readouterr().out
    assert "0.5000" in printed
    if figure == "figure-playground":  # nothing is cut on a terminal of 80 columns
        assert all(printed.count(f" {name} ") == len(playground.KINDS) for name in ("walks", "magnetic-signnet"))
    assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{figure}.svg").exists()
    assert len(json.loads((tmp_path / f"{figure}.json").read_text())["result"]["cells"]) == len(every)


def test_redrawing_keeps_the_file_of_numbers(tmp_path, capsys):
    request = Request(tmp_path, train=False)
    for cell in sorting.encoding_cells():
        keep(cell, request, 0.5)
    sorting.figure_sorting(request)
    before = (tmp_path / "figure-sorting.json").read_bytes()
    (tmp_path / "figure-sorting.svg").unlink()
    sorting.figure_sorting(replace(request))
    assert (tmp_path / "figure-sorting.json").read_bytes() == before
    assert (tmp_path / "figure-sorting.svg").exists()
    capsys.readouterr()


def test_another_seed_of_a_cell_is_found_by_its_configuration(tmp_path, capsys):
    request = Request(tmp_path, train=False)
    for cell in sorting.message_cells():
        keep(cell, request, 0.5)
    keep(hypotheses.second("sorting-gnn-directed-3"), request, 0.75)
    sorting.figure_gnn(request)
    result = read_record(tmp_path / "figure-gnn.json")["result"]
    assert result["accuracy"]["gnn-directed-3"] == [0.5] * 5
    assert result["second_seed"]["accuracy"] == {"gnn-directed-3-second": [0.75] * 5}
    assert "sorting-gnn-directed-3-second" in result["cells"]
    assert "two seeds" in (tmp_path / "figure-gnn.svg").read_text()
    capsys.readouterr()


def test_figures_share_trainings(tmp_path):
    request, cell = Request(tmp_path), Cell("one", "sorting", "none", TINY, "quick")
    keep(cell, request, 0.5)
    other = replace(cell, name="another")
    assert other.result(request) == cell.result(request) is not None
    assert replace(other, share=0.5).result(request) is None


def test_hypotheses_are_shown_beside_cells_of_figures(tmp_path, capsys):
    request = Request(tmp_path)
    found = hypotheses.hypotheses()
    known = {name: cell for name, (_, cell) in hypotheses.figure_cells().items()}
    for cell in (cell for one in found for cell in one.cells):
        keep(cell, request, 0.5)
    for name in known.keys() & {name for one in found for name in one.beside[1:]}:
        keep(known[name], request, 0.1234)
    TRAINED["hypotheses"](request)
    printed = capsys.readouterr().out
    assert "rmse 0.1234" in printed
    assert "f1 0.1234" in printed
    assert "walks-reachability-reverse-1: not run: python -m paper figure-walks" in printed
    result = json.loads((tmp_path / "hypotheses.json").read_text())["result"]
    assert [len(row["measured"]) for row in result["hypotheses"]] == [len(one.cells + one.beside) for one in found]
    assert set(result["cells"]) == {
        name for row in result["hypotheses"] for name, line in row["measured"].items() if line
    }


def test_options_of_hypotheses(tmp_path):
    request = Request(tmp_path)
    configs = {cell.name: cell.config(request).optim for one in hypotheses.hypotheses() for cell in one.cells}
    potential = sorting.potential_cells()[0].config(request).optim
    whole = sorting.encoding_cells()[0].config(request).optim
    assert potential.warmup * potential.budget == whole.warmup * whole.budget
    assert configs["sorting-magnetic-q0.25-hurried"].warmup == whole.warmup
    assert configs["sorting-magnetic-q0.25-hurried"].budget == potential.budget
    budgets = {
        "playground-undirected-distance-dag-svd-longer": 1 / 2,
        "playground-directed-distance-dag-gnn-longer": 1,
        "walks-reachability-reverse-3-longer": 1 / 6,
    }
    assert {name: configs[name].budget for name in budgets} == budgets


def test_every_cell_has_a_configuration_of_its_own(tmp_path):
    request = Request(tmp_path)
    cells = [cell for _, cell in hypotheses.figure_cells().values()]
    cells += [cell for one in hypotheses.hypotheses() for cell in one.cells]
    cells += best.sorting_cells() + best.candidate_cells() + best.quick_cells() + best.distance_cells()
    assert len({cell.config(request).hash for cell in cells}) == len(cells)


@pytest.mark.slow
def test_direction_matters_within_minutes(tmp_path, capsys):
    """Reachability in DAGs from magnetic and from combinatorial eigenvectors, with the quick preset."""
    TRAINED["figure-quick"](Request(tmp_path, runs=tmp_path / "runs", device="cpu"))
    capsys.readouterr()
    rows = json.loads((tmp_path / "figure-quick.json").read_text())["result"]["rows"]
    assert rows["magnetic"][0] > 0.6
    assert rows["laplacian"][0] < 0.2


def test_kept_results_give_the_kept_figures(tmp_path, capsys):
    """Claims and hypotheses from `results/cells` are those in `results/`."""
    kept = Path(__file__).parents[2] / "results"
    read = ("figure-examples.json", "figure-topological-sorts.json", "distributions.json", "reorderings.json")
    for name in ("cells", "repeat", *read):
        (tmp_path / name).symlink_to(kept / name)
    for name in ("claims", "hypotheses", "figure-sorting", "figure-playground"):
        TRAINED[name](Request(tmp_path, train=False))
        new, old = (json.loads((folder / f"{name}.json").read_text())["result"] for folder in (tmp_path, kept))
        assert new == old
    capsys.readouterr()
