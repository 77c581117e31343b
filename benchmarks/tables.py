"""Write the tables of results in README.md and docs/ from `results/`: no number in them is typed by hand.

python benchmarks/tables.py
"""

import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for paper

from sizes import ENCODERS, SIZES  # noqa: E402
from sizes import models as sized_models  # noqa: E402

from magnetite.io.record import read_record  # noqa: E402
from magnetite.io.storage import replacing  # noqa: E402
from paper.charts import LENGTHS  # noqa: E402
from paper.fair import shown  # noqa: E402
from paper.judge import accuracy_table  # noqa: E402
from paper.multi_q import PUBLISHED  # noqa: E402
from paper.namer import BASELINES  # noqa: E402
from paper.recurrent import BY_LENGTH  # noqa: E402
from paper.statistics import mean_and_error  # noqa: E402
from paper.store import Store  # noqa: E402

BEGIN, END = "<!-- results: written by benchmarks/tables.py -->", "<!-- end of results -->"


class Row(NamedTuple):
    """A row of the table, and whether README.md shows it."""

    what: str
    against: str
    figure: str
    command: str
    main: bool = False


@cache
def result(name: str) -> dict[str, Any]:
    """The content of a file of results."""
    return read_record(ROOT / "results" / f"{name}.json")["result"]


def rows() -> list[Row]:
    """All rows."""
    return [
        verification(),
        order(),
        *eigenpairs_cpu(),
        *transforms(),
        *eigenpairs_gpu(),
        sorting_encoded(),
        *eigen_sizes(),
        *large(),
        *generated(),
        code_graphs(),
        reorderings(),
        models(),
        training_steps(),
        sorting_accuracy(),
        repeated(),
        playground("reachability", "F1", ".3f"),
        playground("directed-distance", "RMSE", ".2f"),
        claims(),
        quick_relations(),
        *relations(),
        distances(),
        *recurrent(),
        networks_from_the_literature(),
        function_names(),
        *real_data(),
    ]


def networks_from_the_literature() -> Row:
    """Verdicts on the smallest sorting networks known."""
    found = {row["run"]: row for row in result("known-networks")["rows"]}
    main = "recurrent-known-inputs"
    seeds = [100 * value for value in of_seeds("table-recurrent", main)["balanced accuracy"]]
    mean, error = mean_and_error(seeds)
    trained = Store(ROOT / "results").longest(main)
    if trained is None:
        raise FileNotFoundError(f"results/cells/{main}-….json does not exist: train it again")
    percent = {name: f"{100 * row['balanced accuracy']:.1f} %" for name, row in found.items()}
    bound = percent[f"{KNOWN_MAIN}: its inputs, executed"]
    return Row(
        "balanced accuracy on the smallest sorting networks known, and copies with one comparator removed or rewired, "
        "by a general recurrent network that is shown inputs, not rules",
        f"executing the same inputs {bound}; a fifth of the training: with inputs "
        f"{percent['inputs-recurrent']}, without {percent['inputs-whole']} (guessing 50 %)",
        f"{mean:.2f} ± {error:.2f} % (mean ± standard error of {len(seeds)} seeds), "
        f"{trained.graphs_seen:,} graphs each, on one core",
        "python -m paper table-recurrent",
        main=True,
    )


def function_names() -> Row:
    """F1 of the names of functions, from their data-flow graph and from other forms."""
    table = result("two-cores/table-code")
    score = {row["row"]: f"{100 * row['f1_dropped']['mean']:.1f} %" for row in table["rows"]}
    return Row(
        f"F1 of function names, {table['functions']:,} functions of unseen projects, small networks after one pass",
        f"nearest neighbours {score['nearest']}; token transformer {score['tokens']}; SAT {score['sat']}; SAT++ on the "
        f"sequential graph {score['sat++']}",
        f"the same SAT++ on the data-flow graph {score['dataflow']}",
        "python -m paper table-code",
        main=True,
    )


def verification() -> Row:
    """Errors of eigenpairs."""
    checked = result("verification")
    single, double = (max(checked["largest_errors"][f"torch.{name}"].values()) for name in ("float32", "float64"))
    return Row(
        f"{checked['graphs']:,} unusual digraphs of 1–150 nodes: largest residual or unitarity error",
        "the definition",
        f"none fails; {single:.0e} in float32, {double:.0e} in float64",
        "benchmarks/verification.py",
    )


def order() -> Row:
    """Node orders restored from the first eigenvector."""
    found = {row["graph"]: row["one_way_edges_in_order"] for row in result("figure-examples")["rows"]}
    names = ("sequence", "balanced binary tree", "trumpet (fully connected)")
    restored = ", ".join(name for name in names if found[name] == 1)
    return Row(
        "order of permuted nodes from `Im γ₀`", "the paper", f"restored: {restored}", "python -m paper figure-examples"
    )


def eigenpairs_cpu() -> list[Row]:
    """Speed of eigenpairs on two cores."""
    measured = result("benchmark-encodings")["rows"]
    failed = sum(row["pyg_failures"] for row in measured.values())
    numpy, pyg = (slashed(f"{row[f'times_{side}']:.1f}×" for row in measured.values()) for side in ("numpy", "pyg"))
    walks = result("benchmark-encodings")["walks"]
    ratios = slashed(f"{row['times_numpy']:.1f}×" for row in walks.values())
    command = "benchmarks/encodings.py"
    return [
        Row(
            f"magnetic eigenpairs, 2 cores, n {slashed(measured)}",
            "NumPy `eigh` in two threads",
            f"{numpy} faster",
            command,
            main=True,
        ),
        Row("same graphs", f"PyG's `AddLaplacianEigenvectorPE` (fails on {failed})", f"{pyg} faster", command),
        Row(f"walks (`RandomWalk`), 2 cores, n {slashed(walks)}", "NumPy in two threads", f"{ratios} faster", command),
    ]


def transforms() -> list[Row]:
    """Speed of transforms for PyG."""
    measured = result("benchmark-transforms")["rows"]
    one, whole = (slashed(f"{row[f'times_pyg_{way}']:.1f}×" for row in measured.values()) for way in ("one", "set"))
    against, command = "PyG's `AddLaplacianEigenvectorPE`", "benchmarks/transforms.py"
    return [
        Row(
            f"`AddMagneticLaplacianPE`, one graph at a time, n {slashed(measured)}", against, f"{one} as fast", command
        ),
        Row("same graphs, as one data set", against, f"{whole} as fast", command),
    ]


