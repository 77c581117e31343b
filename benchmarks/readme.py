"""Write the README's table of results from `results/`: no figure in it is typed by hand.

python benchmarks/readme.py
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: written by benchmarks/readme.py -->", "<!-- end of results -->"

Row = tuple[str, str, str, str]


def result(name: str) -> dict[str, Any]:
    """The measured result of one command."""
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))["result"]


def rows() -> list[Row]:
    """What, against what, the figure, the command."""
    return [*_correctness(), *_processor(), *_gpu(), *_large(), *_data(), *_code(), *_models(), *_training(), *_best()]


def _correctness() -> list[Row]:
    checked = result("verification")
    errors = checked["largest_errors"]
    worst = {kind: max(values.values()) for kind, values in errors.items()}
    figure = f"none fails; {worst['torch.float32']:.0e} in float32, {worst['torch.float64']:.0e} in float64"
    examples = {row["graph"]: row["one_way_edges_in_order"] for row in result("figure-examples")["rows"]}
    restored = [
        name for name in ("sequence", "balanced binary tree", "trumpet (fully connected)") if examples[name] == 1
    ]
    return [
        (
            f"{checked['graphs']:,} odd digraphs of 1–150 nodes: largest residual or unitarity error",
            "the definition",
            figure,
            "benchmarks/verification.py",
        ),
        (
            "order of permuted nodes from `Im γ₀`",
            "the paper",
            f"restored: {', '.join(restored)}",
            "magnetite reproduce figure-examples",
        ),
    ]


def _processor() -> list[Row]:
    measured = result("benchmark-encodings")["rows"]
    sizes = " / ".join(measured)
    command = "benchmarks/encodings.py"
    numpy, pyg = (" / ".join(f"{row[f'times_{side}']:.1f}×" for row in measured.values()) for side in ("numpy", "pyg"))
    failed = sum(row["pyg_failures"] for row in measured.values())
    return [
        (f"magnetic eigenpairs, 2 cores, n {sizes}", "NumPy `eigh` in two threads", f"{numpy} faster", command),
        ("same graphs", f"PyG's `AddLaplacianEigenvectorPE` (fails on {failed})", f"{pyg} faster", command),
    ]


def _gpu() -> list[Row]:
    measured = result("benchmark-eigen-gpu")["rows"]
    chosen = [row for row in measured if row["n"] in (33, 80, 128, 256)]
    sizes = " / ".join(str(row["n"]) for row in chosen)
    wrong = sum(row["ours_double_wrong"] + row["ours_single_wrong"] for row in measured)
    command = "benchmarks/eigen_gpu.py"
    encoded = result("benchmark-sorting-encoded")
    first, second = (encoded[run]["seconds_together"] for run in ("first", "second"))
    return [
        (
            f"the same on an H200, float64, n {sizes}",
            "`torch.linalg.eigh` there",
            " / ".join(f"{row['double_against_torch']:.0f}×" for row in chosen) + f" faster, {wrong} wrong",
            command,
        ),
        (
            "float32",
            "JAX's batched `eigh` there",
            " / ".join(f"{row['single_against_jax']:.1f}×" for row in chosen) + " faster",
            command,
        ),
        (
            f"{encoded['second']['graphs']:,} sorting networks drawn and encoded, k=25, H200",
            "",
            f"{second:.0f} s ({first:.0f} s with compilation)",
            "benchmarks/sorting_encoded.py",
        ),
    ]


def _large() -> list[Row]:
    found = []
    for name in ("debian", "random"):
        measured = result(f"benchmark-large-{name}")["eigenpairs"]
        what = f"{measured['nodes']:,} nodes, {measured['edges']:,} edges ({name}), {measured['k']} pairs, 2 cores"
        ended = "" if measured["arpack"]["finished"] else "at least "
        figure = f"{ended}{measured['times_faster']:.1f}× faster: {measured['ours']['seconds']:.0f} s"
        found.append((what, "SciPy's ARPACK", figure, "benchmarks/large.py"))
    return found


def _data() -> list[Row]:
    networks, sets = result("benchmark-sorting"), result("benchmark-data")
    playground = sets["playground, directed distance, cpu"]
    return [
        (
            "sorting networks drawn, lengths 7–11 / 16, one core",
            "sets of inputs in NumPy",
            f"{networks['7–11']['ratio']:,.0f}× / {networks['16']['ratio']:,.0f}× faster",
            "benchmarks/sorting.py",
        ),
        (
            f"{playground['graphs']:,} playground graphs with distances, 2 cores",
            "",
            f"{playground['seconds']:.1f} s",
            "benchmarks/data.py",
        ),
    ]


def _code() -> list[Row]:
    measured = result("benchmark-code-graphs")
    library, packages = (measured[corpus] for corpus in ("standard library", "installed packages"))
    counts = [corpus["counts"] for corpus in (library, packages)]
    functions, failed = (sum(count.get(key, 0) for count in counts) for key in ("functions", "dataflow failed"))
    texts = result("reorderings")["f1_score"]
    return [
        (
            f"data-flow graphs of {functions:,} functions (standard library / installed packages), one core",
            "the authors' 162 a second",
            f"{library['times_authors']:.1f}× / {packages['times_authors']:.1f}× faster, {failed} failed",
            "benchmarks/code_graphs.py",
        ),
        (
            f"{texts['texts']:,} ways to write the paper's `f1_score`",
            f"{texts['ast']:,} sequential graphs",
            f"{texts['dataflow']} data-flow graph",
            "benchmarks/reorderings.py",
        ),
    ]


def _models() -> list[Row]:
    measured = result("benchmark-models")
    figures = []
    for rows_of_task in measured.values():
        compiled = {row["side"]: row for row in rows_of_task if row["compiled"]}
        figures.append(f"{compiled['magnetic']['graphs_per_second']:,.0f} ({compiled['magnetic']['of_bare']:.2f})")
    return [
        (
            f"graphs/s forward + backward with magnetic encodings, H200, {' / '.join(measured)}",
            "the bare transformer on random tensors",
            f"{' / '.join(figures)} of its speed",
            "benchmarks/models.py",
        )
    ]


def _training() -> list[Row]:
    step = result("benchmark-training")["sorting"]["magnetic"]
    sorting = result("figure-sorting")
    trained = {name: values for name, values in sorting["accuracy"].items() if None not in values}
    seen = {cell["graphs_seen"] for cell in sorting["cells"].values()}
    lengths = f"{sorting['lengths'][0]}–{sorting['lengths'][-1]}"
    others = "; ".join(f"{name} {_percents(values)}" for name, values in trained.items() if name != "magnetic")
    return [
        (
            "graphs/s of whole training steps, sorting networks with magnetic encodings, H200",
            "the bare transformer on batches that stand ready",
            f"{step['graphs_per_second']:,.0f} ({step['of_bare']:.2f}) of its speed",
            "benchmarks/training.py",
        ),
        (
            f"accuracy on sorting networks of lengths {lengths}, {min(seen):,} graphs of lengths 7–11 seen",
            others,
            f"magnetic {_percents(trained['magnetic'])}",
            "magnetite reproduce figure-sorting",
        ),
        _playground("reachability", "F1", ".3f"),
        _playground("directed-distance", "RMSE", ".2f"),
        _tokens(),
        _quick(),
    ]


def _playground(target: str, measure: str, digits: str) -> Row:
    """One target in DAGs and in general digraphs, by encoding."""
    found = result("figure-playground")
    places = [found["columns"].index(f"{target} {kind} {measure.lower()}") for kind in ("dag", "general")]
    shown = {
        name: " / ".join(f"{found['rows'][name][place]:{digits}}" for place in places)
        for name in ("magnetic", "walks", "laplacian", "svd")
    }
    seen = found["cells"][f"playground-{target}-dag-magnetic"]["graphs_seen"]
    return (
        f"{measure} of the playground's {target.replace('-', ' ')}, DAGs / general digraphs, {seen:,} graphs seen",
        "; ".join(f"{name} {values}" for name, values in shown.items() if name != "magnetic"),
        f"magnetic {shown['magnetic']}",
        "magnetite reproduce figure-playground",
    )


def _tokens() -> Row:
    measured = result("benchmark-tokens-cpu")
    return (
        f"whole training steps on a CPU: {' / '.join(measured)}",
        "the same with empty slots",
        " / ".join(f"{row['times_as_fast']:.2f}×" for row in measured.values()) + " faster",
        "benchmarks/tokens.py",
    )


def _best() -> list[Row]:
    networks, distances = result("figure-best-sorting"), result("figure-best-distance")
    trained, sides = networks["cells"]["best-sorting"], result("benchmark-relations")["sides"]
    return [
        (
            f"accuracy on lengths 12–16, {trained['graphs_seen']:,} graphs seen",
            f"the paper's transformer here {_percents(result('figure-sorting')['accuracy']['magnetic'])}",
            f"relations of wires {_percents(networks['accuracy']['best-sorting'])}",
            "magnetite reproduce figure-best-sorting",
        ),
        (
            "graphs/s forward + backward of relations of wires, H200",
            f"a loop of plain tensor operations, as one CUDA graph: {sides['loop']['graphs_per_second']:,.0f}",
            f"{sides['fused']['graphs_per_second']:,.0f}: {sides['fused']['times_as_fast']:.0f}× faster",
            "benchmarks/relations.py",
        ),
        (
            f"RMSE of directed distances in DAGs, {distances['cells']['best-playground']['graphs_seen']:,} graphs seen",
            f"the paper's transformer with magnetic encodings here {_rmse('figure-playground', 'magnetic'):.3f}",
            f"{_rmse('figure-best-distance', 'best-playground'):.4f}",
            "magnetite reproduce figure-best-distance",
        ),
    ]


def _rmse(figure: str, row: str) -> float:
    """The error of directed distances in DAGs."""
    found = result(figure)
    column = "directed-distance dag rmse" if figure == "figure-playground" else "rmse"
    return found["rows"][row][found["columns"].index(column)]


def _quick() -> Row:
    quick = result("figure-quick-sorting")
    area, seen = quick["auc"], quick["cells"]["quick-sorting-relations"]["graphs_seen"]
    return (
        f"AUC on the same lengths after minutes on a CPU, {seen:,} graphs of lengths 7–8 seen",
        f"attention over nodes, magnetic {_percents(area['quick-sorting-attention'])} (50 is guessing)",
        f"relations of wires {_percents(area['quick-sorting-relations'])}",
        "magnetite reproduce figure-quick-sorting",
    )


def _percents(shares: list[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares) + " %"


def table() -> str:
    """The table, in Markdown."""
    lines = ["| what | against | figure | command |", "|---|---|---|---|"]
    lines += [f"| {what} | {against} | {figure} | `{command}` |" for what, against, figure, command in rows()]
    return "\n".join(lines)


def written(text: str) -> str:
    """The README's text with the table between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Rewrite the README."""
    path = ROOT / "README.md"
    path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
