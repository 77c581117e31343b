import json
from dataclasses import replace

import pytest

from magnetite.io.storage import DamagedFile
from magnetite.reproduce import TRAINED, best, cells, explanations, playground, sorting
from magnetite.reproduce.cells import Cell, Request, longest_trained, train_missing

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = {
    "task": {"train": 60, "valid": 12, "test": 8, "train_longest": 7, "valid_longest": 8},
    "model": {"name": "transformer", "width": 32, "layers": 1},
    "optim": {"batch": 20, "epochs": 0.34},
}


def fake(config: dict, value: float, seen: int = 100) -> dict:
    """A finished cell that measured one value everywhere."""
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
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(fake(cell.config(request).to_dict(), value, seen)))


def test_a_cell_is_trained_once(tmp_path, monkeypatch, capsys):
    request = Request(tmp_path / "results", runs=tmp_path / "runs", device="cpu")
    some = [Cell("first", "sorting", "none", TINY, "quick"), Cell("second", "sorting", "sinusoidal", TINY, "quick")]
    found = train_missing(some[:1], request)
    assert found["first"]["result"]["graphs_seen"] == 40
    assert [path.name for path in request.cells.glob("*.json")] == [some[0].path(request).name]
    monkeypatch.setattr(cells.session, "train", lambda *_: pytest.fail("it was there already"))
    assert train_missing(some[:1], request) == found
    capsys.readouterr()


def test_a_cell_that_another_process_trains_is_left_to_it(tmp_path, monkeypatch, capsys):
    request = Request(tmp_path / "results", runs=tmp_path / "runs", device="cpu")
    cell = Cell("first", "sorting", "none", TINY, "quick")
    monkeypatch.setattr(cells.session, "train", lambda *_: pytest.fail("it is being trained already"))
    with cells._lock(cell, request):
        assert train_missing([cell], request) == {}
    assert "another process is at it" in capsys.readouterr().err


def test_only_chooses_cells_and_budgets_are_other_cells(tmp_path):
    request = Request(tmp_path, only="magnetic-second")
    assert [cell.name for cell in sorting.encoding_cells() if request.only in cell.name] == ["sorting-magnetic-second"]
    cell = sorting.encoding_cells()[0]
    assert cell.path(request) != cell.path(Request(tmp_path, budget=0.1))
    assert cell.config(Request(tmp_path, budget=0.1)).optim.budget == 0.1
    keep(cell, request, 0.5, seen=10)
    keep(cell, Request(tmp_path, budget=0.1), 0.7, seen=20)
    assert longest_trained(request.cells, cell.name)["result"]["graphs_seen"] == 20


def test_of_results_as_long_the_lowest_seed_counts(tmp_path):
    cell, request = sorting.encoding_cells()[0], Request(tmp_path)
    keep(cell, request, 0.5)
    other = json.loads(cell.path(request).read_text()) | {"seed": 7}
    (request.cells / f"{cell.name}-000000000000.json").write_text(json.dumps(other))
    assert longest_trained(request.cells, cell.name)["seed"] == 0


def test_a_training_without_figures_is_named(tmp_path):
    cell, request = sorting.encoding_cells()[0], Request(tmp_path)
    keep(cell, request, 0.5)
    cell.path(request).write_text('{"result": {"config": {}}}')
    with pytest.raises(DamagedFile, match=r"it has no figures, graphs_seen\): remove it"):
        train_missing([cell], request)


def test_nothing_is_trained_that_was_not_to_be(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cells.session, "train", lambda *_: pytest.fail("it was not to be trained"))
    TRAINED["figure-quick"](Request(tmp_path, train=False))
    assert "nothing trained yet" in capsys.readouterr().out


@pytest.mark.parametrize("other", [{"budget": 0.5}, {"seed": 1}])
def test_a_figure_is_not_written_over_by_less(tmp_path, capsys, other):
    keep(playground.quick_cells()[0], Request(tmp_path), 0.5)
    TRAINED["figure-quick"](Request(tmp_path, train=False))
    before = (tmp_path / "figure-quick.json").read_text()
    with pytest.raises(ValueError, match="has budget 1 and seed 0: give another folder by --out"):
        TRAINED["figure-quick"](Request(tmp_path, train=False, **other))
    assert (tmp_path / "figure-quick.json").read_text() == before
    capsys.readouterr()