def eigenpairs_gpu() -> list[Row]:
    """Speed of eigenpairs on a GPU."""
    measured = result("benchmark-eigen-gpu")["rows"]
    return [eigenpairs_of(measured, precision) for precision in ("double", "single")]


def eigenpairs_of(measured: list[dict[str, Any]], precision: str) -> Row:
    """Speed of eigenpairs on a GPU against each library, and wrong matrices of all, also of hard kinds."""
    rows = [row for row in measured if row["precision"] == precision and "us" in row]
    times = {(row["side"], row["n"]): row["us"] for row in rows if row["kind"] == "random"}
    sizes = [n for n in (16, 24, 32, 64, 128, 256, 512, 1024) if ("ours", n) in times]
    sides = [side for side in dict.fromkeys(row["side"] for row in rows) if side != "ours"]
    ratios = {side: slashed(times_faster(times.get((side, n)), times["ours", n]) for n in sizes) for side in sides}
    wrong = {side: sum(row["wrong"] for row in rows if row["side"] == side) for side in ("ours", *sides)}
    named = GPU_SIDES
    return Row(
        f"magnetic eigenpairs, H200, {'float64' if precision == 'double' else 'float32'}, n {slashed(sizes)}",
        "; ".join(named[side] for side in sides),
        f"{'; '.join(ratios.values())} as fast; wrong matrices, with hard kinds: ours {wrong['ours']}, "
        + ", ".join(f"{named[side]} {wrong[side]}" for side in sides),
        "benchmarks/eigen_gpu.py",
        main=precision == "double",
    )


GPU_SIDES = {"cusolver": "cuSOLVER's batched solver", "jax": "JAX", "cupy": "CuPy", "torch": "`torch.linalg.eigh`"}
"""Libraries that eigenpairs on a GPU are compared with, as tables call them."""


def gpu_table(precision: str) -> str:
    """Microseconds per matrix and wrong matrices of all libraries on a GPU, in Markdown."""
    measured = [row for row in result("benchmark-eigen-gpu")["rows"] if row.get("precision") == precision]
    if not measured:
        return "Not measured yet."
    sides = {
        side: name
        for side, name in {"ours": "ours", **GPU_SIDES}.items()
        if any(row["side"] == side for row in measured)
    }
    lines = [f"| matrices | n | {' | '.join(sides.values())} | best of the others / ours |"]
    lines.append("|---|---|" + "---|" * (len(sides) + 1))
    for kind, n in dict.fromkeys((row["kind"], row["n"]) for row in measured):
        found = {row["side"]: row for row in measured if (row["kind"], row["n"]) == (kind, n) and "us" in row}
        cells = [gpu_cell(found[side]) if side in found else "–" for side in sides]
        others = min((row["us"] for side, row in found.items() if side != "ours"), default=math.nan)
        ratio = others / found["ours"]["us"] if "ours" in found else math.nan
        lines.append(f"| {kind} | {n:,} | {' | '.join(cells)} | {'–' if math.isnan(ratio) else f'{ratio:.2f}'} |")
    return "\n".join(lines)


def gpu_cell(row: dict[str, Any]) -> str:
    """Microseconds per matrix, and how many are wrong if some are."""
    wrong = f" ({row['wrong']:,} of {row['solved']:,} wrong)" if row["wrong"] else ""
    return f"{row['us']:{',.0f' if row['us'] >= 100 else '.3g'}} µs{wrong}"


def times_faster(theirs: float | None, ours: float) -> str:
    """How many times as long theirs takes; a dash if it was not measured."""
    ratio = math.nan if theirs is None else theirs / ours
    return "–" if math.isnan(ratio) else f"{ratio:.1f}×" if ratio < 10 else f"{ratio:,.0f}×"


def sorting_encoded() -> Row:
    """Time of generating and encoding sorting networks."""
    encoded = result("benchmark-sorting-encoded")
    first, second = (encoded[run]["seconds_together"] for run in ("first", "second"))
    return Row(
        f"{encoded['second']['graphs']:,} sorting networks generated and encoded, k=25, H200",
        "",
        f"{second:.0f} s ({first:.0f} s with compilation)",
        "benchmarks/sorting_encoded.py",
    )


def large() -> Iterable[Row]:
    """Eigenpairs of large graphs."""
    for name in ("debian", "random"):
        measured = result(f"benchmark-large-{name}")["eigenpairs"]
        at_least = "" if measured["arpack"]["finished"] else "at least "
        yield Row(
            f"{measured['nodes']:,} nodes, {measured['edges']:,} edges ({name}), {measured['k']} eigenpairs, 2 cores",
            "SciPy's ARPACK",
            f"{at_least}{measured['times_faster']:.1f}× faster: {measured['ours']['seconds']:.0f} s",
            "benchmarks/large.py",
            main=name == "random",
        )


def eigen_sizes() -> list[Row]:
    """Eigenpairs of graphs of 2,048 to 16,384 nodes, against ARPACK."""
    if not (ROOT / "results" / "benchmark-eigen-sizes.json").exists():
        return []
    measured = [row for row in result("benchmark-eigen-sizes")["rows"] if row["nodes"] > 2000]
    ratios = sorted(row["arpack_ms"] / row["magnetite_ms"] for row in measured if "arpack_ms" in row)
    inverted = [row for row in measured if row.get("inverted_ms", float("inf")) < row["magnetite_ms"]]
    kinds = ", ".join(dict.fromkeys(row["kind"] for row in inverted))
    worst = max((row["magnetite_ms"] / row["inverted_ms"] for row in inverted), default=0)
    but = f"; shift and invert with sparse LU is up to {worst:.1f}× faster than ours on: {kinds}" if inverted else ""
    wrong = sum(row["magnetite_wrong"] for row in measured)
    return [
        Row(
            f"{result('benchmark-eigen-sizes')['k']} eigenpairs of connected graphs of 2,048–16,384 nodes, "
            f"{len({row['kind'] for row in measured})} kinds, 2 cores",
            "SciPy's ARPACK with the same tolerance",
            f"{ratios[0]:.1f}–{ratios[-1]:.1f}× as fast (median {ratios[len(ratios) // 2]:.1f}×); {wrong} wrong{but}",
            "benchmarks/eigen_sizes.py",
        )
    ]


