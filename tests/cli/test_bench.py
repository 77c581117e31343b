import json

from magnetite.cli import bench
from magnetite.encodings import Laplacian


def test_curves_table_and_figure(tmp_path, capsys):
    sides = [
        bench.Method("magnetite", Laplacian(k=4), 64),
        bench.Method("small only", Laplacian(k=4), 16),
        bench.Method("large only", Laplacian(k=4), 64, smallest=32),
    ]
    bench._compare("figure-test", sides, [8, 16, 32], tmp_path, seed=0)
    curves = json.loads((tmp_path / "figure-test.json").read_text())["result"]["milliseconds_per_graph"]
    assert [list(points) for points in curves.values()] == [["8", "16", "32"], ["8", "16"], ["32"]]
    assert all(value > 0 for points in curves.values() for value in points.values())
    assert "small only" in capsys.readouterr().out
    assert (tmp_path / "figure-test.png").exists()


def test_a_slow_method_is_skipped_at_larger_sizes(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "PATIENCE", 0.0)
    bench._compare("figure-test", [bench.Method("slow", Laplacian(k=4), 64)], [8, 16], tmp_path, seed=0)
    curves = json.loads((tmp_path / "figure-test.json").read_text())["result"]["milliseconds_per_graph"]
    assert list(curves["slow"]) == ["8"]


def test_numpy_walks_are_the_same_walks():
    graphs = bench._random_graphs(20, 2, seed=0)
    encoding = bench.RandomWalk()
    for ours, plain in zip(encoding(graphs), bench._numpy_walks(encoding)(graphs), strict=True):
        assert abs(ours.numpy() - plain).max() < 1e-6


def test_all_methods_solve_the_same_problem():
    graphs = bench._random_graphs(60, 2, seed=0)
    encoding = bench.MagneticLaplacian(k=5)
    ours = encoding(graphs).values
    dense = bench._torch("cpu", encoding)(graphs)[0][:, :5]
    sparse = [sorted(2 - values) for values, _ in bench._scipy(encoding)(graphs)]
    assert (ours - dense).abs().max() < 1e-5
    assert (
        max(
            abs(a - b)
            for row, other in zip(ours.tolist(), sparse, strict=True)
            for a, b in zip(row, other, strict=True)
        )
        < 1e-4
    )