def test_results_go_to_a_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file is a file: give a folder"):
        Request(tmp_path / "file")


def test_options_that_came_later_do_not_void_a_result(tmp_path):
    cell, request = sorting.encoding_cells()[0], Request(tmp_path)
    keep(cell, request, 0.5)
    content = json.loads(cell.path(request).read_text())
    del content["result"]["config"]["encoding"]["scaling"]
    cell.path(request).rename(request.cells / f"{cell.name}-0123456789ab.json").write_text(json.dumps(content))
    assert cell.kept(request) == content
    content["result"]["config"]["encoding"]["colour"] = "red"
    (request.cells / f"{cell.name}-0123456789ab.json").write_text(json.dumps(content))
    assert cell.kept(request) is None


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
        ("figure-tried-sorting", best.tried_cells),
        ("figure-best-sorting", best.sorting_cells),
        ("figure-best-distance", best.distance_cells),
    ],
)
def test_a_figure_of_what_is_there(tmp_path, figure, made, capsys):
    request = Request(tmp_path)
    every = made()
    assert len({cell.name for cell in every}) == len(every)
    assert len({cell.path(request) for cell in every}) == len(every)
    for cell in every:
        keep(cell, request, 0.5)
    TRAINED[figure](request)
    printed = capsys.readouterr().out
    assert "0.5000" in printed
    if figure == "figure-playground":  # on a terminal of 80 columns, nothing is cut
        assert all(printed.count(f" {name} ") == len(playground.KINDS) for name in ("walks", "magnetic-signnet"))
    assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{figure}.svg").exists()
    assert len(json.loads((tmp_path / f"{figure}.json").read_text())["result"]["cells"]) == len(every)


def test_what_another_figure_trained_is_not_trained_again(tmp_path):
    request, cell = Request(tmp_path), Cell("one", "sorting", "none", TINY, "quick")
    keep(cell, request, 0.5)
    other = replace(cell, name="another")
    assert other.kept(request) == cell.kept(request) is not None
    assert replace(other, share=0.5).kept(request) is None


def test_hypotheses_stand_beside_what_they_explain(tmp_path, capsys):
    request = Request(tmp_path)
    found = explanations.hypotheses()
    known = {cell.name: cell for cells in explanations.FIGURES.values() for cell in cells()}
    for cell in (cell for one in found for cell in one.cells):
        keep(cell, request, 0.5)
    for name in known.keys() & {name for one in found for name in one.beside[1:]}:
        keep(known[name], request, 0.1234)
    TRAINED["hypotheses"](request)
    printed = capsys.readouterr().out
    assert "rmse 0.1234" in printed
    assert "f1 0.1234" in printed
    assert "walks-reachability-reverse-1: not run: magnetite reproduce figure-walks" in printed
    result = json.loads((tmp_path / "hypotheses.json").read_text())["result"]
    assert [len(row["measured"]) for row in result["hypotheses"]] == [len(one.cells + one.beside) for one in found]
    assert set(result["cells"]) == {
        name for row in result["hypotheses"] for name, line in row["measured"].items() if line
    }


def test_hypotheses_change_what_they_say(tmp_path):
    request = Request(tmp_path)
    configs = {cell.name: cell.config(request).optim for one in explanations.hypotheses() for cell in one.cells}
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


@pytest.mark.slow
def test_direction_matters_within_minutes(tmp_path, capsys):
    """The quick preset as it is: reachability in DAGs by magnetic eigenvectors, and by those that know no direction."""
    TRAINED["figure-quick"](Request(tmp_path, runs=tmp_path / "runs", device="cpu"))
    capsys.readouterr()
    rows = json.loads((tmp_path / "figure-quick.json").read_text())["result"]["rows"]
    assert rows["magnetic"][0] > 0.6
    assert rows["laplacian"][0] < 0.2