def eigen_table() -> str:
    """Milliseconds per graph of all eigensolvers over the number of nodes, in Markdown."""
    if not (ROOT / "results" / "benchmark-eigen-sizes.json").exists():
        return "Not measured yet."
    solvers = {
        "magnetite": "ours",
        "numpy": "NumPy",
        "scipy": "LAPACK, k lowest",
        "arpack": "ARPACK",
        "inverted": "inverted",
    }
    lines = [f"| graphs | nodes | {' | '.join(solvers.values())} | best of the others / ours |"]
    lines.append("|---|---|" + "---|" * (len(solvers) + 1))
    for row in result("benchmark-eigen-sizes")["rows"]:
        cells = []
        for name in solvers:
            wrong = f" ({row[f'{name}_wrong']:,} wrong)" if row.get(f"{name}_wrong") else ""
            taken = row.get(f"{name}_ms")
            cells.append("–" if taken is None else f"{taken:{',.0f' if taken >= 100 else '.3g'}} ms{wrong}")
        lines.append(f"| {row['kind']} | {row['nodes']:,} | {' | '.join(cells)} | {row['times_best']:.2f} |")
    return "\n".join(lines)


def generated() -> list[Row]:
    """Speed of generating data."""
    networks, graphs = result("benchmark-sorting"), result("benchmark-data")["playground, directed distance, cpu"]
    return [
        Row(
            "sorting networks generated, lengths 7–11 / 16, one core",
            "a NumPy generator on sets of inputs",
            f"{networks['7–11']['ratio']:,.0f}× / {networks['16']['ratio']:,.0f}× faster",
            "benchmarks/sorting.py",
            main=True,
        ),
        Row(
            f"{graphs['graphs']:,} random digraphs with distances, 2 cores",
            "",
            f"{graphs['seconds']:.1f} s",
            "benchmarks/data.py",
        ),
    ]


def code_graphs() -> Row:
    """Speed of making graphs of source code."""
    measured = result("benchmark-code-graphs")
    library, packages = (measured[corpus] for corpus in ("standard library", "installed packages"))
    counts = [corpus["counts"] for corpus in (library, packages)]
    functions, failed = (sum(count.get(key, 0) for count in counts) for key in ("functions", "dataflow failed"))
    return Row(
        f"data-flow graphs of {functions:,} functions (standard library / installed packages), one core",
        "the authors' 162 per second",
        f"{library['times_authors']:.1f}× / {packages['times_authors']:.1f}× faster, {failed} failed",
        "benchmarks/code_graphs.py",
        main=True,
    )


def reorderings() -> Row:
    """Equivalent programs are one data-flow graph."""
    texts = result("reorderings")["f1_score"]
    return Row(
        f"{texts['texts']:,} ways to write the paper's `f1_score`",
        f"{texts['ast']:,} sequential graphs",
        f"{texts['dataflow']} data-flow graph",
        "benchmarks/reorderings.py",
    )


def models() -> Row:
    """Speed of models."""
    measured = result("benchmark-models")
    compiled = [{row["side"]: row for row in table if row["compiled"]}["magnetic"] for table in measured.values()]
    figures = slashed(f"{row['graphs_per_second']:,.0f} ({row['of_bare']:.2f})" for row in compiled)
    return Row(
        f"graphs/s forward + backward with magnetic encodings, H200, {slashed(measured)}",
        "the bare transformer on random tensors",
        f"{figures}, as a fraction of its speed in parentheses",
        "benchmarks/models.py",
    )


def training_steps() -> Row:
    """Speed of training."""
    step = result("benchmark-training")["sorting"]["magnetic"]
    return Row(
        "graphs/s of whole training steps, sorting networks with magnetic encodings, H200",
        "the bare transformer on prepared batches",
        f"{step['graphs_per_second']:,.0f}, {step['of_bare']:.2f} of its speed",
        "benchmarks/training.py",
    )


def sorting_accuracy() -> Row:
    """Accuracy on sorting networks by encoding."""
    sorting = result("figure-sorting")
    trained = {name: percents(values) for name, values in sorting["accuracy"].items() if None not in values}
    seen = min(cell["graphs_seen"] for cell in sorting["cells"].values())
    lengths = f"{sorting['lengths'][0]}–{sorting['lengths'][-1]}"
    others = {
        name.replace("-second", ", second seed,"): values for name, values in trained.items() if name != "magnetic"
    }
    return Row(
        f"accuracy on sorting networks of lengths {lengths}, {seen:,} graphs of lengths 7–11 seen",
        "; ".join(f"{name} {values}" for name, values in others.items()),
        f"magnetic {trained['magnetic']}",
        "python -m paper figure-sorting",
        main=not of_seeds("table-recurrent", "recurrent-sorting"),  # which compares with it
    )


def repeated() -> Row:
    """The same training, repeated."""
    run = Store(ROOT / "results" / "repeat").longest("sorting-magnetic")
    if run is None:
        raise FileNotFoundError("results/repeat/cells/sorting-magnetic-….json does not exist: train it again")
    minutes, seconds = divmod(round(run.content["seconds"]), 60)
    return Row(
        "the same training with magnetic encodings, repeated from the same seed, alone on the H200; wall time",
        "",
        f"{percents([run.metrics[f'accuracy/{length}'] for length in LENGTHS])}; {minutes} min {seconds} s with "
        "generation, encoding, compilation and evaluation",
        "python -m paper figure-sorting --only sorting-magnetic --out results/repeat",
    )


def playground(target: str, metric: str, digits: str) -> Row:
    """One target in DAGs and in general digraphs, by encoding."""
    found = result("figure-playground")
    columns = [found["columns"].index(f"{target} {kind} {metric.lower()}") for kind in ("dag", "general")]
    shown = {
        name: slashed(f"{found['rows'][name][column]:{digits}}" for column in columns)
        for name in ("magnetic", "walks", "laplacian", "svd")
    }
    seen = found["cells"][f"playground-{target}-dag-magnetic"]["graphs_seen"]
    return Row(
        f"{metric} of {target.replace('-', ' ')}, DAGs / general digraphs, {seen:,} graphs seen",
        "; ".join(f"{name} {values}" for name, values in shown.items() if name != "magnetic"),
        f"magnetic {shown['magnetic']}",
        "python -m paper figure-playground",
    )


def claims() -> Row:
    """The paper's claims."""
    found = result("claims")["claims"]
    by_verdict = {
        verdict: [number for number, claim in found.items() if claim["verdict"] == verdict]
        for verdict in ("holds", "fails", "open")
    }
    exact = [number for number in by_verdict["holds"] if found[number]["reason"] == "exact"]
    runs = [count for claim in found.values() for part in claim["parts"] for count in part["runs"]]
    one = sum(count == 1 for count in runs) / len(runs)
    holds, fails, opened = by_verdict.values()
    listed = f"{len(holds)} of {len(found)} hold ({', '.join(holds)}"
    listed += "; all of them exact)" if exact == holds else ")"
    return Row(
        f"claims of the paper, by 95 % intervals; {one:.0%} of the trained values rest on one seed, others on 2–"
        f"{max(runs)} runs",
        "the paper",
        f"{listed}, {len(fails)} fails ({', '.join(fails)}), {len(opened)} are open at this number of seeds",
        "python -m paper claims",
        main=True,
    )


