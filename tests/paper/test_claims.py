"""Claims are judged by results: invented ones that agree with each of them, and invented ones that do not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from magnetite.io.record import read_record
from magnetite.io.storage import DamagedFile, write_json
from magnetite.training.config import merge
from paper import claims, fair, hypotheses, playground, sorting
from paper.__main__ import TRAINED
from paper.cells import Cell, Request
from tests.paper.test_cells import keep

Value = Callable[[Cell], float]


def verdicts(folder: Path) -> dict[str, str]:
    claims.judge(Request(folder))
    rows = json.loads((folder / "claims.json").read_text())["result"]["claims"]
    return {number: row["verdict"] for number, row in rows.items()}


@pytest.mark.parametrize("what", ["claims", "hypotheses", "figure-sorting"])
def test_a_missing_folder_is_an_error_and_is_not_created(tmp_path: Path, what: str) -> None:
    with pytest.raises(ValueError, match=r"no results in .*typo: the folder does not exist"):
        TRAINED[what](Request(tmp_path / "typo", train=False))
    assert not (tmp_path / "typo").exists()


def fill(folder: Path, made: list[Cell], value: Value, seen: int = 100) -> None:
    """One training of every cell, and another with the same value of the first one of each task or target.

    So the spread is known, and zero.
    """
    repeated = {str(cell.changes.get("task", {}).get("target")): cell for cell in reversed(made)}
    for cell in made:
        keep(cell, Request(folder), value(cell), seen)
    for cell in repeated.values():
        keep(fair.seeded(cell, 1), Request(folder), value(cell), seen)


def model_of(cell: Cell) -> str:
    """The model in the name of a cell of the playground."""
    return cell.name.split("-dag-")[-1].split("-general-")[-1].removesuffix("-shorter")


def as_claimed(cell: Cell) -> float:
    """F1 or RMSE of the playground that agrees with claims 1 to 4."""
    target, model = cell.changes["task"]["target"], model_of(cell)
    if target in ("adjacency", "reachability"):
        return {"laplacian": 0.4, "magnetic-signnet": 0.8, "walks": 0.93, "relative-walks": 0.97}.get(model, 0.95)
    if target == "undirected-distance" and model == "laplacian":
        return 0.1
    return {"magnetic": 0.1, "svd": 0.4, "walks": 0.28, "relative-walks": 0.2}.get(model, 0.5)


def but(name: str, value: float, claimed: Value = as_claimed) -> Value:
    """Values as claimed, except for cells whose names contain `name`."""
    return lambda cell: value if name in cell.name else claimed(cell)


def test_without_results_nothing_is_judged(tmp_path, capsys):
    assert set(verdicts(tmp_path).values()) == {"open"}
    capsys.readouterr()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"result": {"confi', "Unterminated"),
        ('{"result": {}}', "no checksum"),
        ({}, "no object 'result'"),
        ({"result": [1]}, "no object 'result'"),
    ],
)
def test_a_damaged_result_is_an_error(tmp_path, content, reason):
    cell, request = sorting.encoding_cells()[0], Request(tmp_path)
    path = cell.path(request)
    path.parent.mkdir()
    path.write_text(content) if isinstance(content, str) else write_json(path, content)
    with pytest.raises(DamagedFile, match=f"{cell.path(request).name} is not a valid result .*{reason}.*: delete it"):
        claims.judge(Request(tmp_path))


def test_a_table_without_its_row_is_an_error(tmp_path):
    write_json(tmp_path / "figure-topological-sorts.json", {"result": {"rows": [{"length": 4}]}})
    with pytest.raises(DamagedFile, match=r"figure-topological-sorts\.json has no row with length 8: delete it"):
        claims.judge(Request(tmp_path))


@pytest.mark.parametrize(
    ("number", "name", "value"),
    [
        ("1", "adjacency-dag-laplacian", 0.955),
        ("1", "undirected-distance-general-laplacian", 0.2),
        ("2", "reachability-dag-walks", 0.6),
        ("2", "directed-distance-general-walks", 0.096),
        ("3", "directed-distance-dag-svd", 0.096),
        ("3", "directed-distance-general-svd", 0.3),
        ("4", "adjacency-dag-relative-walks", 0.925),
        ("4", "directed-distance-dag-walks-shorter", 0.19),
        ("4", "reachability-general-magnetic-signnet", 0.96),
        ("4", "adjacency-general-gnn", 0.5),
        ("4", "directed-distance-general-magnet", 0.105),
    ],
)
def test_claims_about_the_playground(tmp_path, capsys, number, name, value):
    made = playground.playground_cells()
    fill(tmp_path, made, as_claimed)
    assert {verdicts(tmp_path)[each] for each in "1234"} == {"holds"}
    fill(tmp_path, made, but(name, value))
    assert verdicts(tmp_path)[number] == "fails"
    capsys.readouterr()


def test_the_appendix_is_judged_by_the_longest_trainings(tmp_path, capsys):
    made, request = playground.playground_cells(), Request(tmp_path)
    fill(tmp_path, made, but("playground-directed-distance-dag-gnn", 0.09))
    assert verdicts(tmp_path)["4"] == "fails"
    assert '"reason": "1 of 32 comparisons fail"' in (tmp_path / "claims.json").read_text()
    longer = next(
        cell
        for one in hypotheses.hypotheses()
        for cell in one.cells
        if cell.name == "playground-directed-distance-dag-gnn-longer"
    )
    keep(longer, request, 0.3, seen=1)
    assert verdicts(tmp_path)["4"] == "fails"  # the main one saw more graphs
    keep(longer, request, 0.3)
    assert verdicts(tmp_path)["4"] == "holds"
    capsys.readouterr()


def test_trainings_of_different_length_are_not_compared(tmp_path, capsys):
    made = playground.playground_cells()
    fill(tmp_path, made, as_claimed)
    fill(tmp_path, [cell for cell in made if "adjacency-dag-laplacian" in cell.name], as_claimed, seen=50)
    assert verdicts(tmp_path)["1"] == "open"
    assert "trained on the same number of graphs" in (tmp_path / "claims.json").read_text()
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "value"), [("adjacency-forward-3", 0.795), ("directed-distance-pagerank-5", 0.2), ("reverse-3", 0.9)]
)
def test_claims_about_walks(tmp_path, capsys, name, value):
    def walks(cell: Cell) -> float:
        error = {"forward": 0.5, "reverse": 0.4, "pagerank": 0.3}[cell.name.split("-")[-2]]
        return error if "distance" in cell.name else 1 - error

    fill(tmp_path, playground.walk_cells(), walks)
    assert verdicts(tmp_path)["5"] == "holds"
    fill(tmp_path, playground.walk_cells(), but(name, value, walks))
    assert verdicts(tmp_path)["5"] == "fails"
    capsys.readouterr()


def test_claims_about_encodings_of_networks(tmp_path, capsys):
    made, request = sorting.encoding_cells(), Request(tmp_path)
    for cell in made:
        near, far = {"magnetic": (0.95, 0.9), "walks": (0.93, 0.88), "sinusoidal": (0.93, 0.6)}.get(
            cell.encoding, (0.48, 0.48)
        )
        keep(cell, request, far)
        content = read_record(cell.path(request))
        for figures in content["result"]["figures"].values():
            figures |= {f"{measure}/{length}": near for measure in ("accuracy", "auc") for length in (12, 13)}
        write_json(cell.path(request), content)
    assert verdicts(tmp_path)["6"] == "holds"
    for cell in made:
        if cell.encoding == "magnetic":
            keep(cell, request, 0.5)
    assert verdicts(tmp_path)["6"] == "fails"
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "value"), [("q2.5", 0.95), ("directed-5", 0.9), ("undirected-3", 0.81), ("gnn-walks", 0.85)]
)
def test_claims_about_studies_of_networks(tmp_path, capsys, name, value):
    def studies(cell: Cell) -> float:
        if "-q" in cell.name:
            q = float(cell.name.split("-q")[-1])
            return 0.9 if q <= 0.25 else 0.8 - q / 100
        named = {"sorting-gnn-magnetic": 0.9, "sorting-gnn-walks": 0.6, "sorting-gnn-directed-1": 0.6}
        return named.get(cell.name, 0.7 if "undirected" in cell.name else 0.8)

    made, request = sorting.potential_cells() + sorting.message_cells(), Request(tmp_path)
    fill(tmp_path, made, studies)
    assert verdicts(tmp_path)["7"] == "holds"
    (magnetic,) = (cell for cell in made if cell.name == "sorting-gnn-magnetic")
    content = read_record(magnetic.path(request))
    content["result"]["figures"]["test"]["auc/16"] = 0.1  # accuracy alone does not decide
    write_json(magnetic.path(request), content)
    assert verdicts(tmp_path)["7"] == "fails"
    assert '"reason": "1 of 18 comparisons fail"' in (tmp_path / "claims.json").read_text()
    fill(tmp_path, made, but(name, value, studies))
    assert verdicts(tmp_path)["7"] == "fails"
    capsys.readouterr()


def first_comparison(tmp_path: Path, values: dict[str, list[float]]) -> claims.Found:
    """Magnetic against combinatorial in reachability of DAGs, by the values of several seeds."""
    made = {cell.name: cell for cell in playground.playground_cells()}
    for model, of_model in values.items():
        cell = made[f"playground-reachability-dag-{model}"]
        for seed, value in enumerate(of_model):
            keep(replace(cell, changes=merge(cell.changes, {"run": {"seed": seed}})), Request(tmp_path), value)
    (part,) = claims._pairs("magnetic", "laplacian", ["reachability"], claims.ahead)[:1]
    return part(claims.Store(tmp_path), 8)


@pytest.mark.parametrize(
    ("magnetic", "laplacian", "holds"),
    [
        ([0.9], [0.4], None),  # whatever the difference, one run each says nothing about chance
        ([0.90, 0.91], [0.40, 0.42], True),
        ([0.40, 0.42], [0.90, 0.91], False),
        ([0.90, 0.50], [0.40, 0.42], None),
        ([0.45, 0.46], [0.50, 0.51], None),  # at 95% it would fail, but a claim has several comparisons
    ],
)
def test_a_comparison_is_decided_by_its_interval(tmp_path, magnetic, laplacian, holds):
    found = first_comparison(tmp_path, {"magnetic": magnetic, "laplacian": laplacian})
    assert found.holds is holds
    assert found.runs == (len(magnetic), len(laplacian))
    assert found.freedom == len(magnetic) + len(laplacian) - 2


def test_the_form_of_the_authors_decides_where_it_was_trained(tmp_path):
    ours = first_comparison(tmp_path, {"magnetic": [0.90, 0.91], "laplacian": [0.40, 0.42]})
    assert ours.holds is True
    for cell in fair.cells_of(fair.groups()):
        if cell.name.startswith(("authors-playground-reachability-dag-m", "authors-playground-reachability-dag-l")):
            keep(cell, Request(tmp_path), 0.3 if "magnetic" in cell.name else 0.9)
    (part,) = claims._pairs("magnetic", "laplacian", ["reachability"], claims.ahead)[:1]
    found = part(claims.Store(tmp_path), 8)
    assert found.holds is False and "magnetic 0.3000 (mean of 3)" in found.figures
    assert "ours ✓ reachability dag: magnetic 0.9050 (mean of 2)" in found.figures


def test_the_kept_table_has_every_claim_with_its_verdict():
    found = read_record(Path(__file__).parents[2] / "results" / "claims.json")["result"]
    assert list(found["claims"]) == [str(number) for number in range(1, 12)]
    assert sum(found["counts"].values()) == 11
    for number, claim in found["claims"].items():
        assert claim["verdict"] in claims.VERDICTS and claim["reason"], number
        assert len(claim["parts"]) + len(claim["not_run"]) == len(claims.CLAIMS[number].parts)
        for part in claim["parts"]:  # what is not exact has an interval, or is open because there is none
            assert not part["runs"] or part["interval"] is not None
            assert not part["runs"] or part["degrees_of_freedom"] or part["holds"] is None


def test_the_spread_is_that_of_the_cells_that_claims_compare():
    store = claims.Store(Path(__file__).parents[2] / "results")
    every, judged = (store.groups("distances", "rmse", names) for names in (("",), claims.JUDGED))
    others = [values for values in every if values not in judged]
    assert judged and others == store.groups("distances", "rmse", ("marked-",))