def quick_relations() -> Row:
    """A task-specific model after minutes on a CPU."""
    quick = result("figure-quick-sorting")
    area, seen = quick["auc"], quick["cells"]["quick-sorting-relations"]["graphs_seen"]
    return Row(
        f"AUC on the same lengths after minutes on a CPU, {seen:,} graphs of lengths 7–8 seen",
        f"attention over nodes, magnetic {percents(area['quick-sorting-attention'])} (50 is guessing)",
        f"relations of wires (task-specific, executes the network) {percents(area['quick-sorting-relations'])}",
        "python -m paper figure-quick-sorting",
    )


def relations() -> list[Row]:
    """A task-specific model, and its speed."""
    networks, sides = result("figure-best-sorting"), result("benchmark-relations")["sides"]
    return [
        Row(
            f"accuracy on lengths 12–16, {networks['cells']['best-sorting']['graphs_seen']:,} graphs seen",
            f"the paper's transformer, trained here: {percents(result('figure-sorting')['accuracy']['magnetic'])}",
            "relations of wires, a model for this task alone: it executes the network comparator by comparator and "
            f"reads no edges: {percents(networks['accuracy']['best-sorting'])}",
            "python -m paper figure-best-sorting",
        ),
        Row(
            "graphs/s forward + backward of relations of wires, H200",
            f"a loop of plain tensor operations, as one CUDA graph: {sides['loop']['graphs_per_second']:,.0f}",
            f"{sides['fused']['graphs_per_second']:,.0f}: {sides['fused']['times_as_fast']:.0f}× faster",
            "benchmarks/relations.py",
        ),
    ]


def distances() -> Row:
    """Distances with walks between the two nodes in the head."""
    best, paper = result("figure-best-distance"), result("figure-playground")
    error = best["rows"]["best-playground"][best["columns"].index("rmse")]
    column = paper["columns"].index("directed-distance dag rmse")
    magnetic, walks = (paper["rows"][name][column] for name in ("magnetic", "walks"))
    readout = result("benchmark-readout")["dag"]
    return Row(
        f"RMSE of directed distances in DAGs, {best['cells']['best-playground']['graphs_seen']:,} graphs seen, from "
        "walks between the two nodes, whose first non-zero power is the distance",
        f"that power itself, without parameters: {readout['rmse']:.0f} ({readout['graphs']:,} graphs, "
        "`benchmarks/readout.py`); models that are not given it: the paper's transformer, trained here, with magnetic "
        f"encodings {magnetic:.3f}, with walks {walks:.3f}",
        f"{error:.4f}",
        "python -m paper figure-best-distance",
    )


def of_seeds(figure: str, cell: str) -> dict[str, list[float]]:
    """The metrics of a cell of a figure by seed; empty if it has not been trained."""
    if not (ROOT / "results" / f"{figure}.json").exists():
        return {}
    found = next((table[cell] for table in result(figure)["tables"].values() if cell in table), {})
    return {name: values for name, values in found.items() if values}


def recurrent() -> list[Row]:
    """The general recurrence: accuracy by length, and distances."""
    found, command = [], "python -m paper table-recurrent"
    if networks := of_seeds("table-recurrent", "recurrent-sorting"):
        means = {int(name): statistics.mean(networks[name]) for name in BY_LENGTH}
        flat = result("figure-sorting")["accuracy"]["magnetic"]
        inside, beyond = ([length for length in means if (length in LENGTHS) == within] for within in (True, False))
        found.append(
            Row(
                f"accuracy on sorting networks of {inside[0]}–{inside[-1]} and {beyond[0]}–{beyond[-1]} wires by a "
                f"general recurrence, trained on 7–10; mean of {len(networks[str(inside[0])])} seeds",
                f"the paper's transformer, trained here on 7–11: {percents(flat)}",
                f"{percents([means[length] for length in inside])}; {percents([means[length] for length in beyond])}",
                command,
                main=True,
            )
        )
    if errors := of_seeds("table-recurrent", "marked-distance"):
        found.append(
            Row(
                "RMSE of directed distances in DAGs of 64–71 nodes, data of the multi-q paper, by a general recurrence "
                f"that is asked about marked sources; mean ± standard error of {len(errors['rmse'])} seeds",
                f"multi-q with SPE, as published: {PUBLISHED}",
                shown(errors["rmse"]),
                command,
                main=True,
            )
        )
    kernels = result("benchmark-recurrence-cpu")
    spent = kernels["sides"]["kernels"]["milliseconds"]
    found.append(
        Row(
            f"forward + backward of the recurrence on {kernels['graphs']} sorting networks, one core",
            "the same formulas by operations of torch",
            f"{kernels['times_as_fast']:.1f}× as fast: {spent:.0f} ms",
            "benchmarks/recurrence.py",
        )
    )
    return found


def by_group(figure: str) -> str:
    """All cells of a figure with several seeds, group by group, in Markdown; cells not trained are left out."""
    if not (ROOT / "results" / f"{figure}.json").exists():
        return "Not measured yet."
    parts = []
    for title, cells in result(figure)["tables"].items():
        trained = {name: metrics for name, metrics in cells.items() if any(metrics.values())}
        if not trained:
            continue
        columns = list(next(iter(trained.values())))
        lines = [f"| {title} | runs | {' | '.join(columns)} |", f"|---|{'---|' * (1 + len(columns))}"]
        for name, metrics in trained.items():
            runs = max(len(values) for values in metrics.values())
            lines.append(f"| `{name}` | {runs} | {' | '.join(shown(metrics[column]) for column in columns)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "Not measured yet."


MODELS = {
    "gps": "PyG `GPSConv`",
    "dirgnn": "PyG `DirGNNConv`",
    "gnn": "GNN",
    "magnet": "MagNet",
    "transformer": "transformer",
    "sat": "SAT",
    "hybrid": "transformer + GNN",
}
"""Models of the benchmark of real data, as the tables call them."""

UNITS = {"dsp": "DSP", "lut": "LUT", "ff": "FF", "cp": "CP"}
"""The targets of HLS, as the tables call them."""


def measured(data: str) -> list[dict[str, Any]]:
    """The rows of a data set; those of HLS, if each target has its own network, are put together."""
    if not (ROOT / "results" / "real-data.json").exists():
        return []
    found = result("real-data")
    if data in found:
        return [row for row in found[data]["rows"] if "targets" in row or "accuracy" in row]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for name in (f"{data}-{target}" for target in UNITS):
        for row in found.get(name, {"rows": []})["rows"]:
            if "targets" in row:
                together = rows.setdefault((row["model"], row["encoding"]), {**row, "targets": {}})
                together["targets"] = {**together["targets"], **row["targets"]}
    return [row for row in rows.values() if row["targets"].keys() == UNITS.keys()]


def chosen(rows: Iterable[dict[str, Any]], target: str | None) -> dict[str, dict[str, Any]]:
    """The row of PyG, and the one of ours, that is best on validation."""
    best: dict[str, dict[str, Any]] = {}
    for row in rows:
        valid = -row["valid"]["mean"] if target is None else row["targets"][target]["valid"]["mean"]
        if row["side"] not in best or valid < best[row["side"]]["on validation"]:
            best[row["side"]] = {**row, "on validation": valid}
    return best


def real_data() -> Iterable[Row]:
    """The best row of ours against the best one of PyG, both chosen by validation."""
    for data, targets in (("hls", tuple(UNITS)), ("chameleon", (None,)), ("squirrel", (None,))):
        for target in targets:
            best = chosen(measured(data), target)
            if len(best) < 2:
                continue
            theirs, ours = (f"{label(best[side])}: {figure(best[side], target)}" for side in ("PyG", "ours"))
            metric = f"RMSE (MAPE) of {UNITS[target]}, HLS circuits" if target else f"accuracy on {data.capitalize()}"
            yield Row(f"{metric}, test", theirs, ours, "benchmarks/real_data.py")


def label(row: dict[str, Any]) -> str:
    """Model and encoding of a row."""
    encoding = row["encoding"].removeprefix("pyg-").replace("none", "no encoding")
    return f"{MODELS[row['model']]}, {'PyG’s ' if row['encoding'].startswith('pyg-') else ''}{encoding}"


def figure(row: dict[str, Any], target: str | None) -> str:
    """Mean and standard deviation."""
    if target is None:
        return f"{100 * row['accuracy']['mean']:.1f} ± {100 * row['accuracy']['std']:.1f} %"
    rmse, mape = (row["targets"][target][metric] for metric in ("rmse", "mape"))
    return f"{rmse['mean']:.3f} ± {rmse['std']:.3f} ({100 * mape['mean']:.0f} %)"


def every_row(columns: dict[str, tuple[str, str | None]]) -> str:
    """All rows of some columns, each a data set and a target, in Markdown; those that validation chooses are bold."""
    rows = {
        name: {(row["model"], row["encoding"]): row for row in measured(data)} for name, (data, _) in columns.items()
    }
    best = {
        name: [(row["model"], row["encoding"]) for row in chosen(rows[name].values(), target).values()]
        for name, (_, target) in columns.items()
    }
    lines = [f"| model, encoding | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for key in dict.fromkeys(key for found in rows.values() for key in found):
        cells = []
        for name, (_, target) in columns.items():
            cell = figure(rows[name][key], target) if key in rows[name] else "–"
            cells.append(f"**{cell}**" if key in best[name] else cell)
        row = next(found[key] for found in rows.values() if key in found)
        lines.append(f"| {label(row)} | {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else "Not measured yet."


def circuits() -> str:
    """All rows of HLS, and what one line of `mt.train` gives, in Markdown."""
    made = every_row({name: ("hls", target) for target, name in UNITS.items()})
    alone = result("real-data").get("one_line") if measured("hls") else None
    if alone is None:
        return made
    tests = [alone["targets"][target]["test"] for target in UNITS]
    cells = " | ".join(f"{test['rmse']:.3f} ({100 * test['mape']:.0f} %)" for test in tests)
    return f'{made}\n| `mt.train(…, preset="{alone["preset"]}")`, one seed | {cells} |'


def copied(name: str) -> str:
    """A table that `python -m paper` wrote in Markdown."""
    path = ROOT / "results" / f"{name}.md"
    return path.read_text(encoding="utf-8").strip() if path.exists() else "Not measured yet."


def slashed(values: Iterable[object]) -> str:
    """Values separated by slashes."""
    return " / ".join(map(str, values))


def percents(shares: Sequence[float]) -> str:
    """Shares as percentages."""
    return slashed(f"{100 * share:.1f}" for share in shares) + " %"


def table(chosen: Iterable[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| what | compared with | result | command |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {r.what} | {r.against} | {r.figure} | `{r.command}` |" for r in chosen])


def fuzzed() -> str:
    """Cases that the fuzzers tried and that failed, before and after what they found was mended, in Markdown."""
    before, now = (result(name)["targets"] for name in ("reliability-before", "reliability"))
    lines = ["| target | cases | failed | failed before | what a case is |", "|---|---|---|---|---|"]
    for name, found in now.items():
        old = before.get(name)  # None: there was nothing to test
        share = "–" if old is None else f"{old['failed']:,}"
        if old is not None and old["cases"] != found["cases"]:
            share += f" of {old['cases']:,}"
        lines.append(f"| `{name}` | {found['cases']:,} | {found['failed']:,} | {share} | {found['about']} |")
    return "\n".join(lines)


def validated() -> str:
    """What validation adds to reading a file, in Markdown."""
    lines = ["| file | MB | read | read and validated | ratio |", "|---|---|---|---|---|"]
    for row in result("benchmark-validation")["rows"]:
        times = (f"{1000 * row[name]:.0f} ms" for name in ("read", "validated"))
        lines.append(f"| {row['file']} | {row['megabytes']:.0f} | {' | '.join(times)} | {row['ratio']:.2f} |")
    return "\n".join(lines)


def sizes(of: Iterable[str]) -> str:
    """Seconds and memory by the number of nodes, in Markdown."""
    cells = result("benchmark-sizes")["cells"]
    lines = [f"| | {' | '.join(f'{size:,}' for size in SIZES)} |", "|---" * (len(SIZES) + 1) + "|"]
    for name in of:
        measured = cells.get(name, {})
        lines.append(f"| {name} | {' | '.join(sized(measured.get(str(size))) for size in SIZES)} |")
    return "\n".join(lines)


def sized(found: dict[str, Any] | None) -> str:
    """Seconds and memory of one cell; None if it was not measured yet."""
    if found is None:
        return "–"
    if "refused" in found:
        return "refused"
    if "seconds" not in found:
        return f"> {found['timeout']:.0f} s" if "timeout" in found else "failed"
    seconds = found["seconds"]
    if seconds < 0.995:
        duration = f"{1000 * seconds:.0f} ms" if seconds >= 0.01 else f"{1000 * seconds:.2g} ms"
    else:
        duration = f"{seconds:.0f} s" if seconds > 10 else f"{seconds:.1f} s"
    memory = found["gib"]
    amount = f"{memory:.1f} GiB" if memory >= 1 else f"{1024 * memory:.0f} MiB" if memory > 1 / 1024 else "< 1 MiB"
    return f"{duration}, {amount}"


def refusals() -> str:
    """The messages of the guards, in Markdown."""
    seen: dict[str, tuple[str, str]] = {}
    for name, row in result("benchmark-sizes")["cells"].items():
        for size, found in row.items():
            if "refused" in found:
                seen.setdefault(name, (size, found["refused"]))
    return "\n".join(f"- {name}, {int(size):,} nodes: `{message}`" for name, (size, message) in seen.items())


NETWORKS = {"mlp": "perceptron", "gps": "PyG `GPSConv`", "transformer": "transformer"}


def chosen_potentials() -> str:
    """Test accuracy with default and best potentials on block models, in Markdown."""
    lines = ["| nodes | network | block model | chance | `Relative(0.25)` | default | best q | ratio |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    names = sorted(path.stem for path in (ROOT / "results").glob("choosing*.json"))
    measured = [row for name in names for row in result(name)["rows"]]
    for row in sorted(measured, key=lambda row: (row["nodes"], list(NETWORKS).index(row["network"]))):
        found, best = row["accuracy"], row["best"]
        numbers = row["chance"], found.get("relative"), found["default"], found[best]
        shown = ["–" if number is None else f"{number:.2f}" for number in numbers]
        shown[-1] += f" ({best})"
        cells = f"{row['nodes']:,}", NETWORKS[row["network"]], row["model"], *shown, f"{row['ratio']:.2f}"
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def rule_times() -> str:
    """Time of the choice of a potential against that of the eigenvectors, in Markdown."""
    lines = ["| nodes | choice of q | 8 eigenvectors at a given q | ratio |", "|---|---|---|---|"]
    for row in result("choosing")["times"]:
        times = (f"{1000 * row[name]:.0f} ms" for name in ("rule", "solve"))
        lines.append(f"| {row['nodes']:,} | {' | '.join(times)} | {row['rule'] / row['solve']:.2f} |")
    return "\n".join(lines)


def examples_of_names() -> str:
    """Functions with the proposals of the model that comes with magnetite, in Markdown."""
    if not (ROOT / "results" / "namer.json").exists():
        return "Not trained yet."
    lines = ["| function | name | proposals |", "|---|---|---|"]
    for each in result("namer")["examples"]:
        proposals = ", ".join(f"`{name}` {probability:.2f}" for name, probability in each["proposals"])
        place = f"{each['project']}, {each['path']}:{each['line']}"
        lines.append(f"| {place} | `{each['name']}` | {proposals or 'too large'} |")
    return "\n".join(lines)


def measured_names() -> str:
    """What the model that comes with magnetite was measured to do, in Markdown."""
    if not (ROOT / "results" / "namer.json").exists():
        return "Not trained yet."
    metrics = result("namer")["card"]["metrics"]
    shown = {
        "first proposal is the name": metrics["shipped"]["exact"],
        "one of five proposals is the name": metrics["shipped"]["exact_of_five"],
        "F1 of the words of the first proposal": metrics["shipped"]["f1"],
    }
    lines = [f"| {metrics['functions']:,} functions of unseen projects | |", "|---|---|"]
    lines += [f"| {what} | {value:.3f} |" for what, value in shown.items()]
    rivals = metrics["baselines"]
    if rivals:
        own = metrics["test_of_run"]["f1_dropped"], metrics["shipped"]["exact"], metrics["shipped"]["exact_of_five"]
        others = {BASELINES[name]: (each["f1"], each["exact"], each["exact_of_five"]) for name, each in rivals.items()}
        whole = next(iter(rivals.values()))["functions"]
        lines += [
            "",
            f"| F1 on all {whole:,} test functions; share of whole names | F1 | first is the name | one of five is |",
            "|---|---|---|---|",
        ]
        named = {"this model": own, **others}
        lines += [f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |" for name, values in named.items()]
    return "\n".join(lines)


VARIANTS = {
    "small": "preset `small`",
    "small-uncopied": "no copied words",
    "small-whole": "attributes as a whole, not as words",
    "small-neither": "neither of both",
    "small-5000": "5,000 words instead of 8,000",
    "small-docstrings": "docstrings are read",
    "small-magnetic": "8 magnetic eigenvectors",
}
"""Rows of `python -m paper train-code` with a change of the preset `small`, and what the table calls them."""


def variants() -> str:
    """What changes of the small namer do, in Markdown."""
    found = {name: ROOT / "results" / "variants" / "code" / f"{name}-seed0.json" for name in VARIANTS}
    figures = {name: read_record(path)["result"]["figures"]["test"] for name, path in found.items() if path.exists()}
    if not figures:
        return "Not measured yet."
    lines = ["| change | F1 | precision | recall |", "|---|---|---|---|"]
    for name, each in figures.items():
        cells = (f"{100 * each[metric]:.1f} %" for metric in ("f1_dropped", "precision_dropped", "recall_dropped"))
        lines.append(f"| {VARIANTS[name]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def named_files() -> str:
    """Time of `magnetite name` on files of the standard library, in Markdown."""
    if not (ROOT / "results" / "benchmark-name.json").exists():
        return "Not measured yet."
    measured = result("benchmark-name")
    lines = ["| file | functions | seconds |", "|---|---|---|"]
    lines += [f"| `{row['file']}` | {row['functions']} | {row['seconds']:.1f} |" for row in measured["rows"]]
    return "\n".join(lines)


def large_steps(name: str) -> str:
    """Cost of a step over one large graph, in Markdown."""
    if not (ROOT / "results" / f"{name}.json").exists():
        return "Not measured yet."
    measured = result(name)["rows"]
    sizes = list(dict.fromkeys(row["n"] for row in measured))
    lines = [f"| | {' | '.join(f'{n:,} nodes' for n in sizes)} |", "|---|" + "---|" * len(sizes)]
    for name in dict.fromkeys(row["name"] for row in measured):
        cells = [large_cell(row) for row in measured if row["name"] == name]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def large_cell(row: dict[str, Any]) -> str:
    """Seconds and peak memory, or a dash."""
    return "–" if "failed" in row else f"{row['seconds']:.2g} s, {row['peak_gib']:.1f} GiB"


def large_accuracy() -> str:
    """Accuracy of the defaults on large block models, in Markdown."""
    if not (ROOT / "results" / "large-models-accuracy.json").exists():
        return "Not measured yet."
    measured = [row for row in result("large-models-accuracy")["rows"] if "failed" not in row]
    lines = ["| nodes | encoding | test accuracy | minutes | peak memory |", "|---|---|---|---|---|"]
    for row in sorted(measured, key=lambda row: (row["n"], row["name"])):
        cost = f"{row['seconds'] / 60:.1f} | {row['peak_gib']:.1f} GiB"
        lines.append(f"| {row['n']:,} | {row['name']} | {row['accuracy']:.3f} | {cost} |")
    return "\n".join(lines)


def large_million(name: str) -> str:
    """Encoding and one epoch on a million nodes, in Markdown."""
    if not (ROOT / "results" / f"{name}.json").exists():
        return "Not measured yet."
    lines = ["| encoding | edges | encode | train | test accuracy | peak memory |", "|---|---|---|---|---|---|"]
    for row in result(name)["rows"]:
        if "failed" in row:
            continue
        encode = f"{row['encode_seconds']:.0f} s" if "encode_seconds" in row else "–"
        cells = f"{row['edges']:,}", encode, f"{row['train_seconds']:.0f} s", f"{row['accuracy']:.3f}"
        peak = row.get("gpu_peak_gib", row["peak_gib"])
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {peak:.1f} GiB |")
    return "\n".join(lines)


def large_growth() -> str:
    """Seconds by number of nodes, and exponents, in Markdown."""
    if not (ROOT / "results" / "large-models-growth.json").exists():
        return "Not measured yet."
    measured = result("large-models-growth")
    rows, slopes = measured["rows"], measured["exponents"]
    sizes = sorted({row["n"] for row in rows})
    lines = [f"| | {' | '.join(f'{n:,}' for n in sizes)} | time | memory |", "|---|" + "---|" * (len(sizes) + 2)]
    for name in dict.fromkeys(row["name"] for row in rows):
        found = {row["n"]: row for row in rows if row["name"] == name and "failed" not in row}
        seconds = {n: float(f"{row['seconds']:.2g}") for n, row in found.items()}
        cells = [f"{seconds[n]:g} s" if n in seconds else "–" for n in sizes]
        exponents = [slopes[name][what] for what in ("seconds", "gib")] if name in slopes else [math.nan] * 2
        cells += [f"{each:.2f}" if each >= 0 else "–" for each in exponents]  # memory that does not grow has none
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def judged_networks() -> str:
    """How often the explorer's model is right about sorting networks, by kind and length, in Markdown."""
    if not (ROOT / "results" / "sorting-model.json").exists():
        return "Not trained yet."
    return accuracy_table(result("sorting-model")["card"]["metrics"])


KNOWN_MAIN = "inputs-seed0"
"""The run of the preset `inputs`."""

KNOWN_RUNS = {
    KNOWN_MAIN: "recurrent, asked about inputs",
    "inputs-recurrent": "recurrent, a fifth of the training",
    "inputs-without-ports": "without ports",
    "inputs-messages": "message passing",
    "inputs-whole": "whole networks",
}
"""Runs of `python -m paper known-networks`, and what the table calls them."""


def known_networks() -> str:
    """How often models are right about the smallest sorting networks known and damaged copies, in Markdown."""
    if not (ROOT / "results" / "known-networks.json").exists():
        return "Not measured yet."
    columns = ("balanced accuracy", "smallest", "one removed", "one rewired")
    lines = [f"| model | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for row in result("known-networks")["rows"]:
        run, _, executed = row["run"].partition(": ")
        name = f"{KNOWN_RUNS[run]}: {executed}" if executed else KNOWN_RUNS[run]
        lines.append(f"| {name} | {' | '.join(f'{100 * row[column]:.1f} %' for column in columns)} |")
    return "\n".join(lines)


def slider_times() -> str:
    """Times of the explorer's slider of q, in Markdown."""
    if not (ROOT / "results" / "benchmark-explorer.json").exists():
        return "Not measured yet."
    lines = ["| graph | median | 95 % within | of it, the request (median) | processor time of the request |"]
    lines.append("|---|---|---|---|---|")
    for row in result("benchmark-explorer")["page"]:
        times = row["whole"]["p50_ms"], row["whole"]["p95_ms"], row["request"]["p50_ms"], row["processor_ms"]
        lines.append(f"| {row['graph']} | {' | '.join(f'{each:.0f} ms' for each in times)} |")
    return "\n".join(lines)


def explorer_latencies() -> str:
    """Latencies of the explorer's requests under load, and its memory, in Markdown."""
    if not (ROOT / "results" / "benchmark-explorer.json").exists():
        return "Not measured yet."
    measured = result("benchmark-explorer")
    load = measured["load"]
    lines = ["| request | number | median | 95 % within | longest |", "|---|---|---|---|---|"]
    for row in sorted(load["latencies"], key=lambda row: (row["refused"], row["kind"])):
        times = (f"{row[name]:,.0f} ms" for name in ("p50_ms", "p95_ms", "max_ms"))
        lines.append(
            f"| {row['kind']}{' (refused)' if row['refused'] else ''} | {row['count']} | {' | '.join(times)} |"
        )
    first, last = load["memory"][0], load["memory"][-1]
    processors = f"{measured['load_average_before']:.0f} to {measured['load_average_after']:.0f}"
    lines += [
        "",
        f"{load['requests']:,} requests, {load['at_once']} at a time (load average of the machine: "
        f"{processors}): {len(load['unexpected'])} unexpected answers, {load['busy']} told to try again. The "
        f"server had {first['server']:.0f} MiB after the first hundred requests and {last['server']:.0f} MiB after the "
        f"last, its workers {first['workers']:,.0f} and {last['workers']:,.0f} MiB.",
    ]
    return "\n".join(lines)


SIDES = {
    "one process": "one process, one thread",
    "processes": "processes of this machine",
    "ray": "Ray, the same number of actors",
    "ray with faults": "Ray, a process and the driver killed, and continued",
    "verified": "the same command again: everything is verified and kept",
}
"""The sides of the benchmark of a corpus, as the table calls them."""


def corpus() -> str:
    """Cost of encoding a corpus on one machine."""
    found = result("benchmark-corpus")
    faults = found["sides"]["ray with faults"]
    more = found["sides"]["ray"]["cpu_seconds"] - found["sides"]["processes"]["cpu_seconds"]
    load, again = found["load_before"][0], faults["shards_encoded_twice"]
    lines = [
        f"{found['graphs']:,} graphs of {found['nodes']} nodes, magnetic eigenpairs with k={found['k']}, "
        f"{found['cores']} cores, from the start of the command to its end (`python benchmarks/corpus.py`; load of the "
        f"machine before: {load:.1f}). The output of all runs is the same, byte for byte. Of "
        f"{faults['shards_before_the_driver_was_killed']} shards that were complete when the driver was killed, "
        f"{again or 'none'} were encoded again.",
        "",
        "| run | seconds | graphs/s | CPU seconds, all processes | µs of CPU per graph |",
        "|---|---|---|---|---|",
    ]
    for name, row in found["sides"].items():
        lines.append(
            f"| {SIDES[name]} | {row['seconds']:.0f} | {row['graphs_per_second']:,.0f} | {row['cpu_seconds']:.0f} | "
            f"{row['cpu_microseconds_per_graph']:.0f} |"
        )
    lines += [
        "",
        "Seconds depend on what else the machine did: others used it during this measurement, so compare CPU seconds. "
        f"Ray took {more:.0f} CPU seconds more than processes of this machine, which includes the start of its actors. "
        f"The cluster itself started in {found['seconds_to_start_the_cluster']:.0f} s.",
    ]
    return "\n".join(lines)


BILLION = 10**9
MACHINE_CORES = 64
"""Cores of a machine of the plan."""


def billion() -> str:
    """A plan for a billion graphs from the measured cost per graph."""
    found = result("benchmark-corpus")
    cost = found["sides"]["one process"]["cpu_microseconds_per_graph"] / 1e6
    checking = found["sides"]["verified"]["cpu_microseconds_per_graph"] / 1e6
    read, size = (BILLION * found[f"bytes_per_graph_{way}"] / 1e12 for way in ("read", "written"))
    lines = [
        f"| machines of {MACHINE_CORES} cores | encode | verify after a complete run | read and write per machine |",
        "|---|---|---|---|",
    ]
    for machines in (1, 4, 16):
        cores = machines * MACHINE_CORES
        hours, checks = (BILLION * each / cores / 3600 for each in (cost, checking))
        rate = (read + size) * 1e6 / (hours * 3600) / machines
        lines.append(f"| {machines} | {hours:.2g} h | {checks:.2g} h | {rate:,.0f} MB/s |")
    return "\n".join(
        [
            f"At {1e6 * cost:.0f} µs of CPU per graph, as measured with one process, a billion graphs of "
            f"{found['nodes']} nodes take {BILLION * cost / 3600:,.0f} core hours, read {read:.1f} TB and write "
            f"{size:.1f} TB.",
            "",
            *lines,
        ]
    )


def scaling() -> str:
    """What several GPUs gain, from a model of communication."""
    found = result("scaling")
    first = found["rows"][0]
    counts = sorted({row["processes"] for row in found["rows"]})
    heads = [f"{count} GPUs, {what}" for what in ("same batch", "batch × GPUs") for count in counts]
    lines = [
        f"Measured on one {found['measured_on']}: {1000 * first['step_seconds']:.1f} ms for a step of "
        f"{first['batch']:,} graphs of the task {first['task']}, {first['encoding']} ({first['parameters']:,} "
        "parameters). Efficiency is the share of the time that is not communication.",
        "",
        f"| training, link | {' | '.join(heads)} |",
        f"|---|{'---|' * len(heads)}",
    ]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in found["rows"]:
        groups.setdefault(f"{row['task']}, {row['encoding']}, {row['link']}", []).append(row)
    for name, rows in groups.items():
        each = [f"{row[f'{way}_efficiency']:.0%}" for way in ("strong", "weak") for row in rows]
        lines.append(f"| {name} | {' | '.join(each)} |")
    return "\n".join(lines)


def written(text: str, tables: Sequence[str]) -> str:
    """The text with the tables between its markers, in order."""
    first, *rest = text.split(BEGIN)
    parts = [f"{BEGIN}\n{made}\n{END}{part.split(END)[1]}" for made, part in zip(tables, rest, strict=True)]
    return first + "".join(parts)


def pages() -> dict[Path, str]:
    """The new text of each page."""
    every = rows()
    tables = {
        ROOT / "README.md": [table(row for row in every if row.main)],
        ROOT / "docs" / "results" / "index.md": [
            table(every),
            circuits(),
            every_row({name.capitalize(): (name, None) for name in ("chameleon", "squirrel")}),
            copied("two-cores/table-code"),
            copied("short/table-code"),
            copied("robustness-code"),
            copied("two-cores/robustness-code"),
            known_networks(),
            by_group("table-recurrent"),
        ],
        ROOT / "docs" / "results" / "claims.md": [copied("claims"), by_group("table-short")],
        ROOT / "docs" / "concepts" / "reliability.md": [fuzzed(), validated()],
        ROOT / "docs" / "results" / "sizes.md": [sizes(ENCODERS), sizes(sized_models()), refusals()],
        ROOT / "docs" / "howto" / "naming.md": [variants()],
        ROOT / "docs" / "howto" / "name-functions.md": [measured_names(), examples_of_names(), named_files()],
        ROOT / "docs" / "choosing.md": [chosen_potentials(), rule_times()],
        ROOT / "docs" / "howto" / "large.md": [
            large_steps("large-models-steps"),
            large_accuracy(),
            large_million("large-models-million"),
            large_steps("large-models-steps-cuda"),
            large_million("large-models-million-cuda"),
            large_growth(),
        ],
        ROOT / "docs" / "howto" / "explore.md": [judged_networks(), slider_times(), explorer_latencies()],
        ROOT / "docs" / "howto" / "corpus-ray.md": [corpus(), billion()],
        ROOT / "docs" / "howto" / "gpus.md": [scaling()],
        ROOT / "docs" / "engine" / "cpu.md": [eigen_table()],
        ROOT / "docs" / "engine" / "gpu.md": [gpu_table("double"), gpu_table("single")],
    }
    return {path: written(path.read_text(encoding="utf-8"), made) for path, made in tables.items()}


if __name__ == "__main__":
    for path, text in pages().items():
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
